"""The bound on what one user contributes."""

import numpy as np

from linsketch import kernels
from linsketch.arrays import Counts, Words
from linsketch.errors import CountError


def bounded(counts: Counts, most: int, states: Words, starts: Counts | None = None) -> Counts:
    """Keep at most `most` occurrences of each user, uniformly without replacement.

    One user has all rows and one state; with `starts`, user i has the rows from starts[i] to
    starts[i + 1], in an order that must not depend on where they came from. The bound is a bias,
    and named as one: whoever has more counts for less.

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
