"""Exact binomial tails."""

import math

import numpy as np


def binomial_tail(n: int, p: float, k: int) -> float:
    """Return P(X >= k) for X ~ Binomial(n, p), summed term by term.

    >>> round(binomial_tail(4, 0.5, 3), 10)
    0.3125
    """
    if k <= 0:
        return 1.0
    if k > n or p <= 0:
        return 0.0
    if p >= 1:
        return 1.0
    if k < n * p:  # the other side has the fewer terms
        return 1.0 - binomial_tail(n, 1 - p, n - k + 1)
    first = math.exp(
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(p)
        + (n - k) * math.log1p(-p)
    )
    # From the mean on, 12 standard deviations further (400 where those are few) nothing is left.
    last = min(n, k + 400 + round(12 * math.sqrt(n * p * (1 - p))))
    i = np.arange(k, last, dtype=np.float64)
    ratios = np.cumprod((n - i) / (i + 1) * (p / (1 - p)))
    return min(1.0, first * (1 + float(ratios.sum())))


def smallest_bound(n: int, p: float, tail: float) -> int:
    """Return the smallest L with P(Binomial(n, p) > L) <= tail."""
    low, high = -1, n
    while high - low > 1:
        middle = (low + high) // 2
        if binomial_tail(n, p, middle + 1) <= tail:
            high = middle
        else:
            low = middle
    return high
