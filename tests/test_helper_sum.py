"""The helper sum: exact, bound to its session, closed to who asks twice."""

import struct

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch import RingVector
from linsketch.errors import ProtocolError, RefusalError, RoundFailed
from linsketch.securesum import (
    Contribution,
    MemoryLedger,
    helper,
)
from linsketch.securesum.frames import SERVER, frame
from tests.sums import RING, altered, inside, vectors


class HelperPlay:
    """A round of the two-server sum."""

    def __init__(self, n: int = 6, campaign: bytes = b"plan", context: bytes = b"round 1") -> None:
        self.helper = helper.Helper(X25519PrivateKey.generate(), MemoryLedger())
        self.session = helper.HelperSession(RING, context, self.helper.public_key, 3, campaign)
        self.vectors = vectors(n)
        self.messages = [
            helper.HelperClient(self.session, i, v, MemoryLedger()).contribute()
            for i, v in enumerate(self.vectors)
        ]
        self.server = helper.HelperServer(self.session, range(n))


def masks_in(reply: bytes) -> RingVector:
    """Return the sum of the masks in a helper's reply to up to eight clients."""
    return RING.unpack_body(inside(reply)[17:-16])


def records_in(request: bytes, clients: int) -> tuple[bytes, list[bytes]]:
    """Return the server's key and the clients' records of a request."""
    key, body = inside(request)[:32], inside(request)[32:]
    size = len(body) // clients
    return key, [body[i : i + size] for i in range(0, len(body), size)]


def test_helper_sum_is_exact() -> None:
    """The sum is that of the clients that arrived; the overhead is at most 100 bytes."""
    play = HelperPlay()
    for number in (0, 2, 3, 5):
        play.server.receive(number, play.messages[number])
    result = play.server.finish(play.helper.answer(play.session, play.server.request()))
    assert result == Contribution(result.vector, 4)
    assert result.vector == RING.sum(play.vectors[i] for i in (0, 2, 3, 5))
    assert len(play.messages[0]) - RING.wire_bytes <= 100


def test_helper_counts_no_client_twice() -> None:
    """Two requests that differ in one client would show that client: the second is refused."""
    play = HelperPlay()
    for number in range(6):
        play.server.receive(number, play.messages[number])
    full = play.server.request()
    masks = masks_in(play.helper.answer(play.session, full))
    key, records = records_in(full, 6)
    without = frame(12, play.session.tag, SERVER, key + b"".join(records[:-1]))
    with pytest.raises(RefusalError, match="contribution"):
        play.helper.answer(play.session, without)
    # What a forgetful helper would have given away:
    forgetful = helper.Helper(play.helper._private, MemoryLedger())
    fewer = masks_in(forgetful.answer(play.session, without))
    sent = RING.unpack_body(inside(play.messages[5])[helper.parties.SEALED_BYTES :])
    assert sent - (masks - fewer) == play.vectors[5]
    later = HelperPlay(context=b"round 2")
    later.helper, later.session = (
        play.helper,
        helper.HelperSession(RING, b"round 2", play.helper.public_key, 3, b"plan"),
    )
    message = helper.HelperClient(later.session, 5, later.vectors[5], MemoryLedger()).contribute()
    server = helper.HelperServer(later.session, range(9))
    server.receive(5, message)
    for number in (6, 7):
        server.receive(
            number,
            helper.HelperClient(later.session, number, RING.zeros(), MemoryLedger()).contribute(),
        )
    with pytest.raises(RefusalError, match="contribution"):
        play.helper.answer(later.session, server.request())


def test_helper_refuses_small_cohorts_and_what_is_not_bound() -> None:
    """One client's mask, another round's, another client's, a cut request: refused."""
    play = HelperPlay()
    for number in range(6):
        play.server.receive(number, play.messages[number])
    request = play.server.request()
    key, records = records_in(request, 6)

    def asked(what: list[bytes], session: helper.HelperSession = play.session) -> bytes:
        return frame(12, session.tag, SERVER, key + b"".join(what))

    with pytest.raises(RefusalError, match="smaller"):
        play.helper.answer(play.session, asked(records[:2]))
    other = helper.HelperSession(RING, b"round 2", play.helper.public_key, 3, b"plan")
    with pytest.raises(ProtocolError, match="another session"):
        play.helper.answer(other, request)
    with pytest.raises(RefusalError, match="cohort of 0"):
        play.helper.answer(other, asked(records, other))
    renamed = [struct.pack("<I", 77 + n) + each[4:] for n, each in enumerate(records)]
    with pytest.raises(RefusalError, match="cohort of 2"):
        play.helper.answer(play.session, asked([*records[:2], *renamed[2:]]))
    for cut in (inside(request)[:-1], inside(request)[:20]):
        with pytest.raises(ProtocolError, match="cut"):
            play.helper.answer(play.session, frame(12, play.session.tag, SERVER, cut))
    small = frame(12, play.session.tag, SERVER, bytes(32) + inside(request)[32:])
    with pytest.raises(ProtocolError, match="public key"):
        play.helper.answer(play.session, small)
    stranger = helper.Helper(X25519PrivateKey.generate(), MemoryLedger())
    with pytest.raises(RefusalError, match="another helper"):
        stranger.answer(play.session, request)
    with pytest.raises(RefusalError):
        play.helper.answer(play.session, asked(records[:1] * 3))
    assert play.server.finish(play.helper.answer(play.session, request)).users == 6


@pytest.mark.parametrize("at", [0, 40])
def test_false_seals_cost_their_sender(at: int) -> None:
    """Who seals something else for the helper, or no key, is left out of the sum; nobody else."""
    play = HelperPlay()
    for number in range(6):
        message = altered(play.messages[number], at) if number in (1, 4) else play.messages[number]
        if number == 4 and not at:  # a key that none can be agreed with
            body = bytes(32) + inside(play.messages[4])[32:]
            message = frame(11, play.session.tag, 4, body)
        play.server.receive(number, message)
    result = play.server.finish(play.helper.answer(play.session, play.server.request()))
    assert result.users == 4
    assert result.vector == RING.sum(play.vectors[n] for n in (0, 2, 3, 5))


def test_nobody_else_answers_for_the_helper() -> None:
    """An answer without the helper's code is refused, as is one that counts too few."""
    play = HelperPlay()
    for number in range(6):
        play.server.receive(number, play.messages[number])
    request = play.server.request()
    true = play.helper.answer(play.session, request)
    zeros = inside(true)[:17] + RING.zeros().pack_body() + bytes(16)
    for false in (frame(13, play.session.tag, SERVER, zeros), altered(true, 16), altered(true, 30)):
        with pytest.raises(ProtocolError, match="not from the helper"):
            play.server.finish(false)
    assert play.server.finish(true).users == 6
    challenge = helper.Challenge(play.helper.public_key, b"terms")
    other = helper.Helper(X25519PrivateKey.generate(), MemoryLedger())
    assert challenge.met(play.helper.prove(challenge.public, b"terms"))
    assert not challenge.met(other.prove(challenge.public, b"terms"))
    assert not challenge.met(play.helper.prove(challenge.public, b"other terms"))
    assert not challenge.met(b"")


def test_helper_server_and_client_keep_order() -> None:
    """Messages twice, of strangers, too late or damaged change nothing."""
    play = HelperPlay()
    client = helper.HelperClient(play.session, 0, play.vectors[0], MemoryLedger())
    client.contribute()
    with pytest.raises(ProtocolError, match="done"):
        client.contribute()
    with pytest.raises(RoundFailed, match="arrived"):
        play.server.request()
    for sender, message in (
        (9, play.messages[0]),
        (0, play.messages[1]),
        (0, b"x"),
        (0, play.messages[0][:-1]),
    ):
        with pytest.raises(ProtocolError):
            play.server.receive(sender, message)
    body = inside(play.messages[0])[:-3] + b"\xff" * 3
    with pytest.raises(ProtocolError):
        play.server.receive(0, frame(11, play.session.tag, 0, body))
    with pytest.raises(ProtocolError, match="answer"):
        play.server.finish(b"")
    for number in range(3):
        play.server.receive(number, play.messages[number])
    with pytest.raises(ProtocolError):
        play.server.receive(0, play.messages[0])
    reply = play.helper.answer(play.session, play.server.request())
    with pytest.raises(ProtocolError, match="late"):
        play.server.receive(3, play.messages[3])
    with pytest.raises(ProtocolError):
        play.server.finish(reply[:-1])
    assert play.server.finish(reply).vector == RING.sum(play.vectors[:3])
    with pytest.raises(ProtocolError, match="twice"):
        helper.HelperServer(play.session, [1, 1])
    with pytest.raises(ProtocolError, match="32 bytes"):
        helper.HelperSession(RING, b"", b"short")


def test_one_answer_a_session() -> None:
    """Asked about disjoint parts of one round, the helper answers for one: parts show more."""
    play = HelperPlay()
    for number in range(6):
        play.server.receive(number, play.messages[number])
    key, records = records_in(play.server.request(), 6)
    first = frame(12, play.session.tag, SERVER, key + b"".join(records[:3]))
    second = frame(12, play.session.tag, SERVER, key + b"".join(records[3:]))
    reply = play.helper.answer(play.session, first)
    with pytest.raises(RefusalError):
        play.helper.answer(play.session, second)
    with pytest.raises(ProtocolError, match="another request"):  # as many clients, others
        play.server.finish(reply)


def test_a_client_has_one_contribution_under_any_number() -> None:
    """A client that is given another number is still the same client."""
    ledger = MemoryLedger()
    play = HelperPlay()
    helper.HelperClient(play.session, 1, play.vectors[1], ledger).contribute()
    again = helper.HelperClient(play.session, 2, play.vectors[1], ledger)
    with pytest.raises(RefusalError, match="contribution"):
        again.contribute()
