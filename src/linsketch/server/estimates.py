"""From the rounds' lists to counts over the campaign, with standard errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from linsketch.arrays import Counts, Estimates, Mask, Words
from linsketch.plan import Plan
from linsketch.server.recover import Round

FailedRounds = Literal["scale", "zero"]
"""Rounds that did not decode: scale the others up, or count them as zero (the paper)."""


@dataclass(frozen=True)
class Estimate:
    """An item's count over the campaign."""

    item: Any
    estimate: float
    stderr: float
    rounds: tuple[int, ...]  # in which it was seen; of a sketch, all rounds


@dataclass(frozen=True)
class Listed:
    """All keys that came out of a campaign's tables."""

    keys: Words
    estimates: Estimates
    variances: Estimates
    votes: Counts  # repetitions that saw the key in any round
    seen: Mask  # a row a key, a column a round

    def as_estimates(self, plan: Plan, rounds: Sequence[Round], chosen: Mask) -> list[Estimate]:
        """Return the chosen keys' items, the largest first."""
        numbers = [closed.task.round for closed in rounds]
        rows = np.flatnonzero(chosen)
        items = plan.keys.decode(self.keys[rows])
        order = sorted(range(len(rows)), key=lambda i: (-self.estimates[rows[i]], str(items[i])))
        return [
            Estimate(
                items[i],
                float(self.estimates[rows[i]]),
                float(np.sqrt(self.variances[rows[i]])),
                tuple(n for n, seen in zip(numbers, self.seen[rows[i]], strict=True) if seen),
            )
            for i in order
        ]


def listed(plan: Plan, rounds: Sequence[Round], failed: FailedRounds) -> Listed:
    """Add up the rounds of each repetition, and average the repetitions.

    A kept count of threshold sampling stands for t - h others at most: an item that the tables
    give the value v in a round has a variance of at most v(t - 1) from it, and that is the
    estimate of it; for binomial sampling it is unbiased. Only complete peels count: keys of
    partial ones are right, but those that are missing are not missing at random.
    """
    repetitions = max(plan.repetitions, 1)
    users = sum(closed.users for closed in rounds)
    parts = []
    for repetition in range(plan.repetitions):
        decoded = sum(closed.users for closed in rounds if closed.peels[repetition].complete)
        scale = users / decoded if failed == "scale" and decoded else 1.0
        for number, closed in enumerate(rounds):
            peel = closed.peels[repetition]
            if peel.complete and len(peel.keys):
                t = closed.task.sampling_threshold
                values = peel.counts * (t if plan.sampling == "binomial" else 1.0)
                # Scaling adds the chance of who fell into which round (docs/math.md).
                variances = scale**2 * values * (t - 1) + values * scale * (scale - 1)
                parts.append((peel.keys, scale * values, variances, repetition, number))
    if not parts:
        none = np.empty(0)
        keys = np.empty((0, plan.keys.limbs), np.uint64)
        return Listed(keys, none, none, np.empty(0, np.int64), np.empty((0, len(rounds)), bool))
    keys, group = distinct_rows(np.concatenate([part[0] for part in parts]))
    estimates, variances = np.zeros(len(keys)), np.zeros(len(keys))
    voted = np.zeros((len(keys), repetitions), bool)
    seen = np.zeros((len(keys), len(rounds)), bool)
    first = 0
    for part_keys, values, part_variances, repetition, number in parts:
        rows = group[first : first + len(part_keys)]  # no key twice in one peel
        first += len(part_keys)
        estimates[rows] += values / repetitions
        variances[rows] += np.maximum(part_variances, 0) / repetitions**2
        voted[rows, repetition] |= values > 0
        seen[rows, number] = True
    return Listed(keys, estimates, variances, voted.sum(axis=1), seen)


def distinct_rows(keys: Words) -> tuple[Words, Counts]:
    """Return the distinct rows, sorted, and which of them each row is."""
    order = np.lexsort(keys.T[::-1])
    ordered = keys[order]
    new = np.ones(len(keys), bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    group = np.empty(len(keys), np.int64)
    group[order] = np.cumsum(new) - 1
    return ordered[new], group
