"""Algorithms 2 and 3, with constants that are proven for any data (docs/math.md)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from linsketch.arrays import Mask
from linsketch.errors import PlanningError
from linsketch.history import Estimate, FailedRounds, Round
from linsketch.methods.base import Forecast, planned
from linsketch.methods.listing import Listed, ListedSums
from linsketch.methods.proofs import (
    PrintedConstants,
    heavy_constants,
    printed_constants,
    sketch_shape,
)
from linsketch.methods.sketches import WithSketch
from linsketch.methods.tables import (
    LEAST_THRESHOLD,
    ListingMethod,
    SampledMethod,
    threshold_of,
    useful_capacity,
)
from linsketch.methods.unsampled import Unsampled
from linsketch.plan import Brief, Plan, Scope
from linsketch.sampling import MAX_THRESHOLD
from linsketch.validation import whole_number


@dataclass(frozen=True, kw_only=True)
class ProvenForecast(Forecast):
    """What to expect, and the constants that the paper prints; with one round these vanish."""

    printed: PrintedConstants | None


@dataclass(frozen=True, kw_only=True)
class Proven(WithSketch, SampledMethod[ListedSums], ListingMethod):
    """What most repetitions saw is listed (Algorithm 2); a sketch counts it (Algorithm 3)."""

    name = "proven"

    repetitions: int = planned(1)
    table_failure_probability: float = planned(0.01)

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(self, "repetitions", 1, 1000)

    def plan(self, brief: Brief) -> Plan:
        """Plan Algorithm 2 for a threshold or a budget, or Algorithm 3 for an error."""
        if brief.error is not None:
            return self._histogram(brief)
        threshold = threshold_of(self, brief)
        budget = brief.budget
        if threshold is None:
            threshold = self._least_threshold(brief, budget or 0)
        method, needed = self._for(brief, threshold, brief.failure_probability)
        if budget is not None and needed > budget:
            raise PlanningError(
                f"A budget of {budget:,} bytes is too small to prove a threshold of "
                f"{threshold:,}: that takes {needed:,} bytes."
            )
        return brief.plan(method, needed, threshold)

    def _for(self, scope: Scope, threshold: int, beta: float) -> tuple["Proven", int]:
        """Return Algorithm 2 for a threshold, and the bytes that it takes."""
        constants = heavy_constants(scope.items_per_round, scope.rounds, threshold, beta)
        method = replace(
            self,
            sampling_threshold=constants.sampling_threshold,
            repetitions=constants.repetitions,
            table_failure_probability=constants.table_failure_probability,
        )
        capacity = min(constants.capacity, useful_capacity(scope))
        return method, method.table_bytes(scope, capacity, method.sampling_threshold)

    def _least_threshold(self, brief: Brief, budget: int) -> int:
        """Return the smallest threshold that a budget has room for."""
        beta = brief.failure_probability
        low, high = LEAST_THRESHOLD - 1, brief.rounds * brief.items_per_round
        high = min(high, 2 * MAX_THRESHOLD)  # t is half of it
        if self._for(brief, LEAST_THRESHOLD, beta)[1] <= budget:  # nothing is sampled there
            return LEAST_THRESHOLD
        while high - low > 1:
            middle = (low + high) // 2
            fits = self._for(brief, middle, beta)[1] <= budget
            low, high = (low, middle) if fits else (middle, high)
        return high

    def _histogram(self, brief: Brief) -> Plan:
        """Plan Algorithm 3, or tables that hold everything where these weigh less."""
        plans: list[Plan] = []
        reasons: list[PlanningError] = []
        for make in (Unsampled(layout=self.layout).plan, self._algorithm_3):
            try:
                plans.append(make(brief))
            except PlanningError as reason:
                reasons.append(reason)
        if not plans:
            raise reasons[0]
        return min(plans, key=lambda plan: plan.budget)

    def _algorithm_3(self, brief: Brief) -> Plan:
        """Split the failure probability between the list of heavy hitters and the sketch."""
        error, half = brief.error or 0, brief.failure_probability / 2
        if error <= math.sqrt(brief.rounds):
            raise PlanningError("For an error up to the root of the rounds everything goes in.")
        listing, needed = self._for(brief, error, half)
        rows, width = sketch_shape(brief.items_per_round, brief.rounds, error, half)
        method = replace(listing, sketch_rows=rows, sketch_width=width)
        return brief.plan(method, needed + -(-method.sketch_bits(brief) // 8))

    def heavy(self, history: ListedSums, found: Listed) -> Mask:
        """Tell which keys most repetitions saw."""
        if self.sampling_threshold == 1:
            return found.heavy
        majority: Mask = 2 * history.votes >= self.repetitions
        return majority

    def histogram(
        self, history: ListedSums, failed: FailedRounds, candidates: Iterable[Any]
    ) -> list[Estimate]:
        """Return the listed items, counted by the sketch if there is one."""
        if not self.sketch_rows:
            return super().histogram(history, failed, candidates)
        known = self.heavy_hitters(history, failed, candidates)
        return self.sketched(history.plan, history.rounds, (line.item for line in known))

    def forecast(self, plan: Plan) -> Forecast:
        """Say what to expect, beside the paper's constants."""
        return ProvenForecast(**vars(super().forecast(plan)), printed=self._printed(plan))

    def _printed(self, plan: Plan) -> PrintedConstants | None:
        beta = plan.failure_probability
        if plan.rounds == 1:
            return None
        return printed_constants(plan.items_per_round, plan.rounds, plan.cutoff, beta)

    def notes(self, plan: Plan) -> dict[str, str]:
        """Compare with the constants that the paper prints."""
        lines = {**super().notes(plan), **self.sketch_notes()}
        if printed := self._printed(plan):
            lines["the paper prints"] = (
                f"{printed.capacity:,} keys, {printed.repetitions} repetitions "
                f"({printed.repetitions_of_the_proof} in its proof), {printed.words:,} words"
            )
        return lines

    def warnings(self, plan: Plan, rounds: Sequence[Round]) -> list[str]:
        """Give no warning: what is listed is proven, not estimated."""
        return []

    @property
    def left_out(self) -> str:
        """What is listed follows from votes, not from estimates."""
        return "Items from a tenth of the threshold on may be listed"
