"""From the rounds' lists to counts over the campaign, with standard errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from linsketch.arrays import Counts, Estimates, Mask, Words
from linsketch.keys import distinct_keys
from linsketch.plan import Plan, sampling_variance
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
    suspect: bool = False  # its slots disagree with each other


@dataclass(frozen=True)
class Listed:
    """All keys that came out of a campaign's tables."""

    keys: Words
    estimates: Estimates
    variances: Estimates
    votes: Counts  # repetitions that saw the key in any round
    seen: list[tuple[int, Counts]]  # rounds, and which keys a table of theirs had
    suspect: Mask | None = None

    def as_estimates(self, plan: Plan, chosen: Mask) -> list[Estimate]:
        """Return the chosen keys' items, the largest first."""
        rows = np.flatnonzero(chosen)
        place = np.cumsum(chosen) - 1
        rounds: list[dict[int, None]] = [{} for _ in rows]
        for number, keys in self.seen:
            for key in keys[chosen[keys]].tolist():
                rounds[place[key]][number] = None
        items = plan.keys.decode(self.keys[rows])
        order = sorted(range(len(rows)), key=lambda i: (-self.estimates[rows[i]], str(items[i])))
        return [
            Estimate(
                items[i],
                float(self.estimates[rows[i]]),
                float(np.sqrt(self.variances[rows[i]])),
                tuple(sorted(rounds[i])),
                bool(self.suspect is not None and self.suspect[rows[i]]),
            )
            for i in order
        ]


def listed(plan: Plan, rounds: Sequence[Round], failed: FailedRounds) -> Listed:
    """Add up the rounds of each repetition, and average the repetitions.

    An item with the value v in a round has a variance of v(t - 1) from sampling, and a little more
    where threshold sampling rounds t; at most, if users have it more than once (docs/math.md).
    Only complete peels count: keys of partial ones are right, but those that are missing are
    not missing at random.
    """
    repetitions = max(plan.repetitions, 1)
    users = sum(closed.users for closed in rounds)
    parts = []
    rounds = [closed for closed in rounds if closed.peels]
    for repetition in range(plan.repetitions):
        decoded = sum(closed.users for closed in rounds if closed.peels[repetition].complete)
        scale = users / decoded if failed == "scale" and decoded else 1.0
        for closed in rounds:
            peel = closed.peels[repetition]
            if peel.complete and len(peel.keys):
                t = closed.task.sampling_threshold
                values = peel.counts * (t if plan.sampling == "binomial" else 1.0)
                sampling = scale**2 * sampling_variance(t, plan.sampling) * values
                # Who fell into the lost rounds is the same for all repetitions.
                chance = scale * (scale - 1) * values
                variances = sampling / repetitions**2 + chance / repetitions
                parts.append((peel.keys, scale * values, variances, repetition, closed.task.round))
    if not parts:
        none = np.empty(0)
        keys = np.empty((0, plan.keys.limbs), np.uint64)
        return Listed(keys, none, none, np.empty(0, np.int64), [])
    keys, group = distinct_keys(np.concatenate([part[0] for part in parts]))
    estimates, variances = np.zeros(len(keys)), np.zeros(len(keys))
    voted = np.zeros((len(keys), repetitions), bool)
    seen, first = [], 0
    for part_keys, values, part_variances, repetition, round_ in parts:
        rows = group[first : first + len(part_keys)]  # no key twice in one peel
        first += len(part_keys)
        estimates[rows] += values / repetitions
        variances[rows] += part_variances
        voted[rows, repetition] = True
        seen.append((round_, rows))
    return Listed(keys, estimates, variances, voted.sum(axis=1), seen)
