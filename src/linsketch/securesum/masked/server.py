"""The server of a masked sum: it takes what arrives, and closes stages when its caller says so.

It holds a running total, the masked vectors of one stage (should one have to be left out again),
and O(clients * neighbours) of the rest.
"""

import struct
from collections import Counter
from collections.abc import Iterable
from enum import IntEnum

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch.errors import ProtocolError, RoundFailed, WireError
from linsketch.rings import Contribution
from linsketch.securesum import shamir
from linsketch.securesum.agreement import KEY_BYTES, agree, public_bytes
from linsketch.securesum.frames import body_of, checked_number, frame, pack_bits, unpack_bits
from linsketch.securesum.masked.session import (
    ADVERTISE,
    COMMITMENT_BYTES,
    INBOX,
    MASKED,
    NEIGHBOURS,
    SEALED_BYTES,
    SHARES,
    SURVIVORS,
    UNMASK,
    MaskedSession,
    commit,
    mask_key,
    pair_context,
)
from linsketch.securesum.masks import add_into, add_mask, derive
from linsketch.securesum.shamir import SHARE_BYTES


class Stage(IntEnum):
    """What the server collects; the value is the kind of message."""

    ADVERTISE = ADVERTISE
    SHARES = SHARES
    MASKED = MASKED
    UNMASK = UNMASK
    CLOSED = 0


class MaskedServer:
    """One session: `receive` messages, `advance` to the next stage, read `result` at the end."""

    def __init__(self, session: MaskedSession, members: Iterable[int]) -> None:
        self.session = session
        self.members = [checked_number(member) for member in members]
        if len(set(self.members)) < len(self.members):
            raise ProtocolError("A client number comes twice.")
        if not 3 <= len(self.members) <= session.parameters.clients:
            raise ProtocolError(
                f"A session of {session.parameters.clients} clients has 3 members or more, not "
                f"{len(self.members)}."
            )
        self.stage = Stage.ADVERTISE
        self.result: Contribution | None = None
        self._expected = set(self.members)
        self._adverts: dict[int, bytes] = {}
        self._graph: dict[int, list[int]] = {}
        self._commitments: dict[int, bytes] = {}
        self._sealed: dict[int, list[bytes]] = {}
        self._inbox: dict[int, list[int]] = {}  # neighbours whose shares a client was sent, or has
        self._vectors: dict[int, bytes] = {}
        self._total = session.ring.zeros()
        self._arrived: set[int] = set()
        self._shares: dict[int, dict[int, int]] = {}  # of whom: {place of the holder: share}
        self._probe = X25519PrivateKey.generate()

    def receive(self, sender: int, data: bytes) -> None:
        """Take a client's message; `sender` is whom the transport knows it to come from."""
        if self.stage is Stage.CLOSED:
            raise ProtocolError("The session is closed.")
        if sender not in self._expected:
            raise ProtocolError(f"Client {sender} is a stranger here, or has answered already.")
        many = len(self._graph.get(sender, ()))
        sizes = {
            Stage.ADVERTISE: self.session.advert_bytes,
            Stage.SHARES: COMMITMENT_BYTES + many * SEALED_BYTES,
            Stage.MASKED: -(-many // 8) + self.session.ring.wire_bytes,
            Stage.UNMASK: len(self._inbox.get(sender, ())) * SHARE_BYTES,
        }
        body = body_of(data, self.stage, self.session.tag, sender, sizes[self.stage])
        {
            Stage.ADVERTISE: self._take_advert,
            Stage.SHARES: self._take_shares,
            Stage.MASKED: self._take_masked,
            Stage.UNMASK: self._take_unmask,
        }[self.stage](sender, body)
        self._expected.discard(sender)

    def _take_advert(self, sender: int, body: bytes) -> None:
        self.session.check_advert(sender, body)
        for key in (body[:KEY_BYTES], body[KEY_BYTES : 2 * KEY_BYTES]):
            agree(self._probe, key, b"probe", b"")  # raises for what no key can be agreed with
        self._adverts[sender] = body

    def _take_shares(self, sender: int, body: bytes) -> None:
        self._commitments[sender] = body[:COMMITMENT_BYTES]
        starts = range(COMMITMENT_BYTES, len(body), SEALED_BYTES)
        self._sealed[sender] = [body[i : i + SEALED_BYTES] for i in starts]

    def _take_masked(self, sender: int, body: bytes) -> None:
        others = self._graph[sender]
        flags = -(-len(others) // 8)
        with_whom = unpack_bits(body[:flags], len(others))
        partners = [other for other, flag in zip(others, with_whom, strict=True) if flag]
        if not set(partners) <= set(self._inbox[sender]):
            raise ProtocolError(f"Client {sender} masked with neighbours that sent it no shares.")
        try:
            vector = self.session.ring.unpack_body(body[flags:])
        except WireError as error:
            raise ProtocolError(f"Client {sender}: {error}") from None
        add_into(self._total, vector)
        self._vectors[sender] = body[flags:]
        self._inbox[sender] = partners
        self._arrived.add(sender)

    def _take_unmask(self, sender: int, body: bytes) -> None:
        owners = self._inbox[sender]
        shares = [
            shamir.from_bytes(body[i : i + SHARE_BYTES]) for i in range(0, len(body), SHARE_BYTES)
        ]
        for owner, share in zip(owners, shares, strict=True):
            self._shares.setdefault(owner, {})[self._graph[owner].index(sender) + 1] = share

    def advance(self) -> dict[int, bytes]:
        """Close the stage with those who answered; return what each client is to be sent.

        Raises `RoundFailed` if too few are left: then there is no sum, and the cohort is burned.
        """
        if self.stage is Stage.CLOSED:
            raise ProtocolError("The session is closed.")
        try:
            return {
                Stage.ADVERTISE: self._tie,
                Stage.SHARES: self._forward,
                Stage.MASKED: self._survivors,
                Stage.UNMASK: self._finish,
            }[self.stage]()
        except (RoundFailed, ProtocolError) as error:
            self.stage = Stage.CLOSED
            self._total = self.session.ring.zeros()
            self._shares, self._sealed, self._commitments, self._vectors = {}, {}, {}, {}
            raise RoundFailed(str(error)) from None

    def _next(self, stage: Stage, messages: dict[int, bytes]) -> dict[int, bytes]:
        self.stage = stage
        self._expected = set(messages)
        return messages

    def _tie(self) -> dict[int, bytes]:
        """Seat those who advertised on the circle and tell each its neighbours."""
        if len(self._adverts) < self.session.least:
            raise RoundFailed(
                f"{len(self._adverts)} clients advertised keys; it takes {self.session.least}."
            )
        self._graph = self.session.graph(list(self._adverts))
        present = struct.pack("<I", len(self._adverts))
        messages = {}
        for own, others in self._graph.items():
            body = b"".join(struct.pack("<I", other) + self._adverts[other] for other in others)
            messages[own] = frame(NEIGHBOURS, self.session.tag, own, present + body)
        return self._next(Stage.SHARES, messages)

    def _forward(self) -> dict[int, bytes]:
        """Hand every client the shares that its neighbours sealed for it."""
        threshold = self.session.parameters.threshold
        shared = set(self._sealed)
        # Whoever has too few neighbours left sits this round out, before anybody masks with it.
        while alone := {
            own for own in shared if sum(o in shared for o in self._graph[own]) < threshold
        }:
            shared -= alone
        self._sealed = {own: self._sealed[own] for own in shared}
        messages = {}
        for own in self._sealed:
            others = self._graph[own]
            there = [other in self._sealed for other in others]
            self._inbox[own] = [other for other, flag in zip(others, there, strict=True) if flag]
            body = b"".join(
                self._sealed[other][self._graph[other].index(own)] for other in self._inbox[own]
            )
            messages[own] = frame(INBOX, self.session.tag, own, pack_bits(there) + body)
        if len(messages) < self.session.least:
            raise RoundFailed(
                f"{len(messages)} clients shared secrets; it takes {self.session.least}."
            )
        self._sealed = {own: [] for own in self._sealed}
        return self._next(Stage.MASKED, messages)

    def _survivors(self) -> dict[int, bytes]:
        """Tell every client which of its neighbours' vectors arrived, and are in the sum."""
        came = len(self._arrived)
        self._leave_out(self._disputed())
        while lonely := self._unrecoverable():
            self._leave_out(lonely)
        self._vectors = {}
        if len(self._arrived) < self.session.least:  # before anybody's masks come off
            raise RoundFailed(
                f"{came} vectors arrived, {len(self._arrived)} of them with masks that can come "
                f"off; it takes {self.session.least}."
            )
        messages = {}
        for own in self._arrived:
            held = self._arrived.intersection(self._inbox[own])
            alive = [other in held for other in self._graph[own]]
            messages[own] = frame(SURVIVORS, self.session.tag, own, pack_bits(alive))
        return self._next(Stage.UNMASK, messages)

    def _leave_out(self, clients: set[int]) -> None:
        """Treat clients as if their vectors had not arrived."""
        self._arrived -= clients
        for own in clients:
            self._total -= self.session.ring.unpack_body(self._vectors[own])

    def _disputed(self) -> set[int]:
        """Return clients to leave out, so that no pair is left of which one masked alone.

        Either one sent a box that does not open, or the other says so and lies. Whoever is in the
        most disputes goes first: alone against several it stands out. Of a single pair the sender
        of the box goes.
        """
        partners = {own: set(self._inbox[own]) for own in self._arrived}
        disputes = [
            (own, other)  # the sender, and who did not open its box
            for own in self._arrived
            for other in partners[own] & self._arrived
            if own not in partners[other]
        ]
        gone: set[int] = set()
        while disputes:
            counts = Counter(client for pair in disputes for client in pair)
            senders = {sender for sender, _ in disputes}
            worst = max(counts, key=lambda client: (counts[client], client in senders))
            gone.add(worst)
            disputes = [pair for pair in disputes if worst not in pair]
        return gone

    def _unrecoverable(self) -> set[int]:
        """Return the clients with a mask that too few hold the shares of."""
        threshold = self.session.parameters.threshold
        holders = Counter(other for own in self._arrived for other in self._inbox[own])
        return {
            own
            for own in self._arrived
            if holders[own] < threshold
            or any(holders[other] < threshold for other in self._inbox[own])
        }

    def _finish(self) -> dict[int, bytes]:
        """Take off the survivors' own masks, and those they share with the ones that are gone."""
        total = self._total
        for own in self._arrived:
            secret = self._secret(own)
            if commit(self.session, own, secret) != self._commitments[own]:
                raise RoundFailed(f"The shares of client {own}'s seed do not reconstruct it.")
            seed = derive(shamir.to_bytes(secret), b"self", self.session.context_of(own))
            add_mask(total, seed, negative=True)
        for gone in self._sealed.keys() - self._arrived:
            partners = [
                other
                for other in self._graph[gone]
                if other in self._arrived and gone in self._inbox[other]
            ]
            if not partners:
                continue
            key = mask_key(self.session, gone, self._secret(gone))
            if public_bytes(key) != self._adverts[gone][KEY_BYTES : 2 * KEY_BYTES]:
                raise RoundFailed(f"The shares of client {gone}'s key do not reconstruct it.")
            for other in partners:
                public = self._adverts[other][KEY_BYTES : 2 * KEY_BYTES]
                context = pair_context(self.session, gone, other)
                pair = agree(key, public, b"pair", context)
                add_mask(total, pair, negative=other < gone)  # it was added the other way round
        self.result = Contribution(total, len(self._arrived))
        self._shares = {}
        return self._next(Stage.CLOSED, {})

    def _secret(self, owner: int) -> int:
        shares = self._shares.get(owner, {})
        threshold = self.session.parameters.threshold
        if len(shares) < threshold:
            raise RoundFailed(
                f"{len(shares)} shares of client {owner}'s secret came; it takes {threshold}."
            )
        return shamir.reconstruct(shares, threshold)
