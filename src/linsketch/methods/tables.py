"""Methods that list the items of a round out of tables (IBLTs)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, get_args

from linsketch.arrays import Mask
from linsketch.errors import PlanningError
from linsketch.hashing import Seeds
from linsketch.history import Estimate, FailedRounds, Round
from linsketch.keys import KeySpace
from linsketch.methods.base import Method, planned, refuse
from linsketch.methods.listing import Listed, ListedSums, ListingHistory
from linsketch.plan import Brief, Plan, Scope
from linsketch.round import Parts, RoundTask, TableShape
from linsketch.sampling import (
    MAX_THRESHOLD,
    Sampling,
    checked_threshold,
    largest_total,
    on_grid,
    sampling_variance,
)
from linsketch.sketch.countsketch import CountSketch
from linsketch.sketch.iblt import IBLT, Layout
from linsketch.sketch.sizing import Size, smallest_size
from linsketch.validation import one_of, probability

L = TypeVar("L", bound=ListingHistory)
RELATIVE_ERROR = 0.25  # of an item at the threshold, where the planner is free to choose
LEAST_THRESHOLD = 2  # of a planner's choice: a list from 1 on shows what single people have


@dataclass(frozen=True, kw_only=True)
class TableMethod(Method[L]):
    """What all of them share: the table's layout, and how large it can be."""

    layout: Layout = "compact"
    table_failure_probability: float = 0.01

    def __post_init__(self) -> None:
        one_of(self, "layout", get_args(Layout))
        probability(self, "table_failure_probability")

    @property
    def sampling(self) -> Sampling:
        """How users sample, where t is more than 1."""
        return "threshold"

    @property
    def sampling_threshold(self) -> float:
        """The t of the first round, and of every round unless the method adapts it."""
        return 1.0

    @property
    def repetitions(self) -> int:
        """How many tables a vector has."""
        return 1

    @property
    def decode_failure_probability(self) -> float:
        """How likely a full table is not to decode."""
        return self.table_failure_probability

    def sketch(self, scope: Scope, round_: int) -> CountSketch | None:
        """Return the count sketch beside the tables, if there is one."""
        return None

    def sketch_bits(self, scope: Scope) -> int:
        """Return the size of the sketch on the wire."""
        sketch = self.sketch(scope, 1)
        return sketch.ring.wire_bits if sketch else 0

    def taken_bits(self, scope: Scope) -> int:
        """Return what the first round spends on neither table nor sketch."""
        return 0

    def parts(self, plan: Plan, task: RoundTask) -> Parts:
        """Return tables whose hashes are fresh in every round and repetition."""
        tables: list[IBLT] = []
        if shape := task.table:
            for repetition in range(self.repetitions):
                seeds = Seeds(plan.seed, task.round, repetition)
                tables.append(IBLT(plan.keys, shape.size, shape.max_count, seeds, self.layout))
        return Parts(tuple(tables), self.sketch(plan, task.round), sampling=self.sampling)

    def check(self, plan: Plan, task: RoundTask) -> None:
        """Raise for a task without a table, and for slots or a slice."""
        refuse(task.table is None, "The task has no table, and the plan's method lists items.")
        refuse(
            task.slots is not None or task.slice,
            "The task has slots or a slice where the plan has none.",
        )

    def cell_bits(self, scope: Scope, t: float) -> int:
        """Return the size of one cell on the wire."""
        most = largest_total(scope.items_per_round, t, self.sampling)
        return cell_bits(scope.keys, most, self.layout)

    def table_bytes(self, scope: Scope, capacity: int, t: float) -> int:
        """Return what all repetitions of a table for `capacity` keys weigh."""
        size = smallest_size(capacity, self.table_failure_probability)
        return -(-self.repetitions * size.cells * self.cell_bits(scope, t) // 8)

    def fitting_table(self, scope: Scope, budget: int, t: float, taken: int = 0) -> TableShape:
        """Return the table of the largest capacity that a budget has room for.

        `taken` bits of it are spent on something else, those of the sketch not counted.
        """
        room = 8 * budget - self.sketch_bits(scope) - taken
        cells = room // self.repetitions // self.cell_bits(scope, t)
        most = min(useful_capacity(scope), 10**9)
        capacity = _largest_capacity(cells, self.table_failure_probability, most)
        if not capacity:
            raise self.too_small(scope, budget)
        size = smallest_size(capacity, self.table_failure_probability)
        return TableShape(size, largest_total(scope.items_per_round, t, self.sampling), capacity)

    def smallest_budget(self, scope: Scope) -> int:
        """Return the bytes of a message whose tables have room for one key, whatever t will be."""
        smallest = max(self.table_bytes(scope, 1, t) for t in self.extreme_ts(scope))
        return smallest + -(-self.sketch_bits(scope) // 8)

    def extreme_ts(self, scope: Scope) -> tuple[float, ...]:
        """Return the least and the largest t that rounds may have."""
        return (1.0,)

    def too_small(self, scope: Scope, budget: int) -> PlanningError:
        """Return the error for a budget that no table fits into."""
        return PlanningError(
            f"A budget of {budget:,} bytes is too small for any table: with these keys, users and "
            f"repetitions the smallest takes {self.smallest_budget(scope):,} bytes."
        )

    def heavy_hitters(
        self, history: L, failed: FailedRounds, candidates: Iterable[Any]
    ) -> list[Estimate]:
        """Return the heavy keys' items."""
        found = history.listed(failed)
        return found.lines(self.heavy(history, found))

    def found(self, history: L) -> set[Any]:
        """Return the heavy hitters so far, without their counts."""
        found = history.listed("scale")
        return set(history.plan.keys.decode(found.keys[self.heavy(history, found)]))

    def heavy(self, history: L, found: Listed) -> Mask:
        """Tell which keys are heavy: those with an estimate of at least the threshold."""
        return found.heavy

    def histogram(
        self, history: L, failed: FailedRounds, candidates: Iterable[Any]
    ) -> list[Estimate]:
        """Return all that was listed, sampled or not: below the threshold these are anecdotes."""
        return history.listed(failed).everything()

    def notes(self, plan: Plan) -> dict[str, str]:
        """Say how large the table is, and how it samples."""
        t, taken = self.sampling_threshold, self.taken_bits(plan)
        shape = self.fitting_table(plan, plan.budget, t, taken)
        return {
            "table": f"{shape.capacity:,} keys in {shape.size.cells:,} cells, "
            f"{self.repetitions} repetition{'s' * (self.repetitions > 1)}",
            "a full table does not decode": f"{self.table_failure_probability:.2g}",
            "sampling threshold t": f"{self.sampling_threshold:,.2f} ({self.sampling})",
        }

    def accepted(self, plan: Plan) -> dict[str, str]:
        """Say how clients sample."""
        rule = f"{self.name}, t = {self.sampling_threshold:.3g}"
        return {**super().accepted(plan), "sampling": rule}

    def warnings(self, plan: Plan, rounds: Sequence[Round]) -> list[str]:
        """Warn where sampling makes the list noise near the threshold."""
        ts = [closed.task.sampling_threshold for closed in rounds]
        variance = sum(sampling_variance(t, self.sampling) for t in ts) / max(len(ts), 1)
        stderr = math.sqrt(plan.cutoff * variance / self.repetitions)
        if plan.error is not None or stderr <= plan.cutoff / 2:
            return []
        return [
            f"An item at the threshold of {plan.cutoff:,} has a standard error of {stderr:,.0f}: "
            "near the threshold the list is noise. Raise the threshold or the budget."
        ]


@dataclass(frozen=True, kw_only=True)
class ListingMethod(TableMethod[ListedSums]):
    """Methods whose counts are what the tables listed; one t for all rounds, unless they adapt."""

    interactive = False

    def history(self, plan: Plan) -> ListedSums:
        """Keep the sums of what was listed."""
        return ListedSums(plan, self.sampling, self.repetitions)

    def open(self, plan: Plan, history: ListedSums) -> RoundTask:
        """Return the task: the table that the budget has room for."""
        t = self.next_t(plan, history)
        table = self.fitting_table(plan, plan.budget, t)
        return RoundTask(plan.plan_id, history.next_round, t, table)

    def next_t(self, plan: Plan, history: ListedSums) -> float:
        """Return the sampling threshold of the next round."""
        return self.sampling_threshold

    def t_range(self, plan: Plan) -> tuple[float, float]:
        """Return between which thresholds rounds may sample."""
        return self.sampling_threshold, self.sampling_threshold

    def check(self, plan: Plan, task: RoundTask) -> None:
        """Raise also for a t out of range."""
        super().check(plan, task)
        t, (low, high) = task.sampling_threshold, self.t_range(plan)
        refuse(
            not low <= t <= high,
            f"The round samples with t = {t}; the plan allows {low} to {high}.",
        )

    def stderr(self, plan: Plan) -> float | None:
        """Return the error that sampling at the plan's t leaves."""
        if self.sketch(plan, 1):
            return None
        variance = sampling_variance(self.sampling_threshold, self.sampling)
        return math.sqrt(plan.cutoff * variance / self.repetitions)


@dataclass(frozen=True, kw_only=True)
class SampledMethod(TableMethod[L]):
    """Methods whose users sample: with t in every round, or in the first one."""

    sampling_threshold: float = planned(1.0)
    sampling: Sampling = "threshold"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "sampling", get_args(Sampling))
        object.__setattr__(self, "sampling_threshold", checked_threshold(self.sampling_threshold))

    def largest_t(self, scope: Scope) -> float:
        """Return where sampling stops: a round keeps about one item."""
        return float(min(scope.items_per_round, MAX_THRESHOLD))

    def extreme_ts(self, scope: Scope) -> tuple[float, ...]:
        """Return the least and the largest t that rounds may have."""
        return 1.0, self.largest_t(scope)

    def free_budget(self, brief: Brief, threshold: int) -> int:
        """Return a budget with which an item at the threshold has RELATIVE_ERROR."""
        t = on_grid(min(1 + RELATIVE_ERROR**2 * threshold, self.largest_t(brief)))
        capacity = min(useful_capacity(brief), math.ceil(brief.mean_items_per_round / t))
        return max(self.table_bytes(brief, capacity, t), self.smallest_budget(brief))

    def filling_t(self, brief: Brief, budget: int) -> float:
        """Return the t with which a round fills the table of a budget."""
        if budget < self.smallest_budget(brief):
            raise self.too_small(brief, budget)
        t = 1.0
        for _ in range(3):  # the counts' width depends on t, and the capacity on that
            capacity = self.fitting_table(brief, budget, t).capacity
            wanted = max(1.0, brief.mean_items_per_round / capacity)
            t = on_grid(min(wanted, self.largest_t(brief)))
        return t


def practical_threshold(scope: Scope, t: float) -> int:
    """Return the threshold at which an item has RELATIVE_ERROR with this t."""
    least = max(LEAST_THRESHOLD, math.ceil((t - 1) / RELATIVE_ERROR**2))
    return min(least, scope.rounds * scope.items_per_round)


def threshold_of(method: Method[Any], brief: Brief) -> int | None:
    """Return the threshold, None if it follows from the budget; raise unless one is given."""
    if brief.error is not None:
        raise PlanningError(
            f"{method.name} finds heavy hitters: give a threshold or a budget. For a histogram "
            "with an error take proven or slots."
        )
    if brief.threshold is None and brief.budget is None:
        raise PlanningError(
            "Give a threshold, a budget or both; unsampled and count-median need a threshold."
        )
    return brief.threshold


def cell_bits(keys: KeySpace[Any], max_count: int, layout: Layout) -> int:
    """Return the size of one cell on the wire."""
    cell = IBLT(keys, Size(3, 3, 1), max_count, Seeds(b"any"), layout)
    return cell.ring.wire_bits // 3


def useful_capacity(scope: Scope) -> int:
    """Return how many different keys a round can have at most."""
    return min(scope.items_per_round, scope.keys.most)


@cache
def _largest_capacity(cells: int, failure_probability: float, most: int) -> int:
    """Return the largest capacity, up to `most`, whose table has no more cells; 0 if none."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        if smallest_size(middle, failure_probability).cells <= cells:
            low = middle
        else:
            high = middle
    return low
