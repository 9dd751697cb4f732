"""Campaigns over nodes that fail in every way, without a network: bytes in, bytes out."""

import json
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch import (
    Clients,
    Contribution,
    FileLedger,
    Plan,
    RingVector,
    RoundTask,
    Server,
    Transcript,
    Utf8Keys,
    campaign,
    plan_campaign,
    report,
)
from linsketch.campaign import Progress
from linsketch.errors import FederationError, LinsketchError, PlanningError, ProtocolError
from linsketch.federation.host import Federation
from linsketch.federation.letters import VERSION, Answer, Opening, Request
from linsketch.federation.node import Device, HelperNode, Node, configured
from linsketch.federation.terms import HelperTerms, MaskedTerms, Terms
from linsketch.history import Reading, Round
from linsketch.methods.adaptive import Adaptive, halfway
from linsketch.round import RoundSketch
from linsketch.securesum import ClearSum, MemoryLedger, helper
from linsketch.securesum.frames import SERVER, frame
from linsketch.sketch.cardinality import Cardinality
from tests.campaigns import method_of

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
        method=method,
        **numbers,
    ).plan.for_clients()


def terms_of(protocol: str, plan: Plan | None = None) -> Terms:
    """Return terms of either protocol; masked ones with room for a few dropouts."""
    plan = plan or plan_of()
    if protocol == "helper":
        return Terms.helper(plan, KEY.public_key().public_bytes_raw())
    return Terms.masked(plan, dropout=0.4, corrupt=0.0)


def items_of(node: int) -> list[str]:
    """Return a node's items."""
    return [DRINKS[0], DRINKS[1 + node % 3], f"n{node}"]


Fault = Callable[[int, Answer], Answer | bytes | None]
"""(stage, answer) to what arrives: another answer, bytes that are none, or nothing."""


class Village:
    """Nodes in one process; some have faults, and the power may fail."""

    def __init__(self, terms: Terms, count: int = 15) -> None:
        self.devices: dict[int, Node] = {
            node: Device(terms, partial(items_of, node), MemoryLedger())
            for node in range(100, 100 + count)
        }
        if isinstance(terms.secure_sum, HelperTerms):
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
        self, letters: Sequence[tuple[int, bytes]], seconds: float
    ) -> Iterator[tuple[int, bytes]]:
        """Ask every node at once."""
        assert seconds > 0
        self.exchanges.append([(node, Request.from_bytes(letter)) for node, letter in letters])
        for place, (node, request) in enumerate(self.exchanges[-1]):
            stage = self.stages.get(node, 0) + 1 if request.kind == "step" else 0
            self.stages[node] = stage
            memory = self.memories.get(node, b"")
            answer, self.memories[node] = self.devices[node].answer(letters[place][1], memory)
            arrives: Answer | bytes | None = answer
            if node in self.faults:
                arrives = self.faults[node](stage, Answer.from_bytes(answer))
            if len(self.exchanges) > self.power:
                raise KeyboardInterrupt
            if arrives is not None:
                yield place, arrives.to_bytes() if isinstance(arrives, Answer) else arrives


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
                wait=0,
                helper_node=self.helper_node,
            )
            return campaign.run(
                self.terms.plan, federation, transcript=t, watch=self.watched.append
            )

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


def clear_sum(plan: Plan, task: RoundTask, nodes: list[int]) -> Contribution:
    """Return what adding up in the clear gives."""
    crowd = Clients([dict.fromkeys(items_of(node), 1) for node in nodes])
    ring = RoundSketch.of(plan, task).ring
    return ClearSum()(ring, crowd.contributions(plan, task), b"")


def check_sums(run: Run, gone: set[int]) -> None:
    """Check that every sum is that of the round's nodes but for those that are gone."""
    with Transcript(run.path) as transcript:
        for (task, sums, _), nodes in zip(transcript.rounds(), run.cohorts(), strict=True):
            there = [node for node in nodes if node not in gone]
            assert sums == [clear_sum(run.terms.plan, task, there)]


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
    if isinstance(terms.secure_sum, MaskedTerms):
        assert kinds == [["open"] * 15, ["step"] * 15, ["step"] * 15, ["step"] * 15]
    else:  # the helper is looked for once, and asked once a round
        assert kinds == [["role"] * 16, ["open"] * 15, ["masks"] * 3]


def adaptive(plan: Plan) -> Adaptive:
    """Return the method of an adaptive plan."""
    assert isinstance(plan.method, Adaptive)
    return plan.method


def test_adaptive_rounds_follow_each_other(tmp_path: Path) -> None:
    """With adaptive sampling a round opens when the one before has closed, within the plan."""
    plan = plan_of("adaptive", budget=200, threshold=None, largest_t_change=1.0)
    terms = terms_of("masked", plan)
    village = Village(terms)
    server = Run(terms, village, tmp_path / "t")()
    assert len(village.exchanges) == 12
    assert {r.task.sampling_threshold for r in server.rounds} == {adaptive(plan).sampling_threshold}


def test_servers_keep_to_the_range_of_t() -> None:
    """Whatever a round's table held, the next t stays within the largest change of the plan."""
    plan = plan_of("adaptive", budget=200, threshold=None, largest_t_change=1.5)
    method = adaptive(plan)
    first, (low, high) = method.sampling_threshold, method.t_range(plan)

    def next_t(t: float, full: float) -> float:
        """Return the t after a round with t that filled so much of its table."""
        history = method.history(plan)
        task = replace(method.open(plan, history), sampling_threshold=t)
        assert task.table
        (table,) = RoundSketch.of(plan, task).parts.tables
        keys = full * task.table.capacity
        peel = replace(
            table.list_entries(table.ring.zeros()),
            cardinality=Cardinality(keys, 0.0, at_least=False),
        )
        history.add(Round(task, (Reading(5, (peel,), None, None),)))
        return method.next_t(plan, history)

    assert low == pytest.approx(1 + (first - 1) / 1.5, rel=1e-3)
    assert high == pytest.approx(1.5 * first, rel=1e-3)
    assert next_t(first, 10**5) == high
    assert next_t(first, 0) == low
    assert low < 6 < 7 < high
    assert next_t(6.0, 1) == halfway(6.0, 10, 10) == 6
    assert next_t(6.0, 4 / 3) == pytest.approx(halfway(6.0, 9, 12)) == 7
    free = replace(method, largest_t_change=None)
    assert free.t_range(replace(plan, method=free)) == (1.0, plan.items_per_round)


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


def no_letter(_: int, answer: Answer) -> bytes:
    """Send bytes that are no letter."""
    return answer.to_bytes()[1:]


@pytest.mark.parametrize("fault", [garbage, cut, nothing, refusing, empty, no_letter])
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
        def _vector(self, task: RoundTask) -> RingVector:
            vector = super()._vector(task)
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
    vectors = 2 if isinstance(terms.secure_sum, MaskedTerms) else 0
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

    def _answer(self, request: Request, memory: bytes) -> tuple[Answer, bytes]:
        """Answer like a helper, as far as that goes without its key."""
        false = HelperNode.__new__(HelperNode)
        false.terms = self.terms
        false._helper = helper.Helper(X25519PrivateKey.generate(), MemoryLedger())
        if request.kind == "role":
            return false._answer(request, memory)
        if request.kind == "masks":
            task = Opening.from_text(request.opening, self.terms).task
            session = self.terms.secure_sum.session(self.terms, task, bytes(16))
            return Answer(frame(13, session.tag, SERVER, bytes(900))), memory
        return super()._answer(request, memory)


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

        def answer(self, session: helper.HelperSession, request: bytes) -> bytes:
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
        federation = Federation(terms, run.village, transcript, wait=0)
        with pytest.raises(OSError, match="no space"):
            campaign.run(terms.plan, federation, transcript=transcript, watch=fail)
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
    with Transcript.create(tmp_path / "u", terms.plan) as transcript:
        federation = Federation(terms, run.village, transcript, wait=0)
        with pytest.raises(FederationError, match="accepted another plan"):
            campaign.run(plan_of(rounds=2), federation)


def opened(device: Device, terms: Terms, **changes: Any) -> Answer:
    """Ask a device to take part, in a way that may be wrong."""
    task = Server(terms.plan).open_round()
    data = json.loads(Opening(task, bytes(16), 0).to_text(terms))
    return asked(device, Request("open", json.dumps({**data, **changes})).to_bytes())


def asked(node: Node, letter: bytes) -> Answer:
    """Return what a node answers that remembers nothing."""
    answer, _ = node.answer(letter, b"")
    return Answer.from_bytes(answer)


def test_what_clients_refuse(terms: Terms, tmp_path: Path) -> None:
    """Other terms, versions, rounds and thresholds than accepted; a second contribution."""
    ledger = FileLedger(tmp_path / "ledger")
    device = Device(terms, lambda: items_of(1), ledger)
    task = Server(terms.plan).open_round().to_json(terms.plan)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"terms_id": "beef"}, "terms are beef"),
        ({"terms_id": "\ud800"}, "terms are"),
        ({"task": {**task, "version": 9}}, "version 9"),
        ({"task": {**task, "round": 4}}, "not one of the plan's 3 rounds"),
        ({"task": {**task, "sampling_threshold": 5.0}}, "the plan allows 1.0 to 1.0"),
        ({"task": None}, "JSON object"),
        ({"nonce": 5}, "opens no round"),
        ({"number": -1}, "numbered"),
    ]
    for changes, reason in wrong:
        answer = opened(device, terms, **changes)
        assert reason in answer.refusal, (changes, answer)
        assert not answer.frame
    for request in (Request("step", frame=b"x"), Request("masks"), Request("open", "{")):
        assert asked(device, request.to_bytes()).refusal
    assert "no request" in asked(device, b"").refusal
    newer = bytearray(Request("role").to_bytes())
    newer[4] += 1
    assert "install the same linsketch" in asked(device, bytes(newer)).refusal
    assert opened(device, terms).frame
    if isinstance(terms.secure_sum, HelperTerms):  # the vector has left
        again = Device(terms, lambda: items_of(1), FileLedger(tmp_path / "ledger"))
        assert "has made its contribution" in opened(again, terms).refusal


def test_thresholds_beyond_the_plan() -> None:
    """A server that switches sampling off is refused."""
    plan = plan_of("adaptive", budget=80, threshold=None, largest_t_change=1.5)
    terms = terms_of("masked", plan)
    device = Device(terms, lambda: items_of(1), MemoryLedger())
    honest = Server(plan).open_round()
    low, _ = adaptive(plan).t_range(plan)
    assert 1.1 < low < honest.sampling_threshold
    task = {**honest.to_json(plan), "sampling_threshold": 1.0}
    assert "the plan allows" in opened(device, terms, task=task).refusal
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
        def _vector(self, task: RoundTask) -> RingVector:
            vector = super()._vector(task)
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
        {"version": 1},
        {"more": 1},
        {"plan": {}},
        {"secure_sum": {}},
        {"secure_sum": {"none": {}}},
        {"secure_sum": {"masked": {}}},
        {"secure_sum": {"masked": 5}},
        {"secure_sum": {"helper": {}}},
        {"secure_sum": {"helper": {"key": "00"}}},
        {"secure_sum": {"helper": {"key": "no key"}}},
        {"secure_sum": {"helper": {"key": "00" * 32, "more": 1}}},
        {"secure_sum": {**data["secure_sum"], "clear": {}}},
        {"secure_sum": 5},
        {"stage_seconds": 0},
        {"largest_t_change": 4.0},
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


@pytest.mark.parametrize("protocol", ["masked", "helper"])
def test_terms_that_let_a_server_do_as_it_likes(protocol: str) -> None:
    """Terms over a plan whose t a server could choose at will are refused, whoever makes them."""
    free = plan_of("adaptive")
    free = replace(free, method=replace(method_of(free), largest_t_change=None))
    with pytest.raises(PlanningError, match="for_clients"):
        terms_of(protocol, free)
    bound = terms_of(protocol, free.for_clients())
    assert method_of(bound.plan).largest_t_change == 4.0
    kept = replace(free, method=replace(method_of(free), largest_t_change=1.5))
    assert kept.for_clients() == kept


@pytest.mark.parametrize("change", [0.5, float("inf"), "x", True])
def test_terms_with_an_impossible_change_of_t(change: Any) -> None:
    """The largest change of t is a factor of 1 or more, also where terms are read."""
    terms = terms_of("masked", plan_of("adaptive"))
    data = json.loads(json.dumps(terms.to_json()))
    options = data["plan"]["method"]["adaptive"]
    assert options["largest_t_change"] == 4.0
    options["largest_t_change"] = 2
    assert adaptive(Terms.from_json(data).plan).largest_t_change == 2.0
    options["largest_t_change"] = change
    with pytest.raises(PlanningError, match="a factor from 1"):
        Terms.from_json(data)


def test_terms_that_do_not_fit() -> None:
    """Parameters for other cohorts than the plan's are refused, and what is no secure sum."""
    small, large = terms_of("masked"), plan_of(users=9)
    with pytest.raises(PlanningError, match="do not fit rounds of 9"):
        Terms(large, small.secure_sum)
    with pytest.raises(PlanningError, match="MaskedTerms"):
        Terms(large, "masked")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(PlanningError, match="fewer clients than the plan"):
        Terms(plan_of(smallest_cohort=5), small.secure_sum)
    with pytest.raises(LinsketchError, match="not the one of the terms"):
        HelperNode(terms_of("helper"), X25519PrivateKey.generate(), MemoryLedger())
    with pytest.raises(LinsketchError, match="without a helper"):
        HelperNode(small, KEY, MemoryLedger())


def test_letters_come_back() -> None:
    """Letters read back are equal, whatever is in them."""
    for request in (
        Request("role"),
        Request("open", '{"é": 1}'),
        Request("masks", "{}", b"\0\xff"),
    ):
        assert Request.from_bytes(request.to_bytes()) == request
    for answer in (Answer(), Answer(b"x" * 1000), Answer(refusal="nó"), Answer(b"\0", "no")):
        assert Answer.from_bytes(answer.to_bytes()) == answer


def letter(magic: bytes, version: int, kind: int, length: int, rest: bytes) -> bytes:
    """Return a letter with this very head."""
    return struct.pack("<4sBBI", magic, version, kind, length) + rest


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"LSKQ",
        letter(b"LSKX", VERSION, 0, 0, b""),
        letter(b"LSKA", VERSION, 4, 0, b""),
        letter(b"LSKQ", VERSION, 4, 0, b""),
        letter(b"LSKQ", VERSION, 1, 3, b"{}"),
        letter(b"LSKA", VERSION, 0, 2**32 - 1, b"no"),
        letter(b"LSKQ", VERSION, 1, 1, b"\xff"),
        letter(b"LSKA", VERSION, 0, 1, b"\xff"),
        "text",
        None,
    ],
)
def test_bytes_that_are_no_letters(wrong: Any) -> None:
    """What is cut, has another head or holds no text is refused, and never half read."""
    with pytest.raises(ProtocolError, match=r"holds no request\."):
        Request.from_bytes(wrong)
    with pytest.raises(ProtocolError, match=r"holds no answer\."):
        Answer.from_bytes(wrong)


@pytest.mark.parametrize("kind", [0, 9])
def test_letters_of_another_version(kind: int) -> None:
    """Of another version, only that is said, however its letters go on."""
    said = rf"speaks version {VERSION + 1} of the letters, this one {VERSION}: install the same"
    with pytest.raises(ProtocolError, match=said):
        Request.from_bytes(letter(b"LSKQ", VERSION + 1, kind, 9, b"\xff"))
    with pytest.raises(ProtocolError, match=said):
        Answer.from_bytes(letter(b"LSKA", VERSION + 1, kind, 9, b"\xff"))


class Post:
    """A whole transport: bytes go to nodes, which wake up for one letter, and bytes come back."""

    def __init__(self, nodes: Mapping[int, Callable[[], Node]]) -> None:
        self._nodes, self._memories = nodes, dict.fromkeys(nodes, b"")

    def nodes(self) -> set[int]:
        """Return all of them."""
        return set(self._nodes)

    def exchange(
        self, letters: Sequence[tuple[int, bytes]], seconds: float
    ) -> Iterator[tuple[int, bytes]]:
        """Hand out all letters at once; pass on answers as they come, until the time is over."""
        answers: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
        until = time.monotonic() + seconds

        def deliver(place: int, node: int, letter: bytes) -> None:
            answer, self._memories[node] = self._nodes[node]().answer(letter, self._memories[node])
            answers.put((place, answer))

        for place, (node, letter) in enumerate(letters):
            Thread(target=deliver, args=(place, node, letter), daemon=True).start()
        for _ in letters:
            try:
                yield answers.get(timeout=max(until - time.monotonic(), 0))
            except Empty:
                return


def test_a_transport_in_one_file(terms: Terms, tmp_path: Path) -> None:
    """A transport of a few lines that knows nothing but bytes carries a whole campaign."""
    (tmp_path / "key").write_text(KEY.private_bytes_raw().hex())

    def node(number: int, **more: str) -> Callable[[], Node]:
        """Return how a node wakes up: with its configuration, and its ledger on disk."""
        config = {"accept": terms.terms_id, "ledger": str(tmp_path / f"ledger {number}"), **more}
        return lambda: configured(terms, lambda _: items_of(number), config)

    nodes = {number: node(number) for number in range(100, 115)}
    if isinstance(terms.secure_sum, HelperTerms):
        nodes[7] = node(7, role="helper", key=str(tmp_path / "key"))
    with Transcript.create(tmp_path / "t", terms.plan) as transcript:
        federation = Federation(terms, Post(nodes), transcript, wait=0)
        server = campaign.run(terms.plan, federation, transcript=transcript)
        assert transcript.closed == 3
    assert [closed.users for closed in server.rounds] == [5, 5, 5]
    found = {line.item: line.estimate for line in server.heavy_hitters()}
    assert found == {"tea": 15, "milk": 5, "coffee": 5, "maté": 5}
