"""One user's report in one round: bound, sample, encode."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsketch.arrays import Counts, Words
from linsketch.client.histogram import bounded
from linsketch.client.subsample import binomial_sample, threshold_sample
from linsketch.plan import Plan
from linsketch.randomness import Randomness, SystemRandomness
from linsketch.rings import RingVector
from linsketch.sketch.base import integer_counts
from linsketch.task import RoundTask, check_task, in_slice, message


@dataclass(frozen=True)
class Report:
    """A vector for the secure sum, and what the user's bound and the keys left out of it."""

    vector: RingVector
    beyond_bound: int  # occurrences above the plan's items_per_user
    outside_keys: int  # different items that the plan's keys cannot hold


def report(
    histogram: Mapping[Any, int],
    plan: Plan,
    task: RoundTask,
    randomness: Randomness | None = None,
) -> Report:
    """Run by a client: turn its histogram into its vector of one round.

    Refuses a task that does not fit the plan. Samples with the operating system's randomness; a
    simulation passes its own.
    """
    check_task(plan, task)
    randomness = randomness or SystemRandomness()
    encoded = plan.keys.encode(histogram, outside="drop")
    counts = integer_counts(histogram.values())[encoded.kept]
    order = np.lexsort(encoded.keys.T[::-1])  # not the order in which the items happened to come
    keys = encoded.keys[order]
    kept = bounded(counts[order], plan.items_per_user, randomness.for_bound())
    parts = message(plan, task)
    vectors = []
    wanted = in_slice(plan, task.slice, keys)
    if parts.slots:
        wanted &= parts.slots.places(keys) < 0
    for repetition, table in enumerate(parts.tables):
        states = randomness.for_sampling(task.round, repetition, keys)
        values = sampled(kept, plan, task, states)
        vectors.append(table.encode_keys(keys[wanted], values[wanted]))
    if parts.sketch:
        vectors.append(parts.sketch.encode_keys(keys, kept))
    if parts.slots:
        vectors.append(parts.slots.encode_keys(keys, kept))
    return Report(
        vector=parts.join(vectors),
        beyond_bound=int(counts.sum() - kept.sum()),
        outside_keys=encoded.dropped,
    )


def sampled(counts: Counts, plan: Plan, task: RoundTask, states: Words) -> Counts:
    """Sample counts of one user, or of many, by the plan's rule."""
    t = task.sampling_threshold
    if t == 1:
        return counts
    sample = threshold_sample if plan.sampling == "threshold" else binomial_sample
    return sample(counts, t, states)
