"""A client's report: the one door by which a vector leaves a device."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsketch.plan import Plan
from linsketch.randomness import Randomness, SystemRandomness
from linsketch.rings import RingVector
from linsketch.round import RoundSketch, RoundTask
from linsketch.sampling import bounded
from linsketch.sketch.base import integer_counts


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

    Raises `TaskError` for a task that the plan does not allow. Samples with the operating
    system's randomness; a simulation passes its own.

    >>> from linsketch import Contribution, Server, Utf8Keys, plan_campaign, report
    >>> plan = plan_campaign(rounds=1, users_per_round=2, items_per_user=3, keys=Utf8Keys(8),
    ...                      seed=b"doc", threshold=2, method="unsampled").plan
    >>> server = Server(plan)
    >>> task = server.open_round()
    >>> vectors = [report(own, plan, task).vector for own in ({"tea": 2}, {"tea": 1, "milk": 1})]
    >>> closed = server.close_round(task, [Contribution(sum(vectors), users=2)])
    >>> [(line.item, line.estimate) for line in server.heavy_hitters()]
    [('tea', 3.0)]
    """
    sketch = RoundSketch.of(plan, task)
    randomness = randomness or SystemRandomness()
    encoded = plan.keys.encode(histogram, outside="drop")
    counts = integer_counts(histogram.values())[encoded.kept]
    order = np.lexsort(encoded.keys.T[::-1])  # not the order in which the items happened to come
    kept = bounded(counts[order], plan.items_per_user, randomness.for_bound())
    return Report(
        vector=sketch.encode(encoded.keys[order], kept, randomness),
        beyond_bound=int(counts.sum() - kept.sum()),
        outside_keys=encoded.dropped,
    )
