"""Section 7's plans: as much table as the budget has room for, and t to fill it."""

from dataclasses import dataclass, replace

from linsketch.methods.listing import ListedSums
from linsketch.methods.tables import (
    ListingMethod,
    SampledMethod,
    practical_threshold,
    threshold_of,
)
from linsketch.plan import Brief, Plan


@dataclass(frozen=True, kw_only=True)
class Practical(SampledMethod[ListedSums], ListingMethod):
    """As much table as the budget has room for, and t so that a round fills it (section 7)."""

    uses_mean = True

    def plan(self, brief: Brief) -> Plan:
        """Choose the budget or the threshold, whichever is open, and t."""
        threshold = threshold_of(self, brief)
        budget = brief.budget
        if budget is None:
            budget = self.free_budget(brief, threshold or 0)
        t = self.filling_t(brief, budget)
        threshold = threshold or practical_threshold(brief, t)
        method = replace(self, sampling_threshold=self.first_t(t, threshold))
        return brief.plan(method, budget, threshold)

    def first_t(self, filling: float, threshold: int) -> float:
        """Return t, given the one that fills the table."""
        return filling
