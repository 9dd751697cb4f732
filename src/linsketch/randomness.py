"""Randomness has one door: the 64-bit states that sampling starts from, one a (user, key) row.

In a simulation they are keyed functions of who and what, so that the order of rows, partitions
and workers does not matter. A real client takes them from the operating system, never from the
plan's public seed.
"""

import os

import numpy as np
from numpy.typing import NDArray

from linsketch import hashing
from linsketch.arrays import Words
from linsketch.errors import CountError
from linsketch.hashing import Seeds


def simulated_states(seeds: Seeds, users: NDArray[np.integer], keys: Words) -> Words:
    """Return states for a simulation: the same for the same seed, round, repetition, user, key."""
    users = np.asarray(users)
    if users.dtype.kind not in "iu" or users.shape != (len(keys),) or keys.dtype != np.uint64:
        raise CountError("Users must be integers, one for each row of keys (uint64).")
    (seed,) = seeds.words("sampling", 1)
    return hashing.digest(np.column_stack([users.astype(np.uint64), keys]), seed)


def system_states(rows: int) -> Words:
    """Return states for a real client, out of the operating system's randomness."""
    return np.frombuffer(os.urandom(8 * rows), np.uint64)
