"""Exact tails of the binomial and the hypergeometric distribution."""

import math

import numpy as np
from numpy.typing import NDArray


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


def hypergeometric_tail(population: int, marked: int, draws: int, k: int) -> float:
    """Return P(X >= k), X the marked ones among `draws` drawn without replacement.

    >>> round(hypergeometric_tail(5, 2, 2, 2), 10)
    0.1
    """
    least, most = max(0, draws - (population - marked)), min(marked, draws)
    if k <= least:
        return 1.0
    if k > most:
        return 0.0
    i = np.arange(k, most + 1)
    logs = (
        _log_choose(marked, i)
        + _log_choose(population - marked, draws - i)
        - _log_choose(population, np.array([draws]))
    )
    return min(1.0, float(np.exp(logs).sum()))


def _log_choose(n: int, k: NDArray[np.int64]) -> NDArray[np.float64]:
    ways = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in k.tolist()]
    return np.array(ways)
