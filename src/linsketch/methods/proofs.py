"""Constants that are proven for any data: Algorithm 2 and Algorithm 3 (docs/math.md)."""

import math
from dataclasses import dataclass

from linsketch.errors import PlanningError
from linsketch.sampling import MAX_THRESHOLD, on_grid
from linsketch.tails import binomial_tail, smallest_bound

_MISSED = math.exp(-2)  # a heavy item is sampled away in one run with at most this probability


@dataclass(frozen=True)
class HeavyConstants:
    """Algorithm 2 for a threshold: sampling, repetitions, and the keys each table must hold."""

    sampling_threshold: float
    repetitions: int
    capacity: int
    table_failure_probability: float


def heavy_constants(items: int, rounds: int, threshold: int, beta: float) -> HeavyConstants:
    """Choose the fewest repetitions whose majority is right but for probability beta.

    `items` are those of one round (mn). Of each table's share beta / (rounds * repetitions),
    half is for more keys than the capacity, half for a table that does not decode.
    """
    t = on_grid(min(max(threshold / 2, 1.0), MAX_THRESHOLD))
    kept = threshold / 10 / t  # how likely one run keeps an item of threshold / 10
    heavy = rounds * items / threshold  # items at the threshold or above
    for repetitions in range(1, 1000, 2):
        share = beta / (rounds * repetitions) / 2
        if t == 1:
            return HeavyConstants(t, 1, items, min(2 * share, 0.5))
        majority = (repetitions + 1) // 2
        missed = binomial_tail(repetitions, _MISSED + beta / repetitions, majority)
        listed = binomial_tail(repetitions, kept, majority)
        if heavy * missed + 10 * heavy * listed <= beta:
            capacity = smallest_bound(items, 1 / t, share)
            return HeavyConstants(t, repetitions, max(capacity, 1), share)
    raise PlanningError(f"No number of repetitions up to 999 fails with less than {beta}.")


@dataclass(frozen=True)
class PrintedConstants:
    """What the paper prints, for comparison."""

    capacity: int  # L0 = 20 (mn / threshold) log R
    repetitions: int  # of the listing
    repetitions_of_the_proof: int
    words: int  # 8 a key and repetition of the listing


def printed_constants(items: int, rounds: int, threshold: int, beta: float) -> PrintedConstants:
    """Return the constants of the paper's Algorithm 2 and of its proof."""
    heavy = rounds * items / threshold
    capacity = math.ceil(20 * items / threshold * math.log(rounds))
    listing = math.ceil(10 * math.log(4 * heavy / beta))
    proof = max(260, math.ceil(20 * math.log(40 * heavy / beta)))
    return PrintedConstants(capacity, listing, proof, 8 * capacity * listing)


def sketch_shape(items: int, rounds: int, error: int, beta: float) -> tuple[int, int]:
    """Return (rows, width) of the smallest sketch for Algorithm 3, whatever the data.

    A row of width w is off by more than the error with probability at most
    p = items * rounds / (w * error), also on data concentrated in single rounds; the median is
    off only where half of the rows are. 10 * items * rounds / error items can be listed.
    """
    mass = items * rounds / error
    shapes = []
    for rows in range(1, 400, 2):
        low, high = 0.0, 0.5
        for _ in range(40):
            p = (low + high) / 2
            if 10 * mass * binomial_tail(rows, p, (rows + 1) // 2) <= beta:
                low = p
            else:
                high = p
        if low > 0:
            shapes.append((rows, math.ceil(mass / low)))
        if len(shapes) > 20 and rows * mass / 0.5 > min(r * w for r, w in shapes):
            break  # more rows can only be larger
    return min(shapes, key=lambda shape: shape[0] * shape[1])
