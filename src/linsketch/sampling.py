"""Sampling on the client: the bound on items, and the sampling threshold t.

Threshold sampling is Algorithm 1; binomial sampling keeps each occurrence by itself.

Law (unbiased): the expected sampled count (for binomial sampling: times t) is the count, for
every t >= 1. t is a multiple of 2**-16, so that all sides hold the same number; both rules are
exact in integers, given uniform states (`linsketch.randomness`).
"""

import math
from numbers import Real
from typing import Literal

import numpy as np

from linsketch import hashing, kernels
from linsketch.arrays import Counts, Uint64s
from linsketch.errors import CountError, PlanningError

Sampling = Literal["threshold", "binomial"]
GRID = 1 << 16
MAX_THRESHOLD = 1 << 32
_TAIL = 40 * math.log(2)  # a round's total exceeds what the ring holds with probability 2**-40


def bounded(counts: Counts, most: int, states: Uint64s, starts: Counts | None = None) -> Counts:
    """Keep at most `most` occurrences of each user, uniformly without replacement.

    One user has all rows and one state. With `starts`, user i has the rows from starts[i] to
    starts[i + 1], in an order that must not depend on where they came from. The bound is a bias:
    the items of a user who has more count for less.

    >>> import numpy as np
    >>> from linsketch.randomness import system_states
    >>> int(bounded(np.array([700, 300]), 10, system_states(1)).sum())
    10
    """
    kept = np.array(counts, np.int64)
    if len(kept) and (kept.min() < 0 or float(kept.sum(dtype=np.float64)) >= 2**62):
        raise CountError("Counts must not be negative, and add up to less than 2**62.")
    if starts is None:
        starts = np.array([0, len(kept)])
    kernels.sampling.keep_at_most(most, starts, kept, states)
    return kept


def sampled(counts: Counts, t: float, sampling: Sampling, states: Uint64s) -> Counts:
    """Sample counts of one user, or of many, by a rule."""
    if t == 1:
        return counts
    sample = threshold_sample if sampling == "threshold" else binomial_sample
    return sample(counts, t, states)


def _checked(counts: Counts, states: Uint64s, bits: int) -> Counts:
    for name, array, kinds in (("Counts", counts, "iu"), ("States", states, "u")):
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in kinds:
            raise CountError(f"{name} must be an array of integers (states: uint64), one a row.")
    if len(counts) != len(states):
        raise CountError(f"{len(counts)} counts need one state each, not {len(states)} states.")
    if len(counts) and not 0 <= counts.min() <= counts.max() < 1 << bits:
        raise CountError(
            f"Counts must lie in 0 .. 2**{bits} - 1, not {counts.min()} .. {counts.max()}."
        )
    return counts.astype(np.int64)


def threshold_sample(counts: Counts, t: float, states: Uint64s) -> Counts:
    """Keep counts of t or more; replace a smaller h by t with probability h / t, else by 0.

    Where t is no integer, its floor or ceiling is taken at random, with mean t. With T = 2**16 t,
    a draw r uniform in 0 .. T-1 does both: r < 2**16 h keeps, and then r mod 2**16 is uniform
    and chooses between floor and ceiling.

    >>> import numpy as np
    >>> from linsketch.randomness import system_states
    >>> int(threshold_sample(np.ones(9000, np.int64), 3.0, system_states(9000)).sum()) // 3 > 2500
    True
    """
    counts = _checked(counts, states, 47)  # 2**16 times a count must fit
    numerator = grid_units(t)
    floor, fraction = divmod(numerator, GRID)
    draw = hashing.high_product(hashing.mix(states), numerator).astype(np.int64)
    rounded = floor + (draw % GRID < fraction)
    return np.where(counts * GRID >= numerator, counts, np.where(draw < counts * GRID, rounded, 0))


def binomial_sample(counts: Counts, t: float, states: Uint64s) -> Counts:
    """Keep each unit of each count with probability 1 / t; the server multiplies by t."""
    counts = _checked(counts, states, 32)  # the time is that of one draw a unit
    kept = np.zeros_like(counts)
    kernels.sampling.keep_units(counts, states, grid_units(t), GRID, kept)
    return kept


def largest_total(items: int, t: float, sampling: Sampling) -> int:
    """Return a bound on the sampled counts of so many items; it fails with probability 2**-40.

    At t = 1 nothing is sampled, and the items are the bound. Else Bernstein's inequality, or the
    largest possible total where that is less (docs/math.md).
    """
    if t == 1:
        return items
    mean, variance, step = (
        (items / t, items / t * (1 - 1 / t), 1)
        if sampling == "binomial"
        else (items, items * (t - 0.75), math.ceil(t))
    )
    linear = step * _TAIL / 3
    excess = linear + math.sqrt(linear * linear + 2 * variance * _TAIL)
    return min(items * step, math.ceil(mean + excess))


def sampling_variance(t: float, sampling: Sampling) -> float:
    """Return the variance of a sampled count of 1; threshold sampling rounds t to an integer."""
    fraction = t % 1 if sampling == "threshold" else 0.0
    return t - 1 + fraction * (1 - fraction) / t


def on_grid(t: float) -> float:
    """Round a sampling threshold to the nearest multiple of 2**-16."""
    if not isinstance(t, Real) or not 1 <= t <= MAX_THRESHOLD:
        raise PlanningError(f"The sampling threshold must lie in 1 .. 2**32, not {t!r}.")
    return round(t * GRID) / GRID


def checked_threshold(t: float) -> float:
    """Return t as a float; raise unless it is a multiple of 2**-16."""
    if isinstance(t, bool):
        raise PlanningError(f"The sampling threshold is a number, not {t}.")
    return grid_units(t) / GRID


def grid_units(t: float) -> int:
    """Return t * 2**16, an integer; raise unless t is a multiple of 2**-16."""
    if on_grid(t) != t:
        raise PlanningError(f"{t} is no multiple of 2**-16: pass it through on_grid first.")
    return int(t * GRID)
