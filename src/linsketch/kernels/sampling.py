"""Binomial sampling, one unit at a time: exact in integers on every platform."""

from typing import Any

from numba import njit, uint64

from linsketch.kernels.words import mix, wide_product

GOLDEN = uint64(0x9E3779B97F4A7C15)


@njit(cache=True)
def keep_units(counts: Any, states: Any, denominator: int, numerator: int, kept: Any) -> None:
    """Keep each of counts[i] units with probability numerator / denominator.

    Unit number u of row i draws word u of the SplitMix64 stream that starts at states[i].
    """
    for i in range(len(counts)):
        state = states[i]
        for _ in range(counts[i]):
            state += GOLDEN
            kept[i] += wide_product(mix(state), uint64(denominator))[0] < uint64(numerator)
