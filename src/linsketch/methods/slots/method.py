"""The method `slots`: known items are counted in slots, unknown ones looked for in slices."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from linsketch.errors import PlanningError
from linsketch.history import Estimate, FailedRounds
from linsketch.methods.base import largest_first, refuse
from linsketch.methods.proofs import sketch_shape
from linsketch.methods.sketches import WithSketch
from linsketch.methods.slots.evidence import Evidence
from linsketch.methods.slots.rules import DiscoveryRule, SlotRule, unknown
from linsketch.methods.tables import (
    LEAST_THRESHOLD,
    SampledMethod,
    practical_threshold,
    threshold_of,
    useful_capacity,
)
from linsketch.plan import Brief, Plan, Scope
from linsketch.round import Parts, RoundTask, TableShape
from linsketch.sampling import Sampling, on_grid
from linsketch.sketch.slices import WHOLE, Slice
from linsketch.sketch.slots import SlotSketch
from linsketch.validation import whole_number


@dataclass(frozen=True, kw_only=True)
class Slots(WithSketch, SampledMethod[Evidence]):
    """What was found is counted in slots of a few bits; tables look only for what is new.

    t is the server's to choose. Clients refuse tasks that name more than `most_slots` items or
    look at less than `smallest_slice` of 2**32 keys: with those a server could aim at few people.
    """

    name = "slots"
    uses_mean = True

    sampling: Sampling = "binomial"
    slots_from: int = 0  # occurrences seen before an item is named; 0: the planner chooses
    most_slots: int = 10_000  # items named in a round
    smallest_slice: int = 1 << 20  # of 2**32

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(self, "slots_from", 0, 10**18)
        whole_number(self, "most_slots", 0, 10**9)
        whole_number(self, "smallest_slice", 1, WHOLE)

    def check_plan(self, plan: Plan) -> None:
        """Raise for a plan that names items which nobody has shown."""
        super().check_plan(plan)
        if not self.slots_from:
            raise PlanningError("A plan with slots names an item after 1 occurrence or more.")

    # Planning.

    def plan(self, brief: Brief) -> Plan:
        """Choose a budget for the threshold or error, or a threshold for the budget; and t."""
        seen = self.slots_from or (2 if brief.items_per_user == 1 or brief.error else 3)
        method = replace(self, slots_from=seen)
        if brief.error is not None:
            return method._histogram(brief, brief.error)
        threshold, budget = threshold_of(self, brief), brief.budget
        if budget is None:
            needed = method._bytes_for(brief, threshold or 0)
            budget = max(needed, method.smallest_budget(brief))
        t = method.filling_t(brief, budget)
        if threshold is None:  # never worse than by sampling alone
            threshold = min(method._least_threshold(brief, budget), practical_threshold(brief, t))
        return brief.plan(replace(method, sampling_threshold=t), budget, threshold)

    def _histogram(self, brief: Brief, error: int) -> Plan:
        """Put slots beside the sketch of Algorithm 3."""
        beta = brief.failure_probability
        rows, width = sketch_shape(brief.items_per_round, brief.rounds, error, beta)
        method = replace(self, sketch_rows=rows, sketch_width=width)
        budget = method._bytes_for(brief, error) + -(-method.sketch_bits(brief) // 8)
        budget = max(budget, method.smallest_budget(brief))
        t = method.filling_t(brief, budget)
        return brief.plan(replace(method, sampling_threshold=t), budget)

    def _bytes_for(self, brief: Brief, threshold: int) -> int:
        """Return the bytes that a threshold asks for: a table for new keys, and slots.

        The table is of the order of the paper's lower bound, mass / threshold; the slots have room
        for a quarter of the items that can reach the threshold, with a byte each.
        """
        mass = brief.mean_items_per_round
        capacity = min(math.ceil(100 + mass / threshold), useful_capacity(brief))
        slots = math.ceil(brief.rounds * mass / threshold / 4)
        return self.table_bytes(brief, capacity, 1.0) + slots + -(-_total_bits(brief) // 8)

    def _least_threshold(self, brief: Brief, budget: int) -> int:
        """Return the smallest threshold that a budget has room for."""
        most = math.ceil(brief.rounds * brief.mean_items_per_round)
        low, high = LEAST_THRESHOLD - 1, max(most, LEAST_THRESHOLD)
        while high - low > 1:
            middle = (low + high) // 2
            fits = self._bytes_for(brief, middle) <= budget
            low, high = (low, middle) if fits else (middle, high)
        return high

    def taken_bits(self, scope: Scope) -> int:
        """Return the size of the counter of everything."""
        return _total_bits(scope)

    def smallest_budget(self, scope: Scope) -> int:
        """Return the bytes of a message with room for one key in a quarter of it."""
        sketch = -(-self.sketch_bits(scope) // 8)
        table = super().smallest_budget(scope) - sketch
        return 4 * table + -(-_total_bits(scope) // 8) + sketch

    # The server.

    def history(self, plan: Plan) -> Evidence:
        """Keep the evidence."""
        return Evidence(plan, self.sampling)

    def open(self, plan: Plan, history: Evidence) -> RoundTask:
        """Give slots to what is known, and the rest of the bytes to what is not."""
        known, number, total_bits = history, history.next_round, _total_bits(plan)
        mean, last = known.mean_mass, known.last
        if not mean or last is None:  # nothing is known: all keys, sampled as the plan expects
            t = self.sampling_threshold
            return RoundTask(plan.plan_id, number, t, self._table(plan, t, total_bits), ())
        total = known.mass + mean * (plan.rounds - len(history.rounds))
        room = 8 * plan.budget - self.sketch_bits(plan) - total_bits
        classes = SlotRule().choose(known, total, room, self.slots_from, self.most_slots)
        taken = total_bits + sum(each.bits * len(each.items) for each in classes)
        at_threshold = plan.cutoff * mean / total
        keys, occurrences = unknown(plan, known, last, classes, at_threshold)
        t = 1.0
        for _ in range(3):  # the counts' width depends on t, and the capacity on that
            capacity = self._table(plan, t, taken).capacity
            part, t = DiscoveryRule().choose(capacity, keys, occurrences, at_threshold)
            t = on_grid(min(t, self.largest_t(plan)))
        width = min(max(math.ceil(part * WHOLE), self.smallest_slice), WHOLE)
        slice_ = Slice(known.swept % WHOLE, width) if width < WHOLE else None
        return RoundTask(plan.plan_id, number, t, self._table(plan, t, taken), classes, slice_)

    def _table(self, plan: Plan, t: float, taken: int) -> TableShape:
        return self.fitting_table(plan, plan.budget, t, taken)

    def histogram(
        self, history: Evidence, failed: FailedRounds, candidates: Iterable[Any]
    ) -> list[Estimate]:
        """Return all that was seen; beside a sketch, heavy items by the better of the two."""
        if not self.sketch_rows:
            return super().histogram(history, failed, candidates)
        known = self.heavy_hitters(history, failed, candidates)
        items = [line.item for line in known]
        other = {line.item: line for line in self.sketched(history.plan, history.rounds, items)}
        return largest_first(
            other[line.item]
            if line.suspect
            else min(line, other[line.item], key=lambda each: each.stderr)
            for line in known
        )

    # The client, and the server.

    def parts(self, plan: Plan, task: RoundTask) -> Parts:
        """Put slots behind table and sketch."""
        slots = SlotSketch(plan.keys, plan.items_per_round, task.slots or ())
        return replace(super().parts(plan, task), slots=slots)

    def check(self, plan: Plan, task: RoundTask) -> None:
        """Raise for names and slices beyond the plan's."""
        refuse(task.table is None or task.slots is None, "The task lacks a table or slots.")
        refuse(
            task.named > self.most_slots,
            f"The task names {task.named:,} items; the plan allows {self.most_slots:,}.",
        )
        refuse(
            task.slice and task.slice.width < self.smallest_slice,
            f"The slice has {task.slice.width if task.slice else 0:,} of 2**32 keys; the plan "
            f"allows no less than {self.smallest_slice:,}.",
        )

    # What it tells people.

    def notes(self, plan: Plan) -> dict[str, str]:
        """Say what slots and slices are for."""
        return {
            **super().notes(plan),
            "slots": "up to three quarters of the bytes, for items that have been seen "
            f"{self.slots_from:,} times; at most {self.most_slots:,} items are named",
            "slices": "the rest of the bytes: new keys, a part of all keys in each round; t above "
            "is the first round's",
            **self.sketch_notes(),
        }

    def accepted(self, plan: Plan) -> dict[str, str]:
        """Say what is named to clients."""
        names = f"items seen {self.slots_from:,} times, at most {self.most_slots:,}"
        return {"sampling": "slots, t is the server's choice", "named to clients": names}

    @property
    def also_seen(self) -> str:
        """It talks to users."""
        return ", and named to users what it had found before"


def _total_bits(scope: Scope) -> int:
    """Return the size of the counter of everything."""
    return scope.items_per_round.bit_length()
