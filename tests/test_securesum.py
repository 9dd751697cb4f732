"""Secure sums: exact with dropouts anywhere, closed to a curious server."""

import itertools
import random
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch import Ring, RingVector, Segment
from linsketch.errors import ProtocolError, RefusalError, RoundFailed, VectorError
from linsketch.ledger import FileLedger
from linsketch.rings import largest_prime
from linsketch.securesum import (
    ClearSum,
    Contribution,
    HelperSum,
    MaskedSum,
    MemoryLedger,
    Parameters,
    choose_parameters,
    helper,
    masked,
    shamir,
)
from linsketch.securesum.agreement import agree
from linsketch.securesum.frames import CHECKSUM_BYTES, HEAD_BYTES, SERVER, frame, pack_bits
from linsketch.securesum.masked.session import SURVIVORS, UNMASK, mask_key, pair_context
from linsketch.securesum.masks import add_mask, derive

RING = Ring((Segment(6, 2**14), Segment(6, 509), Segment(6, largest_prime(17))))


def vectors(count: int, ring: Ring = RING, seed: int = 1) -> list[RingVector]:
    """Return random vectors."""
    rng = np.random.default_rng(seed)
    return [
        ring.vector(rng.integers(0, s.modulus, s.length) for s in ring.segments)
        for _ in range(count)
    ]


def inside(message: bytes) -> bytes:
    """Return the body of a message."""
    return message[HEAD_BYTES:-CHECKSUM_BYTES]


def altered(message: bytes, at: int, flip: int = 1) -> bytes:
    """Flip bits of a message's body, and mend its checksum."""
    body = bytearray(inside(message))
    body[at] ^= flip
    version, kind, session, client = struct.unpack_from("<BB16sI", message)
    assert version == 1
    return frame(kind, session, client, bytes(body))


class Play:
    """A session whose messages a test carries, and may change."""

    def __init__(self, n: int, k: int, t: int, context: bytes = b"round 1", **options: Any) -> None:
        self.session = masked.Session(RING, context, Parameters(n, k, t), **options)
        self.vectors = vectors(n)
        self.ledgers = [MemoryLedger() for _ in range(n)]
        self.clients = [
            masked.Client(self.session, i, self.vectors[i], self.ledgers[i]) for i in range(n)
        ]
        self.server = masked.Server(self.session, range(n))
        self.answers = {client.number: client.start() for client in self.clients}

    def stage(self, present: Iterable[int]) -> dict[int, bytes]:
        """Deliver the answers of those present, close the stage, return the next messages."""
        for number in present:
            if number in self.answers:
                self.server.receive(number, self.answers[number])
        return self.server.advance()

    def reply(self, messages: dict[int, bytes]) -> None:
        """Let all clients answer."""
        self.answers = {n: self.clients[n].receive(message) for n, message in messages.items()}

    def until(self, stage: int) -> dict[int, bytes]:
        """Play honestly, everybody present; return the messages of the server's stage."""
        everybody = range(len(self.clients))
        messages = self.stage(everybody)
        for number in range(stage):
            self.reply(messages)
            if number == 1:
                self.masked = dict(self.answers)
            messages = self.stage(everybody)
        return messages


def run(play: Play, last: list[int]) -> Contribution:
    """Run with each client present up to its last stage."""
    for stage in range(4):
        messages = play.stage([i for i, stop in enumerate(last) if stop > stage])
        play.reply({n: m for n, m in messages.items() if last[n] > stage})
    assert play.server.result is not None
    return play.server.result


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


def test_masked_vectors_look_random() -> None:
    """Two equal inputs give unrelated bytes, and a masked vector is uniform over the ring."""
    ring = Ring((Segment(20_000, 16), Segment(20_000, 13)))
    session = masked.Session(ring, b"c", Parameters(3, 2, 2))
    clients = [masked.Client(session, i, ring.zeros(), MemoryLedger()) for i in range(3)]
    server = masked.Server(session, range(3))
    answers = {c.number: c.start() for c in clients}
    for _ in range(2):
        for number, answer in answers.items():
            server.receive(number, answer)
        answers = {n: clients[n].receive(m) for n, m in server.advance().items()}
    bodies = [ring.unpack_body(inside(answer)[1:]) for answer in answers.values()]
    for q, array in zip((16, 13), bodies[0].arrays, strict=True):
        counts = np.bincount(array, minlength=q)
        chi = float(((counts - 20_000 / q) ** 2 / (20_000 / q)).sum())
        assert abs(chi - (q - 1)) < 5.3 * np.sqrt(2 * (q - 1)) + 15
    for one, other in itertools.combinations(bodies, 2):
        for q, a, b in zip((16, 13), one.arrays, other.arrays, strict=True):
            assert abs((a == b).mean() - 1 / q) < 6 * np.sqrt(1 / q / 20_000)


# What a client refuses, and what the curious server would have learnt.


def unmasked(
    play: Play, victim: int, shares_of_seed: dict[int, int], shares_of_key: dict[int, int]
) -> RingVector:
    """Do what a server can with both kinds of share: take all masks off one client's vector."""
    session, t = play.session, play.session.parameters.threshold
    seed = shamir.reconstruct(shares_of_seed, t)
    total = RING.unpack_body(inside(play.answers[victim])[1:])
    add_mask(
        total, derive(shamir.to_bytes(seed), b"self", session.context_of(victim)), negative=True
    )
    key = mask_key(session, victim, shamir.reconstruct(shares_of_key, t))
    for other in play.server._inbox[victim]:
        pair = agree(
            key, play.server._adverts[other][32:64], b"pair", pair_context(session, victim, other)
        )
        add_mask(total, pair, negative=other > victim)
    return total


def split_view(play: Play, victim: int) -> tuple[dict[int, int], dict[int, int]]:
    """Tell some neighbours that the victim survived and the others that it did not."""
    honest = {n: play.answers[n] for n in play.answers}
    for number, answer in honest.items():
        play.server.receive(number, answer)
    seeds: dict[int, int] = {}
    keys: dict[int, int] = {}
    graph = play.server._graph
    for place, holder in enumerate(graph[victim]):
        story = place % 2 == 0
        alive = [other != victim or story for other in graph[holder]]
        message = frame(SURVIVORS, play.session.tag, holder, pack_bits(alive))
        answer = inside(play.clients[holder].receive(message))
        at = 16 * play.server._inbox[holder].index(victim)
        share = shamir.from_bytes(answer[at : at + 16])
        (seeds if story else keys)[place + 1] = share
    return seeds, keys


def test_split_views_show_a_vector_unless_the_threshold_is_safe() -> None:
    """The attack: different survivor lists for different neighbours. 2t <= k loses the vector."""
    play = Play(9, 8, 4)
    messages = play.until(1)
    play.reply(messages)
    seeds, keys = split_view(play, 3)
    assert unmasked(play, 3, seeds, keys) == play.vectors[3]
    safe = Play(9, 8, 6)  # 2t > k + corrupt neighbours, for up to 3 of those
    messages = safe.until(1)
    safe.reply(messages)
    seeds, keys = split_view(safe, 3)
    assert min(len(seeds), len(keys)) < 6
    with pytest.raises(ProtocolError, match="fewer"):
        unmasked(safe, 3, seeds, keys)


def test_one_kind_of_share_for_a_peer() -> None:
    """Asked once more, now for the other kind, a client is silent: both would show a vector."""
    play = Play(9, 8, 4)
    messages = play.until(2)
    play.reply(messages)
    lie = {
        n: frame(SURVIVORS, play.session.tag, n, pack_bits([o != 3 for o in play.server._graph[n]]))
        for n in range(9)
        if n != 3
    }
    for number, message in lie.items():
        with pytest.raises(ProtocolError, match="done"):
            play.clients[number].receive(message)


def seed_and_keys(play: Play, victim: int) -> tuple[dict[int, int], dict[int, dict[int, int]]]:
    """Return what clients would give who answer any list: a seed's shares, the others' keys'."""
    seed: dict[int, int] = {}
    keys: dict[int, dict[int, int]] = {}
    for holder, client in enumerate(play.clients):
        for place, (of_seed, of_key) in client._held.items():
            owner = client._neighbours[place]
            at = play.server._graph[owner].index(holder) + 1
            if owner == victim:
                seed[at] = of_seed
            else:
                keys.setdefault(owner, {})[at] = of_key
    return seed, keys


def test_survivor_lists_below_the_threshold() -> None:
    """A list of too few survivors would have the server take off all masks: refused.

    Clients that answered it would give the seed of the one that is said to have survived, and the
    keys of all others: that is its vector.
    """
    play = Play(9, 8, 4)
    messages = play.until(2)
    session, t, victim = play.session, 4, 3
    seed, keys = seed_and_keys(play, victim)
    total = RING.unpack_body(inside(play.masked[victim])[1:])
    own = derive(shamir.to_bytes(shamir.reconstruct(seed, t)), b"self", session.context_of(victim))
    add_mask(total, own, negative=True)
    for other, shares in keys.items():
        key = mask_key(session, other, shamir.reconstruct(shares, t))
        public = play.server._adverts[victim][32:64]
        pair = agree(key, public, b"pair", pair_context(session, victim, other))
        add_mask(total, pair, negative=other > victim)
    assert total == play.vectors[victim]
    for alive in ([False] * 8, [True] * 3 + [False] * 5):
        with pytest.raises(RefusalError, match="fewer"):
            play.clients[0].receive(frame(SURVIVORS, play.session.tag, 0, pack_bits(alive)))
    assert play.clients[0].receive(messages[0])[1] == UNMASK  # nothing had changed


def test_survivors_that_never_shared() -> None:
    """A neighbour whose shares never came cannot be asked about as a survivor."""
    play = Play(6, 5, 3)
    messages = play.stage(range(6))
    play.reply(messages)
    messages = play.stage(range(5))  # client 5 sends no shares
    play.reply(messages)
    play.stage(range(5))
    with pytest.raises(RefusalError, match="never sent"):
        play.clients[0].receive(frame(SURVIVORS, play.session.tag, 0, pack_bits([True] * 5)))


def test_a_second_masked_vector() -> None:
    """Asked to mask again, with other neighbours missing, a client is silent.

    Two masked vectors of one client would differ by the masks alone, and show those.
    """
    play = Play(6, 5, 3)
    messages = play.until(1)
    play.reply(messages)
    for message in messages.values():
        with pytest.raises(ProtocolError):
            play.clients[0].receive(message)


def test_keys_or_a_graph_that_changed() -> None:
    """Told its neighbours again, with other keys, a client keeps to the first."""
    play = Play(6, 5, 3)
    messages = play.stage(range(6))
    play.reply(messages)
    for message in (messages[0], altered(messages[0], 8)):
        with pytest.raises(ProtocolError):
            play.clients[0].receive(message)
    play.reply(play.stage(range(6)))  # and goes on with it


def neighbours(play: Play, numbers: list[int], present: int) -> bytes:
    """Write a list of neighbours."""
    adverts = {n: inside(answer) for n, answer in play.answers.items()}
    body = struct.pack("<I", present)
    body += b"".join(struct.pack("<I", n) + adverts[n] for n in numbers)
    return frame(2, play.session.tag, 0, body)


def test_graphs_without_enough_neighbours() -> None:
    """A client with few neighbours, itself or one of them twice, would be easily unmasked.

    Its masks with corrupt neighbours are known to them: with those alone, and its seed, its vector
    is (as in `test_survivor_lists_below_the_threshold`).
    """
    play = Play(10, 6, 4)
    for numbers, present, says in (
        ([1, 2, 3], 10, "neighbours"),
        ([1, 2, 3, 4, 5], 10, "neighbours"),
        ([1, 2, 3], 4, "few"),
        ([1, 2, 3, 4, 5, 6], 4, "few"),
        ([1, 2, 3, 4, 5, 5], 10, "twice"),
        ([0, 1, 2, 3, 4, 5], 10, "itself"),
        ([1, 2, 3, 4, 5, 6], 11, "more"),
        ([], 0, "few"),
    ):
        with pytest.raises(RefusalError, match=says):
            play.clients[0].receive(neighbours(play, numbers, present))
    play.clients[0].receive(neighbours(play, [1, 2, 3, 4, 5, 6], 10))


def test_neighbours_of_one_key() -> None:
    """One party in the place of all neighbours is noticed by its keys."""
    play = Play(10, 6, 4)
    play.answers = dict.fromkeys(range(10), play.answers[1])
    with pytest.raises(RefusalError, match="same keys"):
        play.clients[0].receive(neighbours(play, [1, 2, 3, 4, 5, 6], 10))


def test_one_contribution_to_a_campaign(tmp_path: Path) -> None:
    """Asked again in another round, also after a crash, a client does not contribute twice.

    A round repeated without one user would show that user: the difference of two sums.
    """
    path = tmp_path / "ledger.sqlite"
    play = Play(4, 3, 2, campaign=b"plan")
    play.clients[0] = masked.Client(play.session, 0, play.vectors[0], FileLedger(path))
    play.answers[0] = play.clients[0].start()
    first = run(play, [4] * 4)
    again = Play(4, 3, 2, b"round 2", campaign=b"plan")  # a new process: only the file is left
    again.clients[0] = masked.Client(again.session, 0, again.vectors[0], FileLedger(path))
    again.answers[0] = again.clients[0].start()
    messages = again.stage(range(4))
    again.reply(messages)
    messages = again.stage(range(4))
    with pytest.raises(RefusalError, match="contribution"):
        again.clients[0].receive(messages[0])
    again.reply({n: m for n, m in messages.items() if n})
    again.reply(again.stage([1, 2, 3]))
    again.stage([1, 2, 3])
    assert again.server.result is not None
    # What two rounds with and without client 0 would have told, had the others answered twice:
    assert first.vector - again.server.result.vector == play.vectors[0]


def test_the_note_comes_before_the_vector() -> None:
    """If the note cannot be written, nothing leaves, and the client stays where it was."""

    class Full:
        full = False

        def note(self, *_: bytes) -> None:
            if self.full:
                raise OSError(28, "No space left on device")

        def has(self, entry: bytes) -> bool:
            return not entry

    play, ledger = Play(4, 3, 2), Full()
    play.clients[0] = masked.Client(play.session, 0, play.vectors[0], ledger)
    play.answers[0] = play.clients[0].start()
    play.reply(play.stage(range(4)))
    ledger.full = True
    messages = play.stage(range(4))
    for _ in range(2):
        with pytest.raises(OSError, match="space"):
            play.clients[0].receive(messages[0])


def test_ledgers(tmp_path: Path) -> None:
    """Notes are all or nothing, and survive; a file that is no ledger is refused."""
    for ledger in (MemoryLedger(), FileLedger(tmp_path / "a")):
        ledger.note(b"1", b"2")
        for entries in ((b"2",), (b"3", b"1"), (b"4", b"4")):
            with pytest.raises(RefusalError):
                ledger.note(*entries)
        ledger.note(b"3", b"4")
    with pytest.raises(RefusalError):
        FileLedger(tmp_path / "a").note(b"4")
    (tmp_path / "text").write_text("hello " * 99)
    with pytest.raises(Exception, match="ledger"):
        FileLedger(tmp_path / "text")


def test_forged_clients_need_signatures() -> None:
    """With a directory, a server that plays the neighbours itself is not believed."""
    identities = [Ed25519PrivateKey.generate() for _ in range(5)]
    directory = {i: key.public_key().public_bytes_raw() for i, key in enumerate(identities)}
    session = masked.Session(RING, b"c", Parameters(5, 4, 3), directory=directory)

    def client(number: int, identity: int) -> masked.Client:
        return masked.Client(session, number, RING.zeros(), MemoryLedger(), identities[identity])

    clients = [client(i, i) for i in range(5)]
    server = masked.Server(session, range(5))
    for each in clients:
        server.receive(each.number, each.start())
    messages = server.advance()
    assert clients[0].receive(messages[0])
    forged = client(1, 2)
    with pytest.raises(RefusalError, match="did not sign"):
        masked.Server(session, range(5)).receive(1, forged.start())
    with pytest.raises(RefusalError, match="did not sign"):
        clients[1].receive(altered(messages[1], 8 + 5))
    with pytest.raises(ProtocolError, match="signs"):
        masked.Client(session, 0, RING.zeros(), MemoryLedger())


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
            masked.Server(play.session, bad)


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
    session = masked.Session(RING, b"c", Parameters(3, 2, 2))
    other = Ring((Segment(5, 2**14), Segment(6, 509), Segment(6, largest_prime(17))))
    high = RingVector(RING, tuple(np.full(6, 2**20, np.uint64) for _ in range(3)))
    floats = RingVector(RING, tuple(np.full(6, np.nan) for _ in range(3)))
    for vector in (other.zeros(), high, floats):
        with pytest.raises(VectorError):
            masked.Client(session, 0, vector, MemoryLedger())


def test_secrets_are_dropped_and_not_shown() -> None:
    """After its part a client holds no secret; no message and no error shows one."""
    play = Play(4, 3, 2)
    secrets = [c._self_secret for c in play.clients] + [c._key_secret for c in play.clients]
    run(play, [4] * 4)
    for client in play.clients:
        held = vars(client)
        assert not {"_vector", "_self_secret", "_key_secret", "_mask_key", "_cipher_key"} & set(
            held
        )
        assert not any(str(secret) in repr(held) for secret in secrets)
    again = Play(4, 3, 2)
    assert {c._self_secret for c in again.clients}.isdisjoint(secrets)


# The helper protocol.


class HelperPlay:
    """A round of the two-server sum."""

    def __init__(self, n: int = 6, campaign: bytes = b"plan", context: bytes = b"round 1") -> None:
        self.helper = helper.Helper(X25519PrivateKey.generate(), MemoryLedger())
        self.session = helper.Session(RING, context, self.helper.public_key, 3, campaign)
        self.vectors = vectors(n)
        self.messages = [
            helper.Client(self.session, i, v, MemoryLedger()).contribute()
            for i, v in enumerate(self.vectors)
        ]
        self.server = helper.Server(self.session, range(n))


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
        helper.Session(RING, b"round 2", play.helper.public_key, 3, b"plan"),
    )
    message = helper.Client(later.session, 5, later.vectors[5], MemoryLedger()).contribute()
    server = helper.Server(later.session, range(9))
    server.receive(5, message)
    for number in (6, 7):
        server.receive(
            number, helper.Client(later.session, number, RING.zeros(), MemoryLedger()).contribute()
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

    def asked(what: list[bytes], session: helper.Session = play.session) -> bytes:
        return frame(12, session.tag, SERVER, key + b"".join(what))

    with pytest.raises(RefusalError, match="smaller"):
        play.helper.answer(play.session, asked(records[:2]))
    other = helper.Session(RING, b"round 2", play.helper.public_key, 3, b"plan")
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
    client = helper.Client(play.session, 0, play.vectors[0], MemoryLedger())
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
        helper.Server(play.session, [1, 1])
    with pytest.raises(ProtocolError, match="32 bytes"):
        helper.Session(RING, b"", b"short")


def test_points_of_small_order_are_refused() -> None:
    """A public key that would make the shared secret known to all is no key."""
    with pytest.raises(ProtocolError, match="public key"):
        agree(X25519PrivateKey.generate(), bytes(32), b"x", b"")


# Both, in one process.


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("kind", [MaskedSum, HelperSum])
def test_local_sums(kind: type[MaskedSum] | type[HelperSum], dropout: float) -> None:
    """Both protocols give the clear sum of those who stay, and say what they weigh."""
    given = [Contribution(vector) for vector in vectors(60)]
    clear = ClearSum()(RING, given, b"")
    secure = kind(dropout, b"seed")
    result = secure(RING, given, b"round")
    if dropout:
        assert result.users < 60
        assert secure(RING, given, b"other").users != 0
    else:
        assert result == Contribution(result.vector, 60)
        assert result.vector == clear.vector
    assert secure.up_bytes > secure.vector_bytes == RING.wire_bytes
    with pytest.raises(ProtocolError, match="one vector a user"):
        secure(RING, [Contribution(RING.zeros(), 5)] * 5, b"")
    with pytest.raises(RoundFailed):
        secure(RING, given[:2], b"few")


def test_shares_are_small() -> None:
    """At 1,000 clients the protocol adds less than 5 KB to what a client sends."""
    session = masked.Session(RING, b"", MaskedSum().planned(1000))
    assert session.traffic.up - session.traffic.vector < 5_000


def test_other_mask_keys_are_noticed() -> None:
    """Shown other mask keys of its neighbours, a client's shares do not open for them.

    Otherwise its pairwise masks would be the server's own, and its vector be open once its seed is.
    """
    play = Play(5, 4, 3)
    messages = play.stage(range(5))
    others = [X25519PrivateKey.generate() for _ in range(4)]
    body = bytearray(inside(messages[0]))
    for place, key in enumerate(others):
        at = 4 + place * 68 + 4 + 32
        body[at : at + 32] = key.public_key().public_bytes_raw()
    messages[0] = frame(2, play.session.tag, 0, bytes(body))
    play.reply(messages)
    messages = play.stage(range(5))
    with pytest.raises(RefusalError, match="0 neighbours sent shares that open"):
        play.clients[0].receive(messages[0])
    play.reply({n: m for n, m in messages.items() if n})
    play.reply(play.stage(range(1, 5)))
    play.stage(range(1, 5))
    assert play.server.result is not None  # the others go on, without masks of its
    assert play.server.result.vector == RING.sum(play.vectors[1:])


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


def test_too_few_vectors_are_never_unmasked() -> None:
    """With fewer vectors than planned for nobody is asked for shares, and nobody would give any."""
    session = masked.Session(RING, b"", Parameters(6, 5, 2, least=5))
    clients = [masked.Client(session, i, RING.zeros(), MemoryLedger()) for i in range(6)]
    server = masked.Server(session, range(6))
    answers = {c.number: c.start() for c in clients}
    for _ in range(2):
        for number, answer in answers.items():
            server.receive(number, answer)
        answers = {n: clients[n].receive(m) for n, m in server.advance().items()}
    for number in range(4):
        server.receive(number, answers[number])
    with pytest.raises(RoundFailed, match=r"4 vectors arrived, 4 of them .* it takes 5"):
        server.advance()
    place = [number in server._graph[0][:3] for number in server._graph[0]]
    few = frame(SURVIVORS, session.tag, 0, pack_bits(place))
    with pytest.raises(RefusalError, match="3 surviving neighbours are fewer than the 4"):
        clients[0].receive(few)


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


def test_clients_that_forget_between_steps() -> None:
    """Written down after every step and read back before the next, clients do as they would."""
    play = Play(5, 4, 3)
    everybody = range(5)
    messages = play.stage(everybody)
    for _ in range(3):
        play.clients = [
            masked.Client.recalled(play.session, c.memory(), play.ledgers[c.number])
            for c in play.clients
        ]
        play.reply(messages)
        messages = play.stage(everybody)
    assert play.server.result is not None
    assert play.server.result.vector == RING.sum(play.vectors)
    fresh = masked.Client(play.session, 0, play.vectors[0], MemoryLedger())
    with pytest.raises(ProtocolError, match="nothing to remember"):
        fresh.memory()
    other = masked.Session(RING, b"round 2", Parameters(5, 4, 3))
    with pytest.raises(ProtocolError, match="another session"):
        masked.Client.recalled(other, play.clients[0].memory(), play.ledgers[0])


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_copy_of_the_memory_gives_no_second_answer(step: int) -> None:
    """Two processes with one memory, asked at the same time: the ledger lets one of them answer.

    Otherwise two lists of survivors would give a curious server both kinds of share.
    """
    play = Play(5, 4, 3)
    messages = play.until(step)
    copy = masked.Client.recalled(play.session, play.clients[0].memory(), play.ledgers[0])
    play.clients[0].receive(messages[0])
    with pytest.raises(RefusalError, match="one only"):
        copy.receive(messages[0])


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


def test_fewer_clients_than_planned_for() -> None:
    """Parameters hold for as many as were planned: below, clients and server refuse."""
    session = masked.Session(RING, b"", Parameters(10, 6, 4, least=9))
    clients = [masked.Client(session, i, RING.zeros(), MemoryLedger()) for i in range(10)]
    adverts = {c.number: c.start() for c in clients}
    server = masked.Server(session, range(10))
    for number in range(8):
        server.receive(number, adverts[number])
    with pytest.raises(RoundFailed, match="it takes 9"):
        server.advance()


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
            masked.Client(play.session, number, RING.zeros(), MemoryLedger())  # type: ignore[arg-type]
        with pytest.raises(ProtocolError, match="numbered"):
            masked.Server(play.session, [1, 2, number])  # type: ignore[list-item]
    wider = Ring(tuple(Segment(s.length, 2**20) for s in RING.segments))
    with pytest.raises(VectorError, match="another ring"):
        masked.Client(play.session, 0, wider.zeros(), MemoryLedger())


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
    helper.Client(play.session, 1, play.vectors[1], ledger).contribute()
    again = helper.Client(play.session, 2, play.vectors[1], ledger)
    with pytest.raises(RefusalError, match="contribution"):
        again.contribute()
