"""The fixed point that says how much of a table peeling leaves behind."""

import math
from typing import Any

from numba import njit

PRECISION = 1e-8
MOST_SWEEPS = 20_000


@njit(cache=True)
def core_rates(k: int, density: float, rates: Any, held: Any) -> None:
    """Go down from above to the greatest solution of the core equations (docs/math.md).

    rates[i] = density * sum over the starts s whose k segments include i of the product over
    the others j of held[j], where held[j] = 1 - exp(-rates[j]).
    """
    segments = len(rates)
    rates[:] = k * density
    held[:] = 1.0
    for _ in range(MOST_SWEEPS):
        change = largest = 0.0
        for i in range(segments):
            paths = 0.0
            for start in range(max(0, i - k + 1), min(i, segments - k) + 1):
                product = 1.0
                for j in range(start, start + k):
                    if j != i:
                        product *= held[j]
                paths += product
            change = max(change, abs(rates[i] - density * paths))
            rates[i] = density * paths
            held[i] = -math.expm1(-rates[i])
            largest = max(largest, rates[i])
        if change < PRECISION * density or largest < PRECISION:
            break
