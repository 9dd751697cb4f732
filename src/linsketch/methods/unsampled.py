"""Everything goes into the tables, and comes out again."""

from dataclasses import dataclass, replace

from linsketch.errors import PlanningError
from linsketch.methods.base import planned
from linsketch.methods.tables import ListingMethod, useful_capacity
from linsketch.plan import Brief, Plan


@dataclass(frozen=True, kw_only=True)
class Unsampled(ListingMethod):
    """Exact counts: all tables decode with probability at least 1 - failure_probability."""

    name = "unsampled"

    table_failure_probability: float = planned(0.01)

    def plan(self, brief: Brief) -> Plan:
        """Plan tables for all keys of a round, unless a budget says otherwise."""
        if brief.threshold is None and brief.error is None:
            raise PlanningError("unsampled needs a threshold; the budget may be left open.")
        share = min(brief.failure_probability / brief.rounds, 0.5)
        method = replace(self, table_failure_probability=share)
        everything = method.table_bytes(brief, useful_capacity(brief), 1.0)
        return brief.plan(method, everything if brief.budget is None else brief.budget)
