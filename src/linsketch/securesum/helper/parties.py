"""Client, server and helper of the two-server sum: bytes in, bytes out.

A client sends vector + mask to the server, and with it what the helper needs to know the mask: an
ephemeral public key. Mask and confirmation come out of the key that it agrees on with the
helper's, bound to session and client. The server adds up the masked vectors and asks the helper
for the sum of the masks of those it counts. Neither sees a vector as long as they do not collude.
The helper leaves out whoever sealed something else for it, and proves by a code that it is the one
that the session names.
"""

import hashlib
import hmac
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch.errors import ProtocolError, RefusalError, RoundFailed, VectorError, WireError
from linsketch.rings import Contribution, Ring, RingVector
from linsketch.securesum.agreement import KEY_BYTES, agree, public_bytes
from linsketch.securesum.base import Ledger, counted_entry, own_entry
from linsketch.securesum.frames import (
    FRAME_BYTES,
    SERVER,
    body_of,
    checked_number,
    frame,
    pack_bits,
    unpack_bits,
)
from linsketch.securesum.masks import add_into, add_mask
from linsketch.validation import instance, whole_number

CONTRIBUTE, REQUEST, REPLY = 11, 12, 13
CONFIRMATION_BYTES = 16
DIGEST_BYTES = 16
CODE_BYTES = 16
SEALED_BYTES = KEY_BYTES + CONFIRMATION_BYTES


@dataclass(frozen=True)
class HelperSession:
    """One round of one campaign, all of it public."""

    ring: Ring
    context: bytes
    helper_key: bytes  # the helper's public key
    smallest_cohort: int = 3
    campaign: bytes = b""

    def __post_init__(self) -> None:
        instance(self, "ring", Ring)
        instance(self, "context", bytes)
        instance(self, "campaign", bytes)
        whole_number(self, "smallest_cohort", 3, 2**32 - 2)
        if not isinstance(self.helper_key, bytes) or len(self.helper_key) != KEY_BYTES:
            raise ProtocolError("The helper's public key has 32 bytes.")

    @cached_property
    def tag(self) -> bytes:
        """16 bytes that every message names."""
        numbers = struct.pack("<II", self.smallest_cohort, len(self.campaign))
        head = b"linsketch/helper/1" + numbers + self.campaign + self.helper_key
        return hashlib.sha256(head + self.ring.tag(self.context)).digest()[:16]

    @property
    def client_bytes(self) -> int:
        """Bytes that a client sends."""
        return FRAME_BYTES + SEALED_BYTES + self.ring.wire_bytes

    def keys(
        self, private: X25519PrivateKey, public: bytes, number: int, sent: bytes
    ) -> tuple[bytes, bytes]:
        """Return the mask's key and its confirmation, from either side of the agreement."""
        context = self.tag + struct.pack("<I", number) + sent
        both = agree(private, public, b"helper", context, KEY_BYTES + CONFIRMATION_BYTES)
        return both[:KEY_BYTES], both[KEY_BYTES:]


class HelperClient:
    """One user's part: one message, once."""

    def __init__(
        self, session: HelperSession, number: int, vector: RingVector, ledger: Ledger
    ) -> None:
        if vector.ring != session.ring:
            raise VectorError("The vector belongs to another ring than the session's.")
        self.session = session
        self.number = checked_number(number)
        self._vector: RingVector | None = session.ring.vector(vector.arrays)  # checked, a copy
        self._ledger = ledger

    def contribute(self) -> bytes:
        """Return the message for the server; the ledger has noted it by then."""
        session, total = self.session, self._vector
        if total is None:
            raise ProtocolError(f"Client {self.number} is done.")
        ephemeral = X25519PrivateKey.generate()
        sent = public_bytes(ephemeral)
        key, confirmation = session.keys(ephemeral, session.helper_key, self.number, sent)
        self._ledger.note(own_entry(session.campaign))  # before it leaves
        self._vector = None
        add_mask(total, key)
        body = sent + confirmation + total.pack_body()
        return frame(CONTRIBUTE, session.tag, self.number, body)


class HelperServer:
    """Adds up masked vectors as they come; then `request`, and `finish` with the reply."""

    def __init__(self, session: HelperSession, members: Iterable[int]) -> None:
        self.session = session
        given = [checked_number(member) for member in members]
        self._expected = set(given)
        if len(self._expected) < len(given):
            raise ProtocolError("A client number comes twice.")
        self._total = session.ring.zeros()
        self._sealed: dict[int, bytes] = {}
        self._vectors: dict[int, bytes] = {}  # should one have to be left out again
        self._ephemeral = X25519PrivateKey.generate()
        self._asked = False
        self.result: Contribution | None = None

    def receive(self, sender: int, data: bytes) -> None:
        """Take a client's message; `sender` is whom the transport knows it to come from."""
        if self._asked or sender not in self._expected:
            raise ProtocolError(f"Client {sender} is a stranger here, too late, or counted.")
        size = SEALED_BYTES + self.session.ring.wire_bytes
        body = body_of(data, CONTRIBUTE, self.session.tag, sender, size)
        try:
            vector = self.session.ring.unpack_body(body[SEALED_BYTES:])
        except WireError as error:
            raise ProtocolError(f"Client {sender}: {error}") from None
        add_into(self._total, vector)
        self._sealed[sender], self._vectors[sender] = body[:SEALED_BYTES], body[SEALED_BYTES:]
        self._expected.discard(sender)

    def request(self) -> bytes:
        """Return the message for the helper: whom to count, with what they sealed for it."""
        if self._asked:
            raise ProtocolError("The helper has been asked.")
        if len(self._sealed) < self.session.smallest_cohort:
            raise RoundFailed(
                f"{len(self._sealed)} vectors arrived; it takes {self.session.smallest_cohort}."
            )
        self._asked = True
        body = b"".join(struct.pack("<I", n) + sealed for n, sealed in self._sealed.items())
        request = frame(REQUEST, self.session.tag, SERVER, public_bytes(self._ephemeral) + body)
        self._request = _digest(request)
        return request

    def finish(self, reply: bytes) -> Contribution:
        """Take the sum of the masks off the sum of the vectors of those the helper counts."""
        if not self._asked or self.result:
            raise ProtocolError("There is no answer to wait for.")
        session, asked = self.session, list(self._sealed)
        flags = -(-len(asked) // 8)
        size = DIGEST_BYTES + flags + session.ring.wire_bytes + CODE_BYTES
        body = body_of(reply, REPLY, session.tag, SERVER, size)
        content, code = body[:-CODE_BYTES], body[-CODE_BYTES:]
        key = _reply_key(session, self._ephemeral, session.helper_key)
        if not hmac.compare_digest(_code(key, content), code):
            raise ProtocolError("The answer is not from the helper that the session names.")
        if content[:DIGEST_BYTES] != self._request:
            raise ProtocolError("The answer is to another request.")
        counted = unpack_bits(content[DIGEST_BYTES : DIGEST_BYTES + flags], len(asked))
        if sum(counted) < session.smallest_cohort:
            raise RoundFailed(
                f"The helper counts {sum(counted)} clients; it takes {session.smallest_cohort}."
            )
        try:
            total = self._total - session.ring.unpack_body(content[DIGEST_BYTES + flags :])
        except WireError as error:
            raise ProtocolError(f"The helper: {error}") from None
        for number, there in zip(asked, counted, strict=True):
            if not there:
                total -= session.ring.unpack_body(self._vectors[number])
        self._vectors = {}
        self.result = Contribution(total, sum(counted))
        return self.result


class Helper:
    """Holds a private key, and a ledger of whom it has counted in which campaign.

    It answers once in a session, for a cohort of the planned size, and for no client twice in a
    campaign: two sums that differ in one client would show that client. Client numbers are
    those of the campaign, not of the round.
    """

    def __init__(self, private: X25519PrivateKey, ledger: Ledger) -> None:
        self._private = private
        self._ledger = ledger

    @property
    def public_key(self) -> bytes:
        """What clients seal for."""
        return public_bytes(self._private)

    def answer(self, session: HelperSession, request: bytes) -> bytes:
        """Return the sum of the masks of the clients that the server counts.

        Who sealed what is not for this round and client is left out, and the answer says so.
        """
        if session.helper_key != self.public_key:
            raise RefusalError("The session is for another helper.")
        record = 4 + SEALED_BYTES
        body = body_of(request, REQUEST, session.tag, SERVER, None)
        server, body = body[:KEY_BYTES], body[KEY_BYTES:]
        if len(server) < KEY_BYTES or len(body) % record:
            raise ProtocolError("The request is cut short.")
        records = [body[i : i + record] for i in range(0, len(body), record)]
        numbers = [struct.unpack_from("<I", each)[0] for each in records]
        keys = [self._opened(session, *pair) for pair in zip(numbers, records, strict=True)]
        counted = [number for number, key in zip(numbers, keys, strict=True) if key]
        if len(counted) < session.smallest_cohort:
            raise RefusalError(
                f"A cohort of {len(counted)} is smaller than {session.smallest_cohort}: the sum "
                "would show too much."
            )
        total = session.ring.zeros()
        for key in filter(None, keys):
            add_mask(total, key)
        reply_key = _reply_key(session, self._private, server)
        entries = (counted_entry(session.campaign, number) for number in counted)
        self._ledger.note(b"linsketch/answered" + session.tag, *entries)
        content = _digest(request) + pack_bits([bool(key) for key in keys]) + total.pack_body()
        return frame(REPLY, session.tag, SERVER, content + _code(reply_key, content))

    def prove(self, challenge: bytes, context: bytes) -> bytes:
        """Answer a challenge as only the owner of the private key can."""
        return agree(self._private, challenge, b"helper's proof", context)

    def _opened(self, session: HelperSession, number: int, record: bytes) -> bytes | None:
        """Return the key of a client's mask, None if it sealed something else."""
        sent, confirmation = record[4 : 4 + KEY_BYTES], record[4 + KEY_BYTES :]
        try:
            key, expected = session.keys(self._private, sent, number, sent)
        except ProtocolError:  # no key can be agreed with what it sent
            return None
        return key if hmac.compare_digest(expected, confirmation) else None


class Challenge:
    """Run by the server: find out whether a node is the helper."""

    def __init__(self, helper_key: bytes, context: bytes) -> None:
        private = X25519PrivateKey.generate()
        self.public = public_bytes(private)
        self._expected = agree(private, helper_key, b"helper's proof", context)

    def met(self, proof: bytes) -> bool:
        """Tell whether a proof is the helper's."""
        return hmac.compare_digest(self._expected, proof)


def _reply_key(session: HelperSession, private: X25519PrivateKey, public: bytes) -> bytes:
    return agree(private, public, b"helper's reply", session.tag)


def _code(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")[:CODE_BYTES]


def _digest(request: bytes) -> bytes:
    return hashlib.sha256(request).digest()[:DIGEST_BYTES]
