"""What the parties of a masked sum agree on beforehand, all of it public."""

import hashlib
import secrets
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch.errors import PlanningError, RefusalError
from linsketch.rings import Ring
from linsketch.securesum import shamir
from linsketch.securesum.agreement import KEY_BYTES
from linsketch.securesum.frames import FRAME_BYTES
from linsketch.securesum.masks import derive
from linsketch.securesum.parameters import Parameters
from linsketch.securesum.shamir import SHARE_BYTES
from linsketch.validation import instance

# Kinds of messages, in their order; odd ones go to the server, even ones come from it.
ADVERTISE, NEIGHBOURS, SHARES, INBOX, MASKED, SURVIVORS, UNMASK = range(1, 8)
SIGNATURE_BYTES = 64
SEALED_BYTES = 2 * SHARE_BYTES + 16  # both shares for a neighbour, and the tag
COMMITMENT_BYTES = 16


@dataclass(frozen=True)
class MaskedSession:
    """One round of one campaign: ring, context, parameters, and whether clients sign.

    `directory` maps clients to their Ed25519 public keys. With one, clients sign what they
    advertise and believe no neighbour that does not: a server cannot make clients up.
    """

    ring: Ring
    context: bytes
    parameters: Parameters
    campaign: bytes = b""
    directory: Mapping[int, bytes] | None = None

    def __post_init__(self) -> None:
        instance(self, "ring", Ring)
        instance(self, "context", bytes)
        instance(self, "campaign", bytes)
        instance(self, "parameters", Parameters)
        if self.directory is not None and len(self.directory) < self.parameters.clients:
            raise PlanningError("The directory has fewer clients than the session.")

    @cached_property
    def tag(self) -> bytes:
        """16 bytes that every message names."""
        p = self.parameters
        numbers = struct.pack(
            "<IIIIBI",
            p.clients,
            p.neighbours,
            p.threshold,
            p.least,
            self.signed,
            len(self.campaign),
        )
        head = b"linsketch/masked/1" + numbers + self.campaign
        return hashlib.sha256(head + self.ring.tag(self.context)).digest()[:16]

    @property
    def signed(self) -> bool:
        """Whether clients sign."""
        return self.directory is not None

    @property
    def advert_bytes(self) -> int:
        """Size of what a client advertises."""
        return 2 * KEY_BYTES + SIGNATURE_BYTES * self.signed

    def context_of(self, *clients: int) -> bytes:
        """Return what keys between clients of this session are bound to."""
        return self.tag + struct.pack(f"<{len(clients)}I", *clients)

    @property
    def least(self) -> int:
        """Clients that must be there: as many as planned, and more than the threshold."""
        return max(self.parameters.least, self.parameters.threshold + 1)

    def degree(self, present: int) -> int:
        """Return how many neighbours each of so many clients has."""
        return min(self.parameters.neighbours, present - 1)

    def graph(self, present: Sequence[int]) -> dict[int, list[int]]:
        """Run by the server: seat the clients on a circle in random order, tie the nearest."""
        order = list(present)
        secrets.SystemRandom().shuffle(order)
        degree, many = self.degree(len(order)), len(order)
        if degree == many - 1:
            return {own: [other for other in order if other != own] for own in order}
        steps = [step for step in range(-(degree // 2), degree // 2 + 1) if step]
        return {
            own: [order[(seat + step) % many] for step in steps] for seat, own in enumerate(order)
        }

    def signed_text(self, client: int, keys: bytes) -> bytes:
        """Return what a client signs."""
        return b"linsketch/advert/1" + self.context_of(client) + keys

    def check_advert(self, client: int, advert: bytes) -> None:
        """Refuse keys that their owner has not signed, where clients sign."""
        if self.directory is None:
            return
        if client not in self.directory:
            raise RefusalError(f"Client {client} is not in the directory.")
        keys, signature = advert[: 2 * KEY_BYTES], advert[2 * KEY_BYTES :]
        try:
            key = Ed25519PublicKey.from_public_bytes(self.directory[client])
            key.verify(signature, self.signed_text(client, keys))
        except (InvalidSignature, TypeError, ValueError):
            raise RefusalError(f"Client {client} did not sign these keys.") from None

    @property
    def traffic(self) -> "Traffic":
        """What a client sends and receives, if nobody drops out."""
        k = self.parameters.neighbours
        up = 4 * FRAME_BYTES + self.advert_bytes + COMMITMENT_BYTES + k * SEALED_BYTES
        flags = -(-k // 8)
        up += flags + self.ring.wire_bytes + k * SHARE_BYTES
        down = 3 * FRAME_BYTES + 4 + k * (4 + self.advert_bytes) + flags + k * SEALED_BYTES + flags
        return Traffic(self.ring.wire_bytes, up, down)


@dataclass(frozen=True)
class Traffic:
    """Bytes of one client in one round: the plain vector, all that goes up, all that comes."""

    vector: int
    up: int
    down: int


def mask_key(session: MaskedSession, number: int, secret: int) -> X25519PrivateKey:
    """Return the private key that a client's pairwise masks come from."""
    data = derive(shamir.to_bytes(secret), b"mask key", session.context_of(number))
    return X25519PrivateKey.from_private_bytes(data)


def pair_context(session: MaskedSession, one: int, other: int) -> bytes:
    """Return the context of two clients' common mask, the same for both."""
    return session.context_of(min(one, other), max(one, other))


def commit(session: MaskedSession, number: int, secret: int) -> bytes:
    """Return what ties the server to a client's self-mask secret without showing it."""
    data = b"linsketch/commit" + session.context_of(number) + shamir.to_bytes(secret)
    return hashlib.sha256(data).digest()[:COMMITMENT_BYTES]
