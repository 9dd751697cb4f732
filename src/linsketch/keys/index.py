"""An index of keys: each gets a row when it first comes, and keeps it."""

import numpy as np

from linsketch import hashing
from linsketch.arrays import Counts, Uint64s


class KeyIndex:
    """Distinct keys in the order of their arrival.

    Keys are found by a digest of 64 bits. Different keys may share one: every match is compared
    with the key itself.
    """

    def __init__(self, limbs: int) -> None:
        self.keys: Uint64s = np.empty((0, limbs), np.uint64)
        self._digests = np.empty(0, np.uint64)  # sorted
        self._rows = np.empty(0, np.int64)  # of these digests

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, keys: Uint64s) -> Counts:
        """Return the row of each key, -1 for a key that is not there."""
        digests = hashing.digest(keys, 0)
        at = np.searchsorted(self._digests, digests)
        rows = np.full(len(keys), -1, np.int64)
        left = np.arange(len(keys))
        while len(left):  # once, unless different keys share a digest
            left = left[at[left] < len(self._digests)]
            left = left[self._digests[at[left]] == digests[left]]
            found = self._rows[at[left]]
            same = (self.keys[found] == keys[left]).all(axis=1)
            rows[left[same]] = found[same]
            left = left[~same]
            at[left] += 1
        return rows

    def add(self, keys: Uint64s) -> Counts:
        """Return the row of each of these distinct keys; new ones get the next rows."""
        rows = self.find(keys)
        new = np.flatnonzero(rows < 0)
        rows[new] = len(self.keys) + np.arange(len(new))
        digests = hashing.digest(keys[new], 0)
        order = np.argsort(digests, kind="stable")
        at = np.searchsorted(self._digests, digests[order])
        self._digests = np.insert(self._digests, at, digests[order])
        self._rows = np.insert(self._rows, at, rows[new][order])
        self.keys = np.concatenate([self.keys, keys[new]])
        return rows
