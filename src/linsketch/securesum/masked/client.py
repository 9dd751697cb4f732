"""The client of a masked sum (Bell et al. 2020, semi-honest): bytes in, bytes out.

A message that is out of order, of another session or client, of the wrong size or tampered with
raises and changes nothing. Every answer that gives something away is noted in the ledger first:
not even a copy of the client's memory gives another. Threat model: a server that is curious, and
up to the planned share of clients that help it (docs/security.md).
"""

import json
import struct
from enum import Enum
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from linsketch.errors import ProtocolError, RefusalError, VectorError
from linsketch.rings import RingVector
from linsketch.securesum import shamir
from linsketch.securesum.agreement import KEY_BYTES, agree, public_bytes
from linsketch.securesum.base import Ledger, own_entry, step_entry
from linsketch.securesum.frames import body_of, checked_number, frame, pack_bits, unpack_bits
from linsketch.securesum.masked.session import (
    ADVERTISE,
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
from linsketch.securesum.masks import add_mask, derive
from linsketch.securesum.shamir import SHARE_BYTES

_NONCE = bytes(12)  # every key seals one message


class Stage(Enum):
    """What a client waits for."""

    START = "to be started"
    NEIGHBOURS = "its neighbours"
    INBOX = "its neighbours' shares"
    SURVIVORS = "the list of survivors"
    DONE = "nothing: it is done"


class MaskedClient:
    """One user's part in one session: `start`, then `receive` three times.

    The vector leaves only masked, and only after the ledger has noted the contribution.
    """

    def __init__(
        self,
        session: MaskedSession,
        number: int,
        vector: RingVector,
        ledger: Ledger,
        identity: Ed25519PrivateKey | None = None,
    ) -> None:
        if session.signed != (identity is not None):
            raise ProtocolError("A client signs if and only if the session has a directory.")
        if vector.ring != session.ring:
            raise VectorError("The vector belongs to another ring than the session's.")
        self.session = session
        self.number = checked_number(number)
        self.stage = Stage.START
        self._vector = session.ring.vector(vector.arrays)  # checked, and a copy
        self._ledger = ledger
        self._identity = identity
        self._present = 0  # clients that advertised
        self._neighbours: list[int] = []
        self._adverts: list[bytes] = []
        self._held: dict[int, tuple[int, int]] = {}  # place among the neighbours: their shares

    def start(self) -> bytes:
        """Make fresh keys and advertise the public ones."""
        self._expect(Stage.START)
        self._cipher_key = X25519PrivateKey.generate()
        self._key_secret, self._self_secret = shamir.new_secret(), shamir.new_secret()
        self._mask_key = mask_key(self.session, self.number, self._key_secret)
        advert = public_bytes(self._cipher_key) + public_bytes(self._mask_key)
        if self._identity:
            advert += self._identity.sign(self.session.signed_text(self.number, advert))
        self._advert = advert
        self.stage = Stage.NEIGHBOURS
        return frame(ADVERTISE, self.session.tag, self.number, advert)

    def receive(self, data: bytes) -> bytes:
        """Answer a message of the server."""
        if self.stage is Stage.NEIGHBOURS:
            return self._share(data)
        if self.stage is Stage.INBOX:
            return self._mask(data)
        if self.stage is Stage.SURVIVORS:
            return self._unmask(data)
        raise ProtocolError(f"Client {self.number} waits for {self.stage.value}.")

    def memory(self) -> bytes:
        """Return what the next step needs, for a process that ends between two steps.

        It holds the client's secrets and belongs where its data are.
        """
        if self.stage is Stage.START:
            raise ProtocolError("A client has nothing to remember before it starts.")
        data: dict[str, Any] = {
            "session": self.session.tag.hex(),
            "number": self.number,
            "stage": self.stage.name,
            "present": self._present,
            "neighbours": self._neighbours,
            "adverts": [advert.hex() for advert in self._adverts],
            "held": list(self._held.items()),
        }
        if self.stage in (Stage.NEIGHBOURS, Stage.INBOX):
            data["secrets"] = {
                "vector": self._vector.pack_body().hex(),
                "cipher_key": self._cipher_key.private_bytes_raw().hex(),
                "key_secret": self._key_secret,
                "self_secret": self._self_secret,
                "advert": self._advert.hex(),
            }
        return json.dumps(data).encode()

    @classmethod
    def recalled(
        cls,
        session: MaskedSession,
        memory: bytes,
        ledger: Ledger,
        identity: Ed25519PrivateKey | None = None,
    ) -> "MaskedClient":
        """Return the client that `memory` was called of."""
        data = json.loads(memory)
        if data["session"] != session.tag.hex():
            raise ProtocolError("This client takes part in another session.")
        client = cls(session, data["number"], session.ring.zeros(), ledger, identity)
        client.stage = Stage[data["stage"]]
        client._present, client._neighbours = data["present"], data["neighbours"]
        client._adverts = [bytes.fromhex(advert) for advert in data["adverts"]]
        client._held = {place: (of_seed, of_key) for place, (of_seed, of_key) in data["held"]}
        if secrets := data.get("secrets"):
            client._vector = session.ring.unpack_body(bytes.fromhex(secrets["vector"]))
            raw = bytes.fromhex(secrets["cipher_key"])
            client._cipher_key = X25519PrivateKey.from_private_bytes(raw)
            client._key_secret, client._self_secret = secrets["key_secret"], secrets["self_secret"]
            client._mask_key = mask_key(session, client.number, client._key_secret)
            client._advert = bytes.fromhex(secrets["advert"])
        return client

    def _expect(self, stage: Stage) -> None:
        if self.stage is not stage:
            raise ProtocolError(f"Client {self.number} waits for {self.stage.value}.")

    def _body(self, data: bytes, kind: int, size: int | None) -> bytes:
        return body_of(data, kind, self.session.tag, self.number, size)

    def _share(self, data: bytes) -> bytes:
        """Learn the neighbours; share both secrets among them, sealed for each."""
        session = self.session
        body = self._body(data, NEIGHBOURS, None)
        record = 4 + session.advert_bytes
        if len(body) < 4:
            raise ProtocolError("The list of neighbours is cut short.")
        (present,) = struct.unpack_from("<I", body)
        if not session.least <= present <= session.parameters.clients:
            raise RefusalError(f"{present} clients are too few, or more than the session has.")
        wanted = session.degree(present)
        if len(body) != 4 + wanted * record:
            raise RefusalError(f"There are not the {wanted} neighbours that it takes.")
        records = [body[i : i + record] for i in range(4, len(body), record)]
        numbers = [struct.unpack_from("<I", each)[0] for each in records]
        adverts = [each[4:] for each in records]
        if len(set(numbers)) < len(numbers) or self.number in numbers:
            raise RefusalError("A neighbour comes twice, or is this client itself.")
        keys = [key for each in (*adverts, self._advert) for key in _keys(each)]
        if len(set(keys)) < len(keys):
            raise RefusalError("Two neighbours have the same keys.")
        for number, advert in zip(numbers, adverts, strict=True):
            session.check_advert(number, advert)
        threshold = session.parameters.threshold
        of_seed = shamir.share(self._self_secret, threshold, wanted)
        of_key = shamir.share(self._key_secret, threshold, wanted)
        sealed = [
            self._cipher(number, advert, sending=True).encrypt(
                _NONCE, shamir.to_bytes(seed) + shamir.to_bytes(key), self._advert + advert
            )
            for number, advert, seed, key in zip(numbers, adverts, of_seed, of_key, strict=True)
        ]
        self._ledger.note(step_entry(session.tag, SHARES))
        self._present, self._neighbours, self._adverts = present, numbers, adverts
        self.stage = Stage.INBOX
        commitment = commit(session, self.number, self._self_secret)
        return frame(SHARES, session.tag, self.number, commitment + b"".join(sealed))

    def _cipher(self, number: int, advert: bytes, *, sending: bool) -> ChaCha20Poly1305:
        pair = (self.number, number) if sending else (number, self.number)
        context = self.session.context_of(*pair)
        return ChaCha20Poly1305(agree(self._cipher_key, advert[:KEY_BYTES], b"shares", context))

    def _mask(self, data: bytes) -> bytes:
        """Open the neighbours' shares; mask the vector; note the contribution; send it.

        A neighbour whose box does not open is left out like one that sent none: the answer says
        with whom the vector is masked.
        """
        session, many = self.session, len(self._neighbours)
        flags = -(-many // 8)
        body = self._body(data, INBOX, None)
        present = unpack_bits(body[:flags], many)
        if len(body) != flags + sum(present) * SEALED_BYTES:
            raise ProtocolError("The shares of the neighbours are cut short.")
        held, at = {}, flags
        for place, there in enumerate(present):
            if there:
                shares = self._open(place, body[at : at + SEALED_BYTES])
                at += SEALED_BYTES
                if shares:
                    held[place] = shares
        if len(held) < session.parameters.threshold:
            raise RefusalError(
                f"{len(held)} neighbours sent shares that open; it takes "
                f"{session.parameters.threshold}."
            )
        total = session.ring.vector(self._vector.arrays)
        seed = derive(shamir.to_bytes(self._self_secret), b"self", session.context_of(self.number))
        add_mask(total, seed)
        for place in held:
            other = self._neighbours[place]
            public = self._adverts[place][KEY_BYTES : 2 * KEY_BYTES]
            key = agree(self._mask_key, public, b"pair", pair_context(session, self.number, other))
            add_mask(total, key, negative=other < self.number)
        self._ledger.note(own_entry(session.campaign))  # before it leaves
        self._held = held
        self.stage = Stage.SURVIVORS
        partners = pack_bits([place in held for place in range(many)])
        answer = frame(MASKED, session.tag, self.number, partners + total.pack_body())
        # What is not needed any more cannot leak any more.
        del self._vector, self._self_secret, self._key_secret, self._mask_key, self._cipher_key
        return answer

    def _open(self, place: int, sealed: bytes) -> tuple[int, int] | None:
        number, advert = self._neighbours[place], self._adverts[place]
        try:
            # Bound to both adverts as either side knows them: nobody was shown other keys.
            cipher = self._cipher(number, advert, sending=False)
            shares = cipher.decrypt(_NONCE, sealed, advert + self._advert)
            return shamir.from_bytes(shares[:SHARE_BYTES]), shamir.from_bytes(shares[SHARE_BYTES:])
        except (InvalidTag, ProtocolError):
            return None

    def _unmask(self, data: bytes) -> bytes:
        """Give one share for each neighbour: of its seed if it survived, of its key if not."""
        session, many = self.session, len(self._neighbours)
        alive = unpack_bits(self._body(data, SURVIVORS, -(-many // 8)), many)
        if any(flag and place not in self._held for place, flag in enumerate(alive)):
            raise RefusalError("A neighbour that never sent its shares cannot have survived.")
        # Who is tied to everybody sees how many are in the sum.
        everybody = many == self._present - 1
        least = max(session.parameters.threshold, (session.least - 1) * everybody)
        if sum(alive) < least:
            raise RefusalError(
                f"{sum(alive)} surviving neighbours are fewer than the {least} it takes."
            )
        shares = [
            shamir.to_bytes(of_seed if alive[place] else of_key)
            for place, (of_seed, of_key) in self._held.items()
        ]
        self._ledger.note(step_entry(session.tag, UNMASK))
        self.stage = Stage.DONE
        self._held = {}
        return frame(UNMASK, session.tag, self.number, b"".join(shares))


def _keys(advert: bytes) -> tuple[bytes, bytes]:
    return advert[:KEY_BYTES], advert[KEY_BYTES : 2 * KEY_BYTES]
