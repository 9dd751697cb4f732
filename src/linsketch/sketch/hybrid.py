"""HybridSketch: places shared by all rounds, signs fresh in each (Algorithm 3; Wu et al. 2023).

Summed over rounds, what other items add to a counter is a random walk with a fresh sign in each
round, so the error grows with the square root of the number of rounds instead of the number.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsketch.arrays import Estimates, Uint64s
from linsketch.errors import VectorError
from linsketch.hashing import Seeds
from linsketch.keys import KeySpace
from linsketch.rings import RingVector
from linsketch.sketch.countsketch import CountSketch


@dataclass(frozen=True)
class HybridSketch:
    """A family of count sketches, one a round; `max_count` is the largest total of one round.

    >>> from linsketch import HybridSketch, Utf8Keys
    >>> hybrid = HybridSketch(Utf8Keys(8), rows=5, width=100, max_count=1000, seed=b"any")
    >>> sums = {r: hybrid.for_round(r).encode({"tea": 10 + r}) for r in range(3)}
    >>> hybrid.estimate(sums, ["tea", "milk"]).tolist()
    [33.0, 0.0]
    """

    keys: KeySpace[Any]
    rows: int
    width: int
    max_count: int
    seed: bytes

    def __post_init__(self) -> None:
        self.for_round(0)

    def for_round(self, round_: int) -> CountSketch:
        """Return the sketch that users of one round encode with."""
        return CountSketch(
            self.keys,
            self.rows,
            self.width,
            self.max_count,
            locations=Seeds(self.seed),
            signs=Seeds(self.seed, round_),
        )

    def estimate_keys(self, sums: Mapping[int, RingVector], keys: Uint64s) -> Estimates:
        """Estimate keys' counts over all rounds: median over rows of the sum over rounds."""
        if not sums:
            raise VectorError("There is no round to estimate from.")
        total = np.zeros((self.rows, len(keys)), np.int64)
        for round_, vector in sums.items():
            total += self.for_round(round_).row_estimates(vector, keys)
        return self.for_round(next(iter(sums))).combine(total)

    def estimate(self, sums: Mapping[int, RingVector], items: Iterable[Any]) -> Estimates:
        """Estimate any items' counts over all rounds, {round: sum of its vectors}."""
        return self.estimate_keys(sums, self.keys.encode(items).keys)
