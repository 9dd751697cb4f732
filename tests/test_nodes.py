"""What nodes refuse, what terms allow, and letters on any transport."""

import json
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch import (
    FileLedger,
    RingVector,
    RoundTask,
    Server,
    Transcript,
    campaign,
    report,
)
from linsketch.errors import LinsketchError, PlanningError, ProtocolError
from linsketch.federation.host import Federation
from linsketch.federation.letters import VERSION, Answer, Opening, Request
from linsketch.federation.node import Device, HelperNode, Node, configured
from linsketch.federation.terms import HelperTerms, Terms
from linsketch.securesum import MemoryLedger
from tests.campaigns import method_of
from tests.village import (
    KEY,
    items_of,
    plan_of,
    terms_of,
)


@pytest.fixture(params=["masked", "helper"])
def terms(request: pytest.FixtureRequest) -> Terms:
    """Return terms of both protocols."""
    return terms_of(request.param)


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
    low, _ = method_of(plan).t_range(plan)
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
    assert method_of(Terms.from_json(data).plan).largest_t_change == 2.0
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
