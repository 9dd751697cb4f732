"""From evidence to counts over the campaign, with standard errors."""

from collections.abc import Sequence

import numpy as np

from linsketch.plan import Plan
from linsketch.server.estimates import FailedRounds, Listed
from linsketch.server.recover import Round
from linsketch.server.slots.evidence import evidence


def listed_by_slots(plan: Plan, rounds: Sequence[Round], failed: FailedRounds) -> Listed:
    """Estimate every key that was seen.

    What was counted is exact. Rounds in which a key was not counted are taken to be like those of
    the same epoch in which it was ("scale"), or count for what was sampled in them ("zero"); for
    a key whose slots disagree with what was expected of them, the latter, whatever is asked for,
    with an error as large as what the other would have added.
    """
    known = evidence(plan, rounds)
    scale = failed == "scale"
    mass, phi = float(known.masses.sum()), known.dispersion
    totals, variances = known.now.totals(mass, phi, ~known.suspect & scale)
    filled, _ = known.now.totals(mass, phi, True)
    variances = variances + np.where(known.suspect & scale, (filled - totals) ** 2, 0.0)
    before, spread = known.before(scale)
    votes = np.ones(len(known.keys), np.int64)
    return Listed(known.keys, totals + before, variances + spread, votes, known.seen, known.suspect)
