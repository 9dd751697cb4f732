"""Campaigns over nodes that fail in every way, without a network: bytes in, bytes out."""

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch import Clients, FileLedger, Plan, Server, Transcript, Utf8Keys, plan_campaign
from linsketch.campaign import Progress
from linsketch.client.report import report
from linsketch.deploy.device import Device, HelperNode
from linsketch.deploy.federation import Federation
from linsketch.deploy.letters import Answer, Opening, Request
from linsketch.deploy.terms import Terms
from linsketch.errors import FederationError, LinsketchError, PlanningError
from linsketch.securesum import ClearSum, MemoryLedger, helper
from linsketch.securesum.frames import SERVER, frame
from linsketch.server import halfway
from linsketch.task import RoundTask, message

KEY = X25519PrivateKey.generate()
DRINKS = ("tea", "milk", "coffee", "maté")


def plan_of(method: str = "unsampled", rounds: int = 3, users: int = 5, **more: Any) -> Plan:
    """Return a small plan; unsampled, so that contributions can be computed again."""
    numbers: dict[str, Any] = {"items_per_user": 3, "threshold": 4, **more}
    return plan_campaign(
        rounds=rounds,
        users_per_round=users,
        keys=Utf8Keys(8),
        seed=b"federation",
        method=method,  # type: ignore[arg-type]
        **numbers,
    ).plan


def terms_of(protocol: str, plan: Plan | None = None, **more: Any) -> Terms:
    """Return terms of either protocol; masked ones with room for a few dropouts."""
    plan = plan or plan_of()
    if protocol == "helper":
        return Terms.helper(plan, KEY.public_key().public_bytes_raw(), **more)
    return Terms.masked(plan, dropout=0.4, corrupt=0.0, **more)


def items_of(node: int) -> list[str]:
    """Return a node's items."""
    return [DRINKS[0], DRINKS[1 + node % 3], f"n{node}"]


Fault = Callable[[int, Answer], Answer | None]  # (stage, answer) to what arrives, None if nothing


class Village:
    """Nodes in one process; some have faults, and the power may fail."""

    def __init__(self, terms: Terms, count: int = 15) -> None:
        self.devices: dict[int, Device | HelperNode] = {
            node: Device(terms, partial(items_of, node), MemoryLedger())
            for node in range(100, 100 + count)
        }
        if terms.protocol == "helper":
            self.devices[7] = HelperNode(terms, KEY, MemoryLedger())
        self.memories: dict[int, bytes] = {}
        self.faults: dict[int, Fault] = {}
        self.exchanges: list[list[tuple[int, Request]]] = []
        self.power = 10**9  # exchanges until it fails
        self.stages: dict[int, int] = {}

    def nodes(self) -> set[int]:
        """Return all of them."""
        return set(self.devices)

    def exchange(
        self, requests: Sequence[tuple[int, Request]], seconds: float
    ) -> Iterator[tuple[int, Answer]]:
        """Ask every node at once."""
        assert seconds > 0
        self.exchanges.append(list(requests))
        for place, (node, request) in enumerate(requests):
            stage = self.stages.get(node, 0) + 1 if request.kind == "step" else 0
            self.stages[node] = stage
            device = self.devices[node]
            answer, self.memories[node] = device.answer(request, self.memories.get(node, b""))
            arrives = self.faults[node](stage, answer) if node in self.faults else answer
            if len(self.exchanges) > self.power:
                raise KeyboardInterrupt
            if arrives is not None:
                yield place, arrives


class Run:
    """A campaign over a village, with its transcript and what was said."""

    def __init__(self, terms: Terms, village: Village, path: Path) -> None:
        self.terms, self.village, self.path = terms, village, path
        self.said: list[str] = []
        self.helper_node: int | None = None
        self.watched: list[Progress] = []

    def __call__(self) -> Server:
        """Run what is left."""
        new = not self.path.exists()
        with Transcript.create(self.path, self.terms.plan) if new else Transcript(self.path) as t:
            federation = Federation(
                self.terms,
                self.village,
                t,
                say=self.said.append,
                watch=self.watched.append,
                wait=0,
                helper_node=self.helper_node,
            )
            return federation.run()

    @property
    def asked(self) -> list[int]:
        """Nodes that were asked for vectors, by number."""
        with Transcript(self.path) as transcript:
            asked: list[int] = transcript.fact("asked")
            return asked

    def cohorts(self) -> list[list[int]]:
        """Return the nodes of each closed round, as they were opened last."""
        opened: dict[int, list[int]] = {}
        for sent in self.village.exchanges:
            now: dict[int, list[int]] = {}
            for node, request in sent:
                if request.kind == "open":
                    now.setdefault(json.loads(request.opening)["task"]["round"], []).append(node)
            opened |= now
        return [opened[progress.closed.task.round] for progress in self.watched]


def clear_sum(plan: Plan, task: RoundTask, nodes: list[int]) -> Any:
    """Return what adding up in the clear gives."""
    crowd = Clients([dict.fromkeys(items_of(node), 1) for node in nodes])
    ring = message(plan, task).ring
    return ClearSum()(ring, crowd.contributions(plan, task), b"")


def check_sums(run: Run, gone: set[int]) -> None:
    """Check that every sum is that of the round's nodes but for those that are gone."""
    with Transcript(run.path) as transcript:
        for (task, total, _), nodes in zip(transcript.rounds(), run.cohorts(), strict=True):
            assert total == clear_sum(run.terms.plan, task, [n for n in nodes if n not in gone])


@pytest.fixture(params=["masked", "helper"])
def terms(request: pytest.FixtureRequest) -> Terms:
    """Return terms of both protocols."""
    return terms_of(request.param)


def test_equals_the_clear_sum(terms: Terms, tmp_path: Path) -> None:
    """Every sum is byte for byte that of adding up in the clear; cohorts are disjoint."""
    run = Run(terms, Village(terms), tmp_path / "t")
    server = run()
    check_sums(run, set())
    assert len(run.asked) == len(set(run.asked)) == 15
    found = {line.item: line.estimate for line in server.heavy_hitters()}
    assert found == {"tea": 15, "milk": 5, "coffee": 5, "maté": 5}


def test_as_few_messages_as_the_protocol_has(terms: Terms, tmp_path: Path) -> None:
    """Rounds that do not depend on each other go side by side: four messages a client, or one."""
    village = Village(terms)
    Run(terms, village, tmp_path / "t")()
    kinds = [[request.kind for _, request in sent] for sent in village.exchanges]
    if terms.protocol == "masked":
        assert kinds == [["open"] * 15, ["step"] * 15, ["step"] * 15, ["step"] * 15]
    else:  # the helper is looked for once, and asked once a round
        assert kinds == [["role"] * 16, ["open"] * 15, ["masks"] * 3]


def test_adaptive_rounds_follow_each_other(tmp_path: Path) -> None:
    """With adaptive sampling a round opens when the one before has closed, within the terms."""
    plan = plan_of("adaptive", items_per_user=3, budget=200, threshold=None)
    terms = terms_of("masked", plan, largest_t_change=1.0)
    village = Village(terms)
    server = Run(terms, village, tmp_path / "t")()
    assert len(village.exchanges) == 12
    assert {r.task.sampling_threshold for r in server.rounds} == {plan.sampling_threshold}
    low, high = replace(terms, largest_t_change=3.0).t_range
    free = replace(terms, largest_t_change=3.0).update()
    assert low == pytest.approx(1 + (plan.sampling_threshold - 1) / 3, rel=1e-3)
    assert free(plan.sampling_threshold, 10, 10**6) == high
    assert free(2.0, 10, 10) == max(low, halfway(2.0, 10, 10))


def garbage(_: int, answer: Answer) -> Answer:
    """Send noise of the right size."""
    return Answer(bytes(reversed(answer.frame)))


def cut(_: int, answer: Answer) -> Answer:
    """Send half of it."""
    return Answer(answer.frame[: len(answer.frame) // 2])


def nothing(_: int, __: Answer) -> None:
    """Never answer, or too late."""


def refusing(_: int, __: Answer) -> Answer:
    """Refuse."""
    return Answer(refusal="no")


def empty(_: int, __: Answer) -> Answer:
    """Send an answer without anything in it."""
    return Answer()


@pytest.mark.parametrize("fault", [garbage, cut, nothing, refusing, empty])
@pytest.mark.parametrize(
    ("protocol", "stage"),
    [("masked", 0), ("masked", 1), ("masked", 2), ("masked", 3), ("helper", 0)],
)
def test_faults_cost_their_node_at_most(
    protocol: str, stage: int, fault: Fault, tmp_path: Path
) -> None:
    """A node that fails at any stage is left out, or not even that; every sum stays exact."""
    terms = terms_of(protocol)
    village = Village(terms)
    bad = {100, 101}
    for node in bad:
        village.faults[node] = lambda at, answer: fault(at, answer) if at == stage else answer
    run = Run(terms, village, tmp_path / "t")
    server = run()
    assert all(not r.failure for r in server.rounds)
    check_sums(run, set() if stage == 3 else bad)
    assert any("node 100" in text for text in run.said) == (fault is not nothing)


def test_a_false_vector_spoils_its_round_only(terms: Terms, tmp_path: Path) -> None:
    """A well-formed vector that no items have is flagged with its round; the others count."""
    village = Village(terms)

    class Liar(Device):
        def _vector(self, opening: Opening) -> Any:
            vector = super()._vector(opening)
            for array in vector.arrays:
                array[:] = 1
            return vector

    village.devices[100] = Liar(terms, lambda: items_of(100), MemoryLedger())
    run = Run(terms, village, tmp_path / "t")
    server = run()
    (spoilt,) = [i for i, cohort in enumerate(run.cohorts()) if 100 in cohort]
    statuses = [r.status for r in server.rounds]
    assert statuses.pop(spoilt) in ("partial", "undecodable")
    assert statuses == ["complete"] * 2
    assert server.failed_rounds == [spoilt + 1]


@pytest.mark.parametrize("power", range(6))
@pytest.mark.parametrize("method", ["unsampled", "adaptive", "slots"])
@pytest.mark.parametrize("protocol", ["masked", "helper"])
def test_a_killed_server_goes_on(protocol: str, method: str, power: int, tmp_path: Path) -> None:
    """Killed in any exchange, a server loses no round, counts none twice, asks no node twice."""
    terms = terms_of(protocol, plan_of(method, rounds=2))
    village = Village(terms, 30)
    run = Run(terms, village, tmp_path / "t")
    village.power = power
    try:
        run()
    except KeyboardInterrupt:
        village.power = 10**9
    server = run()
    assert server.done
    assert [r.task.round for r in server.rounds] == [1, 2]
    assert all(r.users == 5 for r in server.rounds)
    assert len(set(run.asked)) == len(run.asked)
    with Transcript(run.path) as transcript:
        assert transcript.closed == 2


def test_unasked_nodes_are_free_again(tmp_path: Path) -> None:
    """A server killed before any vector was asked for asks the same nodes again."""
    terms = terms_of("masked")
    village = Village(terms, 15)
    run = Run(terms, village, tmp_path / "t")
    village.power = 1
    with pytest.raises(KeyboardInterrupt):
        run()
    village.power = 10**9
    assert all(r.users == 5 for r in run().rounds)


def test_too_few_fail_closed(terms: Terms, tmp_path: Path) -> None:
    """A round in which too few vectors arrive has no sum; the campaign goes on without it."""
    village = Village(terms)
    run = Run(terms, village, tmp_path / "t")
    vectors = 2 if terms.protocol == "masked" else 0
    for node in range(100, 115):
        village.faults[node] = lambda at, answer: None if at == vectors else answer
    server = run()
    assert server.done
    assert all(r.failure and not r.users for r in server.rounds)
    assert all("it takes" in r.failure for r in server.rounds)


def test_who_gives_nothing_costs_no_round(tmp_path: Path) -> None:
    """Nodes that refuse or are silent before the vectors are not asked again, and no round ends.

    Others take their places; without enough of those the run ends, says why, and loses nothing.
    """
    terms = terms_of("masked")
    village = Village(terms, 30)
    for node in range(100, 112):
        village.faults[node] = refusing if node % 2 else nothing
    run = Run(terms, village, tmp_path / "t")
    server = run()
    assert server.done
    assert not any(r.failure for r in server.rounds)
    assert not set(run.asked) & set(range(100, 112))
    village = Village(terms, 15)
    village.faults = dict.fromkeys(range(100, 115), refusing)
    run = Run(terms, village, tmp_path / "u")
    with pytest.raises(FederationError, match=r"15 do not take part, like this: 'no'\. Start more"):
        run()
    village.faults = {}
    assert not any(r.failure for r in run().rounds)


def test_a_silent_helper(tmp_path: Path) -> None:
    """If the helper does not answer there is no sum; without one, or with two, nothing starts."""
    terms = terms_of("helper")
    village = Village(terms)
    village.faults[7] = lambda _, answer: None if len(answer.frame) > 32 else answer
    server = Run(terms, village, tmp_path / "t")()
    assert all("helper" in r.failure for r in server.rounds)
    del village.devices[7]
    with pytest.raises(FederationError, match="None of 15 nodes proved to be the helper"):
        Run(terms, village, tmp_path / "u")()


class Impostor(Device):
    """A client that would like to be the helper."""

    def answer(self, request: Request, memory: bytes) -> tuple[Answer, bytes]:
        """Answer like a helper, as far as that goes without its key."""
        false = HelperNode.__new__(HelperNode)
        false.terms = self.terms
        false._helper = helper.Helper(X25519PrivateKey.generate(), MemoryLedger())
        if request.kind == "role":
            return false.answer(request, memory)
        if request.kind == "masks":
            session = self.terms.helper_session(
                Opening.from_text(request.opening, self.terms).task, bytes(16)
            )
            return Answer(frame(13, session.tag, SERVER, bytes(900))), memory
        return super().answer(request, memory)


def test_an_impostor_of_the_helper(tmp_path: Path) -> None:
    """Only the owner of the key in the terms is taken for the helper, asked or named."""
    terms = terms_of("helper")
    village = Village(terms)
    village.devices[100] = Impostor(terms, lambda: items_of(100), MemoryLedger())
    run = Run(terms, village, tmp_path / "t")
    server = run()
    assert all(r.users == 5 for r in server.rounds)
    check_sums(run, set())
    village = Village(terms)
    village.devices[7] = Impostor(terms, lambda: items_of(7), MemoryLedger())
    with pytest.raises(FederationError, match="None of 16"):
        Run(terms, village, tmp_path / "u")()
    named = Run(terms, village, tmp_path / "v")
    named.helper_node = 7
    assert all(r.failure for r in named().rounds)
    assert any("node 7: 'The message" in text for text in named.said)


def test_a_helper_that_counts_too_few(tmp_path: Path) -> None:
    """A helper that leaves everybody out costs the round, and not the campaign."""
    terms = terms_of("helper")
    village = Village(terms)
    true = village.devices[7]
    assert isinstance(true, HelperNode)

    class Lazy(helper.Helper):
        def _opened(self, *_: Any) -> None:
            return None

        def answer(self, session: helper.Session, request: bytes) -> bytes:
            assert session.tag  # which stays as it is
            object.__setattr__(session, "smallest_cohort", 0)
            return super().answer(session, request)

    true._helper = Lazy(KEY, MemoryLedger())
    run = Run(terms, village, tmp_path / "t")
    assert all("helper" in r.failure for r in run().rounds)
    assert any("counts 0 clients" in text for text in run.said)


def test_false_seals_cost_their_sender(tmp_path: Path) -> None:
    """A client that seals rubbish for the helper is left out; its round has the others' sum."""
    terms = terms_of("helper")
    village = Village(terms)

    def seal_rubbish(_: int, answer: Answer) -> Answer:
        head = answer.frame[:22]
        body = bytearray(answer.frame[22:-8])
        body[40] ^= 1
        _, kind, tag, number = struct.unpack("<BB16sI", head)
        return Answer(frame(kind, tag, number, bytes(body)))

    village.faults[100] = seal_rubbish
    run = Run(terms, village, tmp_path / "t")
    assert sorted(r.users for r in run().rounds) == [4, 5, 5]
    check_sums(run, {100})


def test_only_who_was_asked_for_a_vector_is_spent(tmp_path: Path) -> None:
    """A node that was silent before the vectors can be asked again."""
    terms = terms_of("masked")
    village = Village(terms)
    village.faults[100] = nothing
    run = Run(terms, village, tmp_path / "t")
    run()
    assert len(run.asked) == 14
    assert 100 not in run.asked


def test_rounds_are_kept_before_anybody_hears_of_them(tmp_path: Path) -> None:
    """Whoever watches and fails costs no round, side by side or not."""
    terms = terms_of("masked")
    run = Run(terms, Village(terms), tmp_path / "t")

    def fail(_: Progress) -> None:
        raise OSError("no space")

    with Transcript.create(run.path, terms.plan) as transcript:
        federation = Federation(terms, run.village, transcript, watch=fail, wait=0)
        with pytest.raises(OSError, match="no space"):
            federation.run()
        assert transcript.closed == 3


def test_nodes_cannot_write_into_the_log(terms: Terms, tmp_path: Path) -> None:
    """What a node gives as a reason is one short line in quotes."""
    village = Village(terms)
    village.faults[100] = lambda *_: Answer(refusal="x\nround 9/9: 5 asked" + "\x1b[31m" * 999)
    run = Run(terms, village, tmp_path / "t")
    run()
    (said,) = [text for text in run.said if "node 100" in text]
    assert said.isprintable()
    assert len(said) < 2000


def test_more_clients_than_connected(terms: Terms, tmp_path: Path) -> None:
    """A plan for more clients than there are stops with a message; more clients, and it goes on."""
    village = Village(terms, 2)
    run = Run(terms, village, tmp_path / "t")
    with pytest.raises(FederationError, match="takes 3 to 5 clients"):
        run()
    for node in range(200, 215):
        village.devices[node] = Device(terms, lambda: items_of(1), MemoryLedger())
    server = run()
    assert server.done
    assert not any(r.failure for r in server.rounds)


def test_a_campaign_of_other_terms(terms: Terms, tmp_path: Path) -> None:
    """A transcript goes on under its own terms only."""
    run = Run(terms, Village(terms), tmp_path / "t")
    run()
    run.terms = replace(terms, stage_seconds=61)
    with pytest.raises(FederationError, match="other terms"):
        run()


def opened(device: Device, terms: Terms, **changes: Any) -> Answer:
    """Ask a device to take part, in a way that may be wrong."""
    task = Server(terms.plan).open_round()
    data = json.loads(Opening(task, bytes(16), 0).to_text(terms))
    text = json.dumps({**data, **changes})
    return device.answer(Request("open", text), b"")[0]


def test_what_clients_refuse(terms: Terms, tmp_path: Path) -> None:
    """Other terms, versions, rounds and thresholds than accepted; a second contribution."""
    ledger = FileLedger(tmp_path / "ledger")
    device = Device(terms, lambda: items_of(1), ledger)
    task = Server(terms.plan).open_round().to_json(terms.plan)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"version": 2}, "install the same linsketch"),
        ({"terms_id": "beef"}, "terms are beef"),
        ({"task": {**task, "version": 9}}, "version 9"),
        ({"task": {**task, "round": 4}}, "not one of the plan's 3 rounds"),
        ({"task": {**task, "sampling_threshold": 5.0}}, "samples with t = 1.0"),
        ({"task": None}, "JSON object"),
        ({"nonce": 5}, "opens no round"),
        ({"number": -1}, "numbered"),
    ]
    for changes, reason in wrong:
        answer = opened(device, terms, **changes)
        assert reason in answer.refusal, (changes, answer)
        assert not answer.frame
    for request in (Request("step", frame=b"x"), Request("masks"), Request("open", "{")):
        assert device.answer(request, b"")[0].refusal
    assert opened(device, terms).frame
    if terms.protocol == "helper":  # the vector has left
        again = Device(terms, lambda: items_of(1), FileLedger(tmp_path / "ledger"))
        assert "has made its contribution" in opened(again, terms).refusal


def test_thresholds_beyond_the_terms() -> None:
    """A server that switches sampling off is refused."""
    terms = terms_of("masked", plan_of("adaptive", budget=80, threshold=None), largest_t_change=1.5)
    device = Device(terms, lambda: items_of(1), MemoryLedger())
    honest = Server(terms.plan).open_round()
    low, _ = terms.t_range
    assert 1.1 < low < honest.sampling_threshold
    task = replace(honest, sampling_threshold=1.0).to_json(terms.plan)
    assert "the terms allow" in opened(device, terms, task=task).refusal
    assert opened(device, terms).frame


@pytest.mark.parametrize("leak", [ValueError, KeyError, LinsketchError, SystemExit])
def test_refusals_say_nothing_of_the_data(
    leak: type[BaseException], terms: Terms, caplog: pytest.LogCaptureFixture
) -> None:
    """What goes wrong with a client's data is in its own log, and not in what it sends."""

    def local_items() -> list[str]:
        raise leak("secret diagnosis")

    device = Device(terms, local_items, MemoryLedger())
    if leak is SystemExit:  # the process ends, and nothing is sent
        with pytest.raises(SystemExit):
            opened(device, terms)
        return
    answer = opened(device, terms)
    assert answer.refusal == "The node could not take part; its own log says why."
    assert "secret diagnosis" in caplog.text


def test_a_client_without_data(terms: Terms, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing to report is told to the operator alone; too much and too long are left out."""
    assert "could not take part" in opened(Device(terms, list, MemoryLedger()), terms).refusal
    assert "no data" in caplog.text
    much = Device(terms, lambda: ["tea"] * 5 + ["longer than 8 bytes"], MemoryLedger())
    assert opened(much, terms).frame
    assert "2 items beyond the bound of 3" in caplog.text
    assert "1 kinds of items that utf8:8" in caplog.text


def test_histograms_may_be_given() -> None:
    """A mapping of items to counts is taken as it is."""
    terms = terms_of("masked")
    seen: list[Any] = []

    class Recording(Device):
        def _vector(self, opening: Opening) -> Any:
            vector = super()._vector(opening)
            seen.append(vector)
            return vector

    task = Server(terms.plan).open_round()
    opened(Recording(terms, lambda: {"tea": 2, "milk": 1}, MemoryLedger()), terms)
    opened(Recording(terms, lambda: ["tea", "milk", "tea"], MemoryLedger()), terms)
    assert seen[0] == seen[1] == report({"tea": 2, "milk": 1}, terms.plan, task).vector


def test_terms_as_json(terms: Terms, tmp_path: Path) -> None:
    """Terms read back are equal; what is no terms is refused with a reason."""
    data = json.loads(json.dumps(terms.to_json()))
    assert Terms.from_json(data) == terms
    assert Terms.from_json(data).terms_id == terms.terms_id
    wrong: tuple[dict[str, Any], ...] = (
        {"version": 2},
        {"more": 1},
        {"plan": {}},
        {"secure_sum": {"protocol": "none"}},
        {"secure_sum": {"protocol": "masked"}},
        {"secure_sum": {"protocol": "helper", "helper_key": "00"}},
        {"secure_sum": 5},
        {"stage_seconds": 0},
        {"largest_t_change": 0.5},
        {"largest_t_change": float("inf")},
        {"largest_t_change": "x"},
    )
    for changes in wrong:
        with pytest.raises(PlanningError):
            Terms.from_json({**data, **changes})
    path = tmp_path / "terms.json"
    with pytest.raises(PlanningError, match="Cannot read"):
        Terms.read(path)
    path.write_text("{")
    with pytest.raises(PlanningError, match="no JSON"):
        Terms.read(path)


def test_terms_that_do_not_fit() -> None:
    """Parameters for other cohorts than the plan's are refused."""
    small, large = terms_of("masked"), plan_of(users=9)
    with pytest.raises(PlanningError, match="do not fit rounds of 9"):
        Terms(large, "masked", small.parameters)
    with pytest.raises(LinsketchError, match="not the one of the terms"):
        HelperNode(terms_of("helper"), X25519PrivateKey.generate(), MemoryLedger())
