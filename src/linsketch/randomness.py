"""Randomness has one door: the 64-bit states that sampling starts from, one a (user, key) row.

In a simulation they are keyed functions of who and what, so that the order of rows, partitions
and workers does not matter. A real client takes them from the operating system, never from the
plan's public seed.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from linsketch import hashing, kernels
from linsketch.arrays import Uint64s
from linsketch.errors import CountError
from linsketch.hashing import Seeds


def simulated_states(seeds: Seeds, users: NDArray[np.integer], keys: Uint64s) -> Uint64s:
    """Return states for a simulation: the same for the same seed, round, repetition, user, key."""
    users = np.asarray(users)
    if users.dtype.kind not in "iu" or users.shape != (len(keys),) or keys.dtype != np.uint64:
        raise CountError("Users must be integers, one for each row of keys (uint64).")
    (seed,) = seeds.integers("sampling", 1)
    return hashing.digest(np.column_stack([users.astype(np.uint64), keys]), seed)


def system_states(rows: int) -> Uint64s:
    """Return states for a real client, out of the operating system's randomness."""
    return np.frombuffer(os.urandom(8 * rows), np.uint64)


def user_ids(users: Sequence[str], seed: bytes) -> Uint64s:
    """Return the integer that stands for each user in a simulation."""
    (id_seed,) = Seeds(seed).integers("users", 1)
    joined = "".join(users)
    lengths = map(len, users if joined.isascii() else (user.encode() for user in users))
    ends = np.cumsum(np.fromiter(lengths, np.int64, len(users)))
    ids = np.empty(len(users), np.uint64)
    flat = np.frombuffer(joined.encode(), np.uint8)
    kernels.rows.digest_texts(flat, ends, np.uint64(id_seed), ids)
    return ids


def cohorts(users: Uint64s, rounds: int, seed: bytes) -> NDArray[np.int64]:
    """Return the round, from 1 on, that each user of a simulation falls into."""
    (tweak,) = Seeds(seed).integers("cohorts", 1)
    high, _ = hashing.halves(users, tweak)
    return 1 + hashing.scale(high, rounds).astype(np.int64)


RowChoice = slice | NDArray[np.bool_]
"""Which rows: all of them, or those of a mask."""


class Randomness(Protocol):
    """Where one user's report takes its states from."""

    def for_bound(self) -> Uint64s:
        """Return one state for the bound on items a user."""
        ...

    def for_sampling(self, round_: int, repetition: int, keys: Uint64s, rows: RowChoice) -> Uint64s:
        """Return one state a key; `rows` are those of the keys among all rows."""
        ...


class SystemRandomness:
    """The operating system's: what real clients take."""

    def for_bound(self) -> Uint64s:
        """Return one state for the bound on items a user."""
        return system_states(1)

    def for_sampling(self, round_: int, repetition: int, keys: Uint64s, rows: RowChoice) -> Uint64s:  # noqa: ARG002  # fresh each time
        """Return one state a key."""
        return system_states(len(keys))


@dataclass(frozen=True)
class SimulatedRandomness:
    """Keyed by who and what: `users` holds one id for all rows, or one for each."""

    seed: bytes
    users: Uint64s

    def for_bound(self) -> Uint64s:
        """Return one state a user for the bound on items."""
        (seed,) = Seeds(self.seed).integers("bound", 1)
        return hashing.digest(self.users[:, None], seed)

    def for_sampling(self, round_: int, repetition: int, keys: Uint64s, rows: RowChoice) -> Uint64s:
        """Return one state a key."""
        users = self.users if len(self.users) == 1 else self.users[rows]
        users = np.broadcast_to(users, len(keys))
        return simulated_states(Seeds(self.seed, round_, repetition), users, keys)
