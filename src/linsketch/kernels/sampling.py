"""Sampling of units, exact in integers on every platform.

Word number u of the SplitMix64 stream that starts at a state is mix(state + u * GOLDEN), u from 1.
"""

from typing import Any

import numpy as np
from numba import njit, uint64

from linsketch.kernels.integers import mix, wide_product

GOLDEN = uint64(0x9E3779B97F4A7C15)


@njit(cache=True)
def keep_units(counts: Any, states: Any, denominator: int, numerator: int, kept: Any) -> None:
    """Keep each of counts[i] units with probability numerator / denominator.

    Unit number u of row i draws word u of the stream that starts at states[i].
    """
    for i in range(len(counts)):
        state = states[i]
        for _ in range(counts[i]):
            state += GOLDEN
            kept[i] += wide_product(mix(state), uint64(denominator))[0] < uint64(numerator)


@njit(cache=True)
def keep_at_most(most: int, starts: Any, counts: Any, states: Any) -> None:
    """Reduce each user's counts, in place, to `most` of its units, all subsets equally likely.

    User i has the rows from starts[i] to starts[i + 1] and the stream of states[i]. Floyd's
    sampling without replacement: for j from total - most on, draw r from 0 .. j and take r, or
    j where r is taken. Units are numbered in the order of the rows.
    """
    for user in range(len(states)):
        first, last = starts[user], starts[user + 1]
        total = counts[first:last].sum()
        if total <= most:
            continue
        state = states[user]
        chosen = set()
        for j in range(total - most, total):
            state += GOLDEN
            r = np.int64(wide_product(mix(state), uint64(j + 1))[0])
            chosen.add(j if r in chosen else r)
        units = np.empty(most, np.int64)
        for at, unit in enumerate(chosen):
            units[at] = unit
        units.sort()
        at, passed = 0, 0
        for row in range(first, last):
            passed += counts[row]
            kept = 0
            while at < most and units[at] < passed:
                kept += 1
                at += 1
            counts[row] = kept
