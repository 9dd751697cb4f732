"""Local subsampling: threshold sampling (Algorithm 1) and binomial sampling, in integers.

Law (unbiased): the expected sampled count (for binomial sampling: times t) is the
count, for every t >= 1. t is a multiple of 2**-16, so that all sides hold the same number;
both rules are exact in integers, given uniform states (`linsketch.randomness`).
"""

import numpy as np

from linsketch import hashing, kernels
from linsketch.arrays import Counts, Words
from linsketch.errors import CountError
from linsketch.plan import GRID, grid_units


def _checked(counts: Counts, states: Words, bits: int) -> Counts:
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


def threshold_sample(counts: Counts, t: float, states: Words) -> Counts:
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


def binomial_sample(counts: Counts, t: float, states: Words) -> Counts:
    """Keep each unit of each count with probability 1 / t; the server multiplies by t."""
    counts = _checked(counts, states, 32)  # the time is that of one draw a unit
    kept = np.zeros_like(counts)
    kernels.sampling.keep_units(counts, states, grid_units(t), GRID, kept)
    return kept
