"""Counters at hashed places: the count sketch (count-median) and the count-min sketch."""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linsketch import hashing, kernels
from linsketch.arrays import Counts, Estimates, Uint64s
from linsketch.hashing import Seeds
from linsketch.keys import KeySpace
from linsketch.rings import Ring, RingVector, Segment
from linsketch.sketch.base import Sketch
from linsketch.validation import instance, whole_number


@dataclass(frozen=True)
class CounterSketch(Sketch):
    """`rows` rows of `width` counters; each row counts an item at one place of its own.

    Take `locations` with a round for hashes that are fresh in each round, without for hashes
    that all rounds share.
    """

    keys: KeySpace[Any]
    rows: int
    width: int
    max_count: int
    locations: Seeds

    def __post_init__(self) -> None:
        whole_number(self, "rows", 1, 1000)
        whole_number(self, "width", 1, (1 << 32) - 1)
        whole_number(self, "max_count", 1, 2**61 - 1)
        instance(self, "keys", KeySpace)
        instance(self, "locations", Seeds)

    @property
    def name(self) -> str:
        """All that makes vectors of two sketches fit together."""
        return (
            f"{type(self).__name__}/{self.keys.name}/rows={self.rows},width={self.width}"
            f"/max={self.max_count}/{self.locations.name}"
        )

    @property
    @abstractmethod
    def _modulus(self) -> int:
        """The smallest power of two that tells all values of a counter apart."""

    @cached_property
    def ring(self) -> Ring:
        """One segment of all counters, row after row."""
        return Ring((Segment(self.rows * self.width, self._modulus),))

    def _places(self, keys: Uint64s) -> Uint64s:
        """Return the index of each key's counter in each row (a row of the result)."""
        seed, *tweaks = self.locations.integers("locations", 1 + self.rows)
        digests = hashing.digest(keys, seed)
        return np.stack(
            [
                hashing.scale(hashing.halves(digests, tweak)[0], self.width)
                + np.uint64(row * self.width)
                for row, tweak in enumerate(tweaks)
            ]
        )

    def _signs(self, keys: Uint64s) -> Counts:
        """Return +1 or -1 for each key in each row."""
        return np.ones((self.rows, len(keys)), np.int64)

    def encode_keys(self, keys: Uint64s, counts: Counts) -> RingVector:
        """Encode counts of keys; a key may come more than once."""
        counts = self._checked(keys, counts)
        counters = np.zeros(self.rows * self.width, np.int64)
        for places, signs in zip(self._places(keys), self._signs(keys), strict=True):
            np.add.at(counters, places, signs * counts)
        reduced = (counters % self._modulus).astype(np.uint64)
        return RingVector(self.ring, (reduced,))

    def row_estimates(self, vector: RingVector, keys: Uint64s) -> Counts:
        """Return what each row (a row of the result) says of each key's count."""
        self._own(vector)
        self._checked_keys(keys)
        estimates: Counts = self.counters(vector)[self._places(keys)] * self._signs(keys)
        return estimates

    def counters(self, vector: RingVector) -> Counts:
        """Return a vector's counters, row after row, as signed numbers."""
        return vector.arrays[0].astype(np.int64)

    @abstractmethod
    def combine(self, row_estimates: Counts) -> Estimates:
        """Make one estimate of the rows'."""

    def estimate_keys(self, vector: RingVector, keys: Uint64s) -> Estimates:
        """Estimate the counts of keys."""
        return self.combine(self.row_estimates(vector, keys))

    def estimate(self, vector: RingVector, items: Iterable[Any]) -> Estimates:
        """Estimate the counts of any items."""
        return self.estimate_keys(vector, self.keys.encode(items).keys)


class HashedKeys(NamedTuple):
    """Keys, hashed: a row a key, a column a row of the sketch."""

    places: NDArray[np.uint32]
    signs: NDArray[np.uint32]


@dataclass(frozen=True)
class CountSketch(CounterSketch):
    """Count-median: signed counters, the median of the rows. Unbiased.

    >>> from linsketch import CountSketch, Seeds, Utf8Keys
    >>> seeds = Seeds(b"any", round=0)
    >>> sketch = CountSketch(Utf8Keys(8), 5, 100, 1000, locations=seeds, signs=seeds)
    >>> total = sketch.encode({"tea": 2, "milk": 1}) + sketch.encode({"tea": 40})
    >>> sketch.estimate(total, ["tea", "coffee"]).tolist()
    [42.0, 0.0]
    """

    signs: Seeds

    def __post_init__(self) -> None:
        super().__post_init__()
        instance(self, "signs", Seeds)

    @property
    def name(self) -> str:
        """All that makes vectors of two sketches fit together."""
        return f"{super().name}/{self.signs.name}"

    @property
    def _modulus(self) -> int:
        return 2 << self.max_count.bit_length()

    def _signs(self, keys: Uint64s) -> Counts:
        seed, *tweaks = self.signs.integers("signs", 1 + self.rows)
        digests = hashing.digest(keys, seed)
        bits = [hashing.halves(digests, tweak)[0] >> np.uint64(31) for tweak in tweaks]
        return 1 - 2 * np.stack(bits).astype(np.int64)

    def counters(self, vector: RingVector) -> Counts:
        """Return a vector's counters, row after row, as signed numbers."""
        counters = super().counters(vector)
        counters[counters > self.max_count] -= self._modulus
        return counters

    def hash_keys(self, keys: Uint64s) -> HashedKeys:
        """Hash keys once, for estimates from many vectors; they serve fewer rows, too."""
        self._checked_keys(keys)
        hashed = []
        for label, seeds in (("locations", self.locations), ("signs", self.signs)):
            seed, *tweaks = seeds.integers(label, 1 + self.rows)
            halves = np.empty((len(keys), self.rows), np.uint32)
            digests = hashing.digest(keys, seed)
            kernels.counters.high_halves(digests, np.array(tweaks, np.uint64), halves)
            hashed.append(halves)
        return HashedKeys(*hashed)

    def estimate_hashed(self, vector: RingVector, hashed: HashedKeys) -> Estimates:
        """Estimate the counts of keys that were hashed for these locations and signs."""
        self._own(vector)
        estimates = np.empty(len(hashed.places))
        kernels.counters.medians(
            self.counters(vector), self.rows, self.width, hashed.places, hashed.signs, estimates
        )
        return estimates

    def estimate_keys(self, vector: RingVector, keys: Uint64s) -> Estimates:
        """Estimate the counts of keys."""
        return self.estimate_hashed(vector, self.hash_keys(keys))

    def combine(self, row_estimates: Counts) -> Estimates:
        """Take the median of the rows."""
        medians: Estimates = np.median(row_estimates, axis=0)
        return medians


@dataclass(frozen=True)
class CountMin(CounterSketch):
    """Count-min: plain counters, the least of the rows.

    Never below the true count, as long as the total of all vectors stays within `max_count` and
    nothing is subtracted that was not added.
    """

    @property
    def _modulus(self) -> int:
        return 1 << self.max_count.bit_length()

    def combine(self, row_estimates: Counts) -> Estimates:
        """Take the least of the rows."""
        least: Estimates = np.min(row_estimates, axis=0).astype(np.float64)
        return least
