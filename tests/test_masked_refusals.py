"""What clients of a masked sum refuse, and what a curious server would have learnt."""

import itertools
import struct
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch import Ring, RingVector, Segment
from linsketch.errors import ProtocolError, RefusalError, RoundFailed
from linsketch.records.ledger import FileLedger
from linsketch.securesum import (
    MemoryLedger,
    Parameters,
    masked,
    shamir,
)
from linsketch.securesum.agreement import agree
from linsketch.securesum.frames import frame, pack_bits
from linsketch.securesum.masked.session import SURVIVORS, UNMASK, mask_key, pair_context
from linsketch.securesum.masks import add_mask, derive
from tests.sums import RING, Play, altered, inside, run


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
    play.clients[0] = masked.MaskedClient(play.session, 0, play.vectors[0], FileLedger(path))
    play.answers[0] = play.clients[0].start()
    first = run(play, [4] * 4)
    again = Play(4, 3, 2, b"round 2", campaign=b"plan")  # a new process: only the file is left
    again.clients[0] = masked.MaskedClient(again.session, 0, again.vectors[0], FileLedger(path))
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
    play.clients[0] = masked.MaskedClient(play.session, 0, play.vectors[0], ledger)
    play.answers[0] = play.clients[0].start()
    play.reply(play.stage(range(4)))
    ledger.full = True
    messages = play.stage(range(4))
    for _ in range(2):
        with pytest.raises(OSError, match="space"):
            play.clients[0].receive(messages[0])


def test_forged_clients_need_signatures() -> None:
    """With a directory, a server that plays the neighbours itself is not believed."""
    identities = [Ed25519PrivateKey.generate() for _ in range(5)]
    directory = {i: key.public_key().public_bytes_raw() for i, key in enumerate(identities)}
    session = masked.MaskedSession(RING, b"c", Parameters(5, 4, 3), directory=directory)

    def client(number: int, identity: int) -> masked.MaskedClient:
        return masked.MaskedClient(
            session, number, RING.zeros(), MemoryLedger(), identities[identity]
        )

    clients = [client(i, i) for i in range(5)]
    server = masked.MaskedServer(session, range(5))
    for each in clients:
        server.receive(each.number, each.start())
    messages = server.advance()
    assert clients[0].receive(messages[0])
    forged = client(1, 2)
    with pytest.raises(RefusalError, match="did not sign"):
        masked.MaskedServer(session, range(5)).receive(1, forged.start())
    with pytest.raises(RefusalError, match="did not sign"):
        clients[1].receive(altered(messages[1], 8 + 5))
    with pytest.raises(ProtocolError, match="signs"):
        masked.MaskedClient(session, 0, RING.zeros(), MemoryLedger())


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


def test_too_few_vectors_are_never_unmasked() -> None:
    """With fewer vectors than planned for nobody is asked for shares, and nobody would give any."""
    session = masked.MaskedSession(RING, b"", Parameters(6, 5, 2, least=5))
    clients = [masked.MaskedClient(session, i, RING.zeros(), MemoryLedger()) for i in range(6)]
    server = masked.MaskedServer(session, range(6))
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


def test_clients_that_forget_between_steps() -> None:
    """Written down after every step and read back before the next, clients do as they would."""
    play = Play(5, 4, 3)
    everybody = range(5)
    messages = play.stage(everybody)
    for _ in range(3):
        play.clients = [
            masked.MaskedClient.recalled(play.session, c.memory(), play.ledgers[c.number])
            for c in play.clients
        ]
        play.reply(messages)
        messages = play.stage(everybody)
    assert play.server.result is not None
    assert play.server.result.vector == RING.sum(play.vectors)
    fresh = masked.MaskedClient(play.session, 0, play.vectors[0], MemoryLedger())
    with pytest.raises(ProtocolError, match="nothing to remember"):
        fresh.memory()
    other = masked.MaskedSession(RING, b"round 2", Parameters(5, 4, 3))
    with pytest.raises(ProtocolError, match="another session"):
        masked.MaskedClient.recalled(other, play.clients[0].memory(), play.ledgers[0])


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_copy_of_the_memory_gives_no_second_answer(step: int) -> None:
    """Two processes with one memory, asked at the same time: the ledger lets one of them answer.

    Otherwise two lists of survivors would give a curious server both kinds of share.
    """
    play = Play(5, 4, 3)
    messages = play.until(step)
    copy = masked.MaskedClient.recalled(play.session, play.clients[0].memory(), play.ledgers[0])
    play.clients[0].receive(messages[0])
    with pytest.raises(RefusalError, match="one only"):
        copy.receive(messages[0])


def test_fewer_clients_than_planned_for() -> None:
    """Parameters hold for as many as were planned: below, clients and server refuse."""
    session = masked.MaskedSession(RING, b"", Parameters(10, 6, 4, least=9))
    clients = [masked.MaskedClient(session, i, RING.zeros(), MemoryLedger()) for i in range(10)]
    adverts = {c.number: c.start() for c in clients}
    server = masked.MaskedServer(session, range(10))
    for number in range(8):
        server.receive(number, adverts[number])
    with pytest.raises(RoundFailed, match="it takes 9"):
        server.advance()


def test_masked_vectors_look_random() -> None:
    """Two equal inputs give unrelated bytes, and a masked vector is uniform over the ring."""
    ring = Ring((Segment(20_000, 16), Segment(20_000, 13)))
    session = masked.MaskedSession(ring, b"c", Parameters(3, 2, 2))
    clients = [masked.MaskedClient(session, i, ring.zeros(), MemoryLedger()) for i in range(3)]
    server = masked.MaskedServer(session, range(3))
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
