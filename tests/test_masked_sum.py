"""The masked sum: exact with dropouts anywhere, whatever single clients send."""

import itertools
import random
from collections.abc import Iterable

import numpy as np
import pytest

from linsketch import Ring, RingVector, Segment
from linsketch.errors import ProtocolError, RefusalError, RoundFailed, VectorError
from linsketch.rings import largest_prime
from linsketch.securesum import (
    Contribution,
    MaskedSum,
    MemoryLedger,
    Parameters,
    choose_parameters,
    masked,
)
from linsketch.securesum.frames import frame
from tests.sums import RING, Play, altered, inside, run


def check(play: Play, last: list[int]) -> bool:
    """Check that the sum is that of the vectors that arrived, or that the round failed closed."""
    try:
        result = run(play, last)
    except RoundFailed:
        assert play.server.result is None
        with pytest.raises(ProtocolError, match="closed"):
            play.server.advance()
        return False
    arrived = play.server._arrived
    assert result.users == len(arrived)
    assert result.vector == RING.sum(play.vectors[i] for i in arrived)
    assert arrived == {i for i, stop in enumerate(last) if stop > 2}
    return True


def test_everybody_stays() -> None:
    """Without dropouts the sum is that of all vectors, for circles and for complete graphs."""
    for n, k, t in ((3, 2, 2), (5, 4, 3), (9, 4, 3), (12, 6, 4), (12, 11, 7)):
        assert check(Play(n, k, t), [4] * n)


@pytest.mark.parametrize("last", list(itertools.product(range(5), repeat=4)))
def test_every_dropout_of_four(last: tuple[int, ...]) -> None:
    """Exhaustively: each of four clients drops out anywhere. Exact, or failed closed."""
    succeeded = check(Play(4, 3, 2), list(last))
    if sum(stop == 4 for stop in last) >= 3:
        assert succeeded


def test_random_dropouts() -> None:
    """At random, in circles: exact or failed closed, and mostly exact at 15% dropouts."""
    chance = random.Random(7)  # noqa: S311  # who drops out is no secret
    done = 0
    for _ in range(60):
        n = chance.randrange(12, 26)
        last = [chance.randrange(4) if chance.random() < 0.15 else 4 for _ in range(n)]
        done += check(Play(n, 8, 4), last)
    assert done > 40


def test_dropouts_before_key_sharing_do_not_kill_a_round() -> None:
    """Clients that never advertise, or never share, are left out; the others' sum is exact."""
    assert check(Play(12, 11, 5), [0, 0, 1, 1] + [4] * 8)
    assert check(Play(30, 8, 4), [0, 0, 1, 1] + [4] * 26)


def test_too_few_fail_closed() -> None:
    """At each stage, too few clients end the round with a clear result and no sum."""
    for stage, says in enumerate(("advertised", "shared", "arrived|left", "shares")):
        play = Play(6, 5, 4)
        with pytest.raises(RoundFailed, match=says):
            run(play, [4, 4, 4, stage, stage, stage])
        assert play.server.result is None


@pytest.mark.parametrize("stage", range(3))
def test_tampered_messages_change_nothing(stage: int) -> None:
    """Cut, longer, of another session, kind, version, client, or with a flipped bit: refused."""
    play = Play(5, 4, 3)
    messages = play.until(stage)
    good = messages[0]
    other = Play(5, 4, 3, campaign=b"other")
    bad = [b"", good[:5], good[:-1], good + b"\0", bytes([9]) + good[1:], other.until(stage)[0]]
    bad += [good[:1] + bytes([99]) + good[2:], messages[1], "text"]  # type: ignore[list-item]
    bad += [good[:-1] + bytes([good[-1] ^ 1]), good[:30] + bytes([good[30] ^ 1]) + good[31:]]
    if stage == 1:
        bad += [altered(good, 0, 0xFF)]
    for message in bad:
        with pytest.raises((ProtocolError, RefusalError)):
            play.clients[0].receive(message)
    assert play.clients[0].receive(good)


def test_a_server_takes_each_message_once() -> None:
    """Strangers, repetitions, other rounds, wrong sizes and bad entries change nothing."""
    play = Play(5, 4, 3)
    other = Play(5, 4, 3, campaign=b"other")
    server = play.server
    with pytest.raises(ProtocolError, match="stranger"):
        server.receive(9, play.answers[0])
    for message in (play.answers[1], other.answers[0], play.answers[0] + b"\0", b""):
        with pytest.raises(ProtocolError):
            server.receive(0, message)
    server.receive(0, play.answers[0])
    with pytest.raises(ProtocolError, match="already"):
        server.receive(0, play.answers[0])
    play.reply(play.stage(range(1, 5)))
    play.reply(play.stage(range(5)))
    too_large = frame(5, play.session.tag, 0, inside(play.answers[0])[:-3] + b"\xff" * 3)
    with pytest.raises(ProtocolError, match="Client 0"):
        server.receive(0, too_large)
    play.reply(play.stage(range(5)))
    play.stage(range(5))
    assert server.result is not None
    assert server.result.vector == RING.sum(play.vectors)
    for bad in ([1, 1, 2], [1, 2], range(6)):
        with pytest.raises(ProtocolError):
            masked.MaskedServer(play.session, bad)


def test_wrong_shares_fail_the_round() -> None:
    """Shares that do not reconstruct are noticed; there is no wrong sum."""
    for gone in (False, True):
        play = Play(5, 4, 3)
        play.reply(play.until(1))
        stay = [0, 1, 2, 3] if gone else range(5)
        play.reply(play.stage(stay))
        for number in play.answers:
            answer = play.answers[number]
            for place, owner in enumerate(play.server._inbox[number]):
                if (owner == 4) == gone and number < 3:
                    answer = altered(answer, 16 * place + number)  # errors that cannot cancel
            play.server.receive(number, answer)
        with pytest.raises(RoundFailed, match="reconstruct"):
            play.server.advance()
        assert play.server.result is None


def test_vectors_are_checked() -> None:
    """Another length or modulus, entries too large, floats: typed errors, before anything."""
    session = masked.MaskedSession(RING, b"c", Parameters(3, 2, 2))
    other = Ring((Segment(5, 2**14), Segment(6, 509), Segment(6, largest_prime(17))))
    high = RingVector(RING, tuple(np.full(6, 2**20, np.uint64) for _ in range(3)))
    floats = RingVector(RING, tuple(np.full(6, np.nan) for _ in range(3)))
    for vector in (other.zeros(), high, floats):
        with pytest.raises(VectorError):
            masked.MaskedClient(session, 0, vector, MemoryLedger())


def test_shares_are_small() -> None:
    """At 1,000 clients the protocol adds less than 5 KB to what a client sends."""
    session = masked.MaskedSession(RING, b"", MaskedSum().planned(1000))
    assert session.traffic.up - session.traffic.vector < 5_000


def sealed_wrongly(play: Play, sender: int, places: Iterable[int]) -> None:
    """Spoil some of the boxes that a client has sealed for its neighbours."""
    for place in places:
        play.answers[sender] = altered(play.answers[sender], 16 + 48 * place)


def finished(play: Play, n: int) -> set[int]:
    """Play the rest; check that the sum is exact, and return who is in it."""
    play.reply(play.stage(range(n)))
    play.reply(play.stage(range(n)))
    play.stage(range(n))
    assert play.server.result is not None
    counted = play.server._arrived
    assert play.server.result.users == len(counted)
    assert play.server.result.vector == RING.sum(play.vectors[i] for i in counted)
    return counted


@pytest.mark.parametrize("spoilt", [1, 2, 7, 9, 10])
@pytest.mark.parametrize("k", [10, 29])
def test_boxes_that_do_not_open_cost_their_sender(spoilt: int, k: int) -> None:
    """Whoever seals rubbish for one neighbour or more is left out, and nobody else is."""
    play = Play(30, k, 5)
    play.reply(play.stage(range(30)))
    sealed_wrongly(play, 4, range(spoilt + (k - 10)))
    counted = finished(play, 30)
    # Left with fewer shares than it takes, its own masks cannot come off those who masked with it.
    lost = 10 - spoilt if 0 < 10 - spoilt < 5 else 0
    assert 4 not in counted
    assert len(counted) == 29 - lost


@pytest.mark.parametrize("clients", [4, 20, 40])
def test_rubbish_with_the_parameters_that_are_chosen(clients: int) -> None:
    """Sealed for none, or for as many as the threshold: the sender alone is lost.

    In between its masks come off nobody, which takes the round: it fails closed.
    """
    chosen = choose_parameters(clients)
    k, t = chosen.neighbours, chosen.threshold
    for spoilt in (1, k - t, k - t + 1, k - 1, k):
        play = Play(clients, k, t)
        play.reply(play.stage(range(clients)))
        sealed_wrongly(play, 3, range(spoilt))
        if spoilt in (k, *range(1, k - t + 1)):
            assert finished(play, clients) == set(range(clients)) - {3}
            continue
        play.reply(play.stage(range(clients)))
        try:
            play.reply(play.stage(range(clients)))
            play.stage(range(clients))
            counted = play.server._arrived
            assert play.server.result == Contribution(
                RING.sum(play.vectors[i] for i in counted), len(counted)
            )
        except RoundFailed:
            assert play.server.result is None


def test_false_accusations_cost_the_accuser() -> None:
    """Who claims that its neighbours' boxes do not open is left out itself."""
    play = Play(30, 10, 5)
    play.reply(play.stage(range(30)))
    messages = play.stage(range(30))
    for place in range(4):  # as if they had been spoilt on their way to client 7
        messages[7] = altered(messages[7], 2 + 48 * place)
    play.reply(messages)
    play.reply(play.stage(range(30)))
    play.stage(range(30))
    assert play.server._arrived == set(range(30)) - {7}
    assert play.server.result is not None
    assert play.server.result.vector == RING.sum(play.vectors[i] for i in range(30) if i != 7)


def test_masking_with_strangers() -> None:
    """A vector masked with a neighbour that never shared is refused."""
    play = Play(6, 5, 3)
    play.reply(play.stage(range(6)))
    play.reply(play.stage(range(5)))
    place = play.server._graph[0].index(5)
    with pytest.raises(ProtocolError, match="sent it no shares"):
        play.server.receive(0, altered(play.answers[0], 0, 1 << place))


def test_clients_that_sit_a_round_out() -> None:
    """Who has too few neighbours left is left out before anybody masks with it: exact."""
    done = 0
    for trial in range(40):
        play = Play(30, 10, 5)
        chance = random.Random(trial)  # noqa: S311  # who drops out is no secret
        silent = set(chance.sample(range(30), 9))
        try:
            play.reply(play.stage(range(30)))
            messages = play.stage([n for n in range(30) if n not in silent])
            play.reply(messages)
            play.reply(play.stage(messages))
            play.stage(messages)
        except RoundFailed:
            continue
        assert play.server.result is not None
        assert play.server.result.vector == RING.sum(play.vectors[n] for n in messages)
        done += len(messages) < 21
    assert done  # there were such clients, and their rounds ended well


def test_bad_keys_and_numbers() -> None:
    """Keys that nothing can be agreed with, and numbers that are none, are refused at the door."""
    play = Play(5, 4, 3)
    for at in (0, 32):
        body = bytearray(inside(play.answers[0]))
        body[at : at + 32] = bytes(32)
        with pytest.raises(ProtocolError, match="public key"):
            play.server.receive(0, frame(1, play.session.tag, 0, bytes(body)))
    for number in (-1, 2**32 - 1, "x", None, True, 1.5):
        with pytest.raises(ProtocolError, match="numbered"):
            masked.MaskedClient(play.session, number, RING.zeros(), MemoryLedger())  # type: ignore[arg-type]
        with pytest.raises(ProtocolError, match="numbered"):
            masked.MaskedServer(play.session, [1, 2, number])  # type: ignore[list-item]
    wider = Ring(tuple(Segment(s.length, 2**20) for s in RING.segments))
    with pytest.raises(VectorError, match="another ring"):
        masked.MaskedClient(play.session, 0, wider.zeros(), MemoryLedger())
