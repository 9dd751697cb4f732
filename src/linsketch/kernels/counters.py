"""Count sketches: hashes and medians of many keys at once."""

from typing import Any

import numpy as np
from numba import njit, uint64

from linsketch.kernels.integers import mix

_HALF = uint64(32)


@njit(cache=True)
def high_halves(digests: Any, tweaks: Any, halves: Any) -> None:
    """Compute the high half of each digest's word for each tweak (a column)."""
    for key in range(len(digests)):
        for row in range(len(tweaks)):
            halves[key, row] = mix(digests[key] ^ tweaks[row]) >> _HALF


@njit(cache=True)
def medians(counters: Any, rows: int, width: int, places: Any, signs: Any, out: Any) -> None:
    """Estimate keys from the halves of their places and signs: the median of the rows."""
    values = np.empty(rows, np.int64)
    for key in range(len(places)):
        for row in range(rows):
            place = (uint64(places[key, row]) * uint64(width)) >> _HALF
            value = counters[row * width + place]
            value = -value if signs[key, row] >> 31 else value
            for at in range(row):  # insertion sort, without a branch that depends on data
                other = values[at]
                values[at] = min(other, value)
                value = max(other, value)
            values[row] = value
        out[key] = (values[(rows - 1) // 2] + values[rows // 2]) / 2
