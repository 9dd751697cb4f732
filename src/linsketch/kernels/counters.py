"""Count sketches: the medians of many keys at once."""

from typing import Any

import numpy as np
from numba import njit, uint64

from linsketch.kernels.words import mix

_HALF = uint64(32)


@njit(cache=True)
def medians(
    counters: Any, width: int, places: Any, signs: Any, tweaks: Any, sign_tweaks: Any, out: Any
) -> None:
    """Estimate keys from their digests for places and signs: the median of the rows.

    The places and signs are those of `CounterSketch._places` and `CountSketch._signs`.
    """
    rows = len(tweaks)
    values = np.empty(rows, np.int64)
    for key in range(len(places)):
        for row in range(rows):
            half = mix(places[key] ^ tweaks[row]) >> _HALF
            value = counters[row * width + ((half * uint64(width)) >> _HALF)]
            if mix(signs[key] ^ sign_tweaks[row]) >> uint64(63):
                value = -value
            at = row  # insertion sort: rows are few
            while at > 0 and values[at - 1] > value:
                values[at] = values[at - 1]
                at -= 1
            values[at] = value
        out[key] = (values[(rows - 1) // 2] + values[rows // 2]) / 2
