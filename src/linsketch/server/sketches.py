"""Estimates out of the rounds' count sketches, for keys that one asks about."""

import math
from collections.abc import Sequence

import numpy as np

from linsketch.arrays import Estimates, Words
from linsketch.plan import Plan
from linsketch.server.recover import Round
from linsketch.task import hybrid_sketch, round_sketch


def sketched(plan: Plan, rounds: Sequence[Round], keys: Words) -> tuple[Estimates, float]:
    """Estimate keys' counts over all rounds, with the standard error of each.

    Count-median adds up the medians of the rounds, Algorithm 3 takes the median over rows of the
    sums over rounds. A row's error has the variance F2 / width, with F2 the sum of squared
    counts, which the row's own squared counters add up to in expectation; the median of b
    independent rows has about pi / (2 b) of it.
    """
    sums = {closed.task.round: closed.sketch_sum for closed in rounds if closed.sketch_sum}
    squares = 0.0
    estimates: Estimates = np.zeros(len(keys))
    for round_, vector in sums.items():
        sketch = round_sketch(plan, round_)
        squares += float((sketch.counters(vector).astype(np.float64) ** 2).sum()) / sketch.rows
        if plan.method == "count-median":
            estimates += sketch.estimate_keys(vector, keys)
    if plan.method != "count-median":
        estimates = hybrid_sketch(plan).estimate_keys(sums, keys)
    efficiency = math.pi / 2 if plan.sketch_rows > 1 else 1.0
    return estimates, math.sqrt(squares / plan.sketch_width * efficiency / plan.sketch_rows)
