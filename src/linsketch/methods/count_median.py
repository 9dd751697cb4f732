"""The paper's baseline: a count sketch a round, and the medians added up."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linsketch.arrays import Estimates, Uint64s
from linsketch.errors import PlanningError
from linsketch.hashing import Seeds
from linsketch.history import Estimate, FailedRounds, History, Round
from linsketch.methods.base import Method, planned, refuse
from linsketch.methods.fixed import Fixed
from linsketch.methods.sketches import (
    MOST_ROWS,
    MOST_WIDTH,
    as_estimates,
    row_error,
    sketch_sums,
    squared,
)
from linsketch.methods.tables import threshold_of
from linsketch.plan import Brief, Plan, Scope
from linsketch.round import Parts, RoundTask
from linsketch.sketch.countsketch import CountSketch
from linsketch.validation import whole_number


class Medians(History):
    """The sums of the rounds' medians, kept for the keys that were asked about last."""

    def __init__(self, plan: Plan, method: "CountMedian") -> None:
        super().__init__(plan)
        self._method = method
        self.squares = 0.0
        self._asked: Uint64s = np.empty((0, plan.keys.limbs), np.uint64)
        self._totals: Estimates = np.empty(0)
        self._counted = 0  # rounds

    def add(self, closed: Round) -> None:
        """Take a closed round."""
        super().add(closed)
        for round_, vector in sketch_sums([closed]).items():
            self.squares += squared(self._method.sketch(self.plan, round_), vector)

    def totals(self, keys: Uint64s) -> Estimates:
        """Add up the medians of all rounds."""
        if not np.array_equal(keys, self._asked):
            self._asked, self._totals, self._counted = keys, np.zeros(len(keys)), 0
        for round_, vector in sketch_sums(self.rounds[self._counted :]).items():
            sketch = self._method.sketch(self.plan, round_)
            self._totals = self._totals + sketch.estimate_keys(vector, keys)
        self._counted = len(self.rounds)
        return self._totals


@dataclass(frozen=True, kw_only=True)
class CountMedian(Method[Medians]):
    """It lists nothing by itself: it must be asked about every item (`candidates`)."""

    name = "count-median"
    interactive = False
    lists = False

    rows: int = 7
    width: int = planned(0)

    def __post_init__(self) -> None:
        whole_number(self, "rows", 1, MOST_ROWS)
        whole_number(self, "width", 0, MOST_WIDTH)

    def check_plan(self, plan: Plan) -> None:
        """Raise for a sketch without counters."""
        if not self.width:
            raise PlanningError("A plan with count-median has a width of 1 or more.")

    def sketch(self, scope: Scope, round_: int) -> CountSketch:
        """Return the sketch of a round: all hashes are fresh."""
        fresh = Seeds(scope.seed, round_)
        most = scope.items_per_round
        return CountSketch(scope.keys, self.rows, self.width, most, fresh, fresh)

    def plan(self, brief: Brief) -> Plan:
        """Spend on counters what sampling would spend on a table."""
        threshold = threshold_of(self, brief)
        if threshold is None:
            raise PlanningError("count-median needs a threshold; the budget may be left open.")
        budget = brief.budget
        if budget is None:
            budget = Fixed().free_budget(brief, threshold)
        bits = replace(self, width=1).sketch(brief, 1).ring.wire_bits
        if not (width := 8 * budget // bits):
            raise PlanningError(
                f"A budget of {budget:,} bytes is too small for any sketch: the smallest takes "
                f"{-(-bits // 8):,} bytes."
            )
        return brief.plan(replace(self, width=width), budget)

    def open(self, plan: Plan, history: Medians) -> RoundTask:
        """Ask for the sketch of the round."""
        return RoundTask(plan.plan_id, history.next_round, 1.0)

    def history(self, plan: Plan) -> Medians:
        """Keep the sums of medians."""
        return Medians(plan, self)

    def parts(self, plan: Plan, task: RoundTask) -> Parts:
        """Return the sketch."""
        return Parts(sketch=self.sketch(plan, task.round))

    def check(self, plan: Plan, task: RoundTask) -> None:
        """Raise for a task with a table, slots or sampling."""
        refuse(
            task.table or task.slots is not None or task.slice or task.sampling_threshold != 1,
            "The task has a table, slots or sampling, and the plan has a count sketch only.",
        )

    def heavy_hitters(
        self, history: Medians, failed: FailedRounds, candidates: Iterable[Any]
    ) -> list[Estimate]:
        """Return which of the candidates reach the threshold."""
        cutoff = history.plan.cutoff
        return [
            line for line in self.histogram(history, failed, candidates) if line.estimate >= cutoff
        ]

    def histogram(
        self,
        history: Medians,
        failed: FailedRounds,
        candidates: Iterable[Any],
    ) -> list[Estimate]:
        """Return an estimate for every candidate."""
        wanted = list(candidates)
        if not wanted or not sketch_sums(history.rounds):
            return []
        values = history.totals(history.plan.keys.encode(wanted).keys)
        stderr = row_error(history.squares, self.rows, self.width)
        return as_estimates(wanted, values, stderr, history.rounds)

    def notes(self, plan: Plan) -> dict[str, str]:
        """Say how large the sketch is."""
        return {"sketch": f"{self.rows} rows of {self.width:,} counters"}

    @property
    def also_seen(self) -> str:
        """It was told every item."""
        return "; it was asked about all items of the data, which a real one does not know"
