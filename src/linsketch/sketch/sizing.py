"""How large a table must be: (keys, failure probability) to (k, hashing, cells).

The numbers come from `sizing_table.py`, which `make sizes` measures anew on real tables, for
failure rates of 1% and (up to 10**4 keys) 0.1%. Smaller rates are extrapolated (docs/math.md,
"Sizes"): the load where peeling gives way moves like a normal quantile, and two keys that share
all their cells must stay unlikely.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Literal

import numpy as np

from linsketch.errors import PlanningError
from linsketch.sketch.sizing_table import CELLS_PER_KEY
from linsketch.validation import whole_number

Hashing = Literal["standard", "fuse"]
_COMMON, _RARE = (-NormalDist().inv_cdf(rate) for rate in (0.01, 0.001))


@dataclass(frozen=True)
class Size:
    """The shape of a table: `segments` segments of `segment_cells` cells, k of them for a key."""

    k: int
    segments: int
    segment_cells: int

    def __post_init__(self) -> None:
        whole_number(self, "k", 3, 4)
        whole_number(self, "segments", self.k, 1 << 20)
        whole_number(self, "segment_cells", 1, (1 << 31) - 1)

    @property
    def cells(self) -> int:
        """Cells of the whole table."""
        return self.segments * self.segment_cells

    @property
    def starts(self) -> int:
        """Segments in which a key's first cell may lie."""
        return self.segments - self.k + 1

    @property
    def hashing(self) -> Hashing:
        """Standard: one cell in each of k parts. Fuse: in k neighbours of many segments."""
        return "standard" if self.segments == self.k else "fuse"


def segment_count(k: int, hashing: Hashing, keys: int) -> int:
    """Return how many segments suit a number of keys; the best grows like its cube root."""
    if hashing == "standard":
        return k
    return max(k + 2, round((2.2 if k == 4 else 0.8) * math.cbrt(keys)))


def smallest_size(
    capacity: int,
    failure_probability: float = 0.01,
    *,
    k: int | None = None,
    hashing: Hashing | None = None,
) -> Size:
    """Return the smallest table that lists `capacity` keys but for the failure probability."""
    if not isinstance(capacity, int | np.integer) or not 1 <= capacity <= 10**9:
        raise PlanningError(f"The capacity is a whole number of keys to 10**9, not {capacity!r}.")
    if not isinstance(failure_probability, float | int) or not 1e-12 <= failure_probability <= 0.5:
        raise PlanningError(
            f"The failure probability must lie in 1e-12 .. 0.5, not {failure_probability!r}."
        )
    if k not in (None, 3, 4) or hashing not in (None, "standard", "fuse"):
        raise PlanningError(f'k is 3 or 4, hashing "standard" or "fuse": not {k}, {hashing!r}.')
    shapes: product[tuple[int, Hashing]] = product(
        (3, 4) if k is None else (k,),
        ("standard", "fuse") if hashing is None else (hashing,),
    )
    sizes = [_size(*shape, capacity, failure_probability) for shape in shapes]
    return min(sizes, key=lambda size: (size.cells, size.k))


def _size(k: int, hashing: Hashing, capacity: int, failure_probability: float) -> Size:
    segments = segment_count(k, hashing, capacity)
    common, rare = (ratio * capacity for ratio in _ratios(k, hashing, capacity))
    # Measured from 1% on: whoever allows more failures gets the table of 1%.
    quantile = max(-NormalDist().inv_cdf(failure_probability), _COMMON)
    cells = common + (rare - common) * (quantile - _COMMON) / (_RARE - _COMMON)
    if failure_probability < 0.001:
        # pairs / (starts * segment_cells**k) of them share all cells: half of what may fail.
        pairs = capacity * (capacity - 1) / 2
        starts = segments - k + 1
        shared = (2 * pairs / (starts * failure_probability)) ** (1 / k)
        cells = max(cells, shared * segments)
    return Size(k, segments, max(1, math.ceil(cells / segments)))


def _ratios(k: int, hashing: Hashing, capacity: int) -> tuple[float, float]:
    """Interpolate cells a key at 1% and 0.1% failures, linearly in the logarithm of the keys.

    Beyond the last point the ratios go on falling, and its numbers are safe.
    """
    rows = CELLS_PER_KEY[k, hashing]
    known = [row[0] for row in rows]
    after = bisect_right(known, capacity)
    if after == len(rows):
        return rows[-1][1:]
    low, high = rows[after - 1], rows[after]
    share = math.log(capacity / low[0]) / math.log(high[0] / low[0])
    return (
        low[1] + share * (high[1] - low[1]),
        low[2] + share * (high[2] - low[2]),
    )
