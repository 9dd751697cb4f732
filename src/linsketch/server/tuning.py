"""Algorithm 4: the sampling threshold of the next round."""

from collections.abc import Callable, Sequence

from linsketch.plan import Plan, on_grid
from linsketch.planner.tables import fitting_table
from linsketch.server.recover import Round
from linsketch.server.slots import next_slots_task
from linsketch.task import RoundTask

Update = Callable[[float, int, float], float]
"""(t, capacity in keys, keys of the last round) to the next t."""


def halfway(t: float, capacity: int, keys: float) -> float:
    """Go half of the way to the t that would have filled the table (section 7).

    The paper divides by the budget in words; the capacity in keys is what it must be.
    """
    return 0.5 * t + 0.5 * t * keys / capacity


def next_task(plan: Plan, rounds: Sequence[Round], update: Update = halfway) -> RoundTask:
    """Run by the server: open the next round. A pure function of the plan and closed rounds."""
    if plan.method == "slots":
        return next_slots_task(plan, rounds)
    t = plan.sampling_threshold
    if plan.method == "adaptive" and rounds:
        last = rounds[-1]
        t = last.task.sampling_threshold
        if last.task.table and last.peels:
            t = update(t, last.task.table.capacity, last.estimated_keys)
        t = on_grid(min(max(t, 1.0), plan.largest_sampling_threshold))
    table = fitting_table(plan, t) if plan.repetitions else None
    return RoundTask(plan.plan_id, len(rounds) + 1, t, table)
