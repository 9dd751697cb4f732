"""Campaigns over nodes that fail in every way, without a network: bytes in, bytes out."""

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch import (
    Plan,
    RingVector,
    RoundTask,
    Transcript,
    campaign,
)
from linsketch.campaign import Progress
from linsketch.errors import FederationError
from linsketch.federation.host import Federation
from linsketch.federation.letters import Answer, Opening, Request
from linsketch.federation.node import Device, HelperNode
from linsketch.federation.terms import MaskedTerms, Terms
from linsketch.history import Reading, Round
from linsketch.methods.adaptive import Adaptive, halfway
from linsketch.round import RoundSketch
from linsketch.securesum import MemoryLedger, helper
from linsketch.securesum.frames import SERVER, frame
from linsketch.sketch.cardinality import Cardinality
from tests.village import (
    KEY,
    Fault,
    Run,
    Village,
    check_sums,
    items_of,
    plan_of,
    terms_of,
)


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
