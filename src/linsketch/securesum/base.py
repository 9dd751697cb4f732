"""What a secure sum is, whatever protocol stands behind it."""

import hashlib
import struct
from collections.abc import Iterable
from typing import Protocol

from linsketch.errors import RefusalError
from linsketch.rings import Contribution, Ring


class SecureSum(Protocol):
    """Adds up contributions and shows nobody anything but the sum.

    What it returns counts the users whose vectors are in the sum; those who dropped out are not.
    A round that ends without a sum raises `RoundFailed`.
    """

    def __call__(
        self, ring: Ring, contributions: Iterable[Contribution], context: bytes
    ) -> Contribution:
        """Return the sum of the vectors and of the users; `context` names campaign and round."""
        ...


class Ledger(Protocol):
    """A durable note of what must not happen twice, also after a crash."""

    def note(self, *entries: bytes) -> None:
        """Note all entries at once, durably, or raise `RefusalError` if one has been noted."""
        ...

    def has(self, entry: bytes) -> bool:
        """Return whether an entry has been noted."""
        ...


class MemoryLedger:
    """A ledger that forgets: for simulations, where a process is the whole campaign."""

    def __init__(self) -> None:
        self._noted: set[bytes] = set()

    def note(self, *entries: bytes) -> None:
        """Note all entries, or refuse."""
        refuse_repeated(entries, self._noted.intersection(entries))
        self._noted.update(entries)

    def has(self, entry: bytes) -> bool:
        """Return whether an entry has been noted."""
        return entry in self._noted


def refuse_repeated(entries: Iterable[bytes], known: Iterable[bytes]) -> None:
    """Raise if an entry comes twice or is known."""
    given = list(entries)
    if len(set(given)) < len(given) or any(True for _ in known):
        raise RefusalError(
            "A contribution to this campaign, or this step of its round, has been made; there is "
            "one only."
        )


def own_entry(campaign: bytes) -> bytes:
    """Return the entry of a client's ledger for its contribution to a campaign."""
    return hashlib.sha256(b"linsketch/contribution" + campaign).digest()


def step_entry(session: bytes, kind: int) -> bytes:
    """Return the entry of a client's ledger for an answer of one kind in a session."""
    return hashlib.sha256(b"linsketch/step" + session + bytes([kind])).digest()


def counted_entry(campaign: bytes, client: int) -> bytes:
    """Return the entry of a helper's ledger for a client that it has counted in a campaign."""
    return hashlib.sha256(b"linsketch/counted" + struct.pack("<I", client) + campaign).digest()
