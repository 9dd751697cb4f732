"""Tables that fit: capacity to bytes, and bytes to capacity."""

from functools import cache
from typing import Any

from linsketch.errors import PlanningError
from linsketch.hashing import Seeds
from linsketch.keys import KeySpace
from linsketch.plan import Plan
from linsketch.sketch.iblt import IBLT, Layout
from linsketch.sketch.sizing import Size, smallest_size
from linsketch.task import Table, sketch_bits


def cell_bits(keys: KeySpace[Any], max_count: int, layout: Layout) -> int:
    """Return the size of one cell on the wire."""
    cell = IBLT(keys, Size(3, 3, 1), max_count, Seeds(b"any"), layout)
    return cell.ring.wire_bits // 3


def useful_capacity(plan: Plan) -> int:
    """Return how many different keys a round can have at most."""
    return min(plan.items_per_round, plan.keys.most)


def table_bytes(plan: Plan, capacity: int, t: float) -> int:
    """Return what all repetitions of a table for `capacity` keys weigh."""
    size = smallest_size(capacity, plan.table_failure_probability)
    bits = size.cells * cell_bits(plan.keys, plan.largest_total(t), plan.layout)
    return -(-plan.repetitions * bits // 8)


def fitting_table(plan: Plan, t: float, taken: int = 0) -> Table:
    """Return the table of the largest capacity that the plan's budget has room for.

    `taken` bits of it are spent on something else.
    """
    max_count = plan.largest_total(t)
    room = 8 * plan.budget - sketch_bits(plan) - taken
    bits = cell_bits(plan.keys, max_count, plan.layout)
    cells = room // plan.repetitions // bits
    most = min(useful_capacity(plan), 10**9)
    capacity = _largest_capacity(cells, plan.table_failure_probability, most)
    if not capacity:
        raise too_small(plan)
    size = smallest_size(capacity, plan.table_failure_probability)
    return Table(size, max_count, capacity)


def smallest_budget(plan: Plan) -> int:
    """Return the bytes of a message whose tables have room for one key, whatever t will be.

    With slots that is a quarter of the message.
    """
    ts = {plan.sampling_threshold}
    if plan.method in ("adaptive", "slots", "fixed"):
        ts |= {1.0, plan.largest_sampling_threshold}
    smallest = max(table_bytes(plan, 1, t) for t in ts)
    if plan.method == "slots":
        smallest = 4 * smallest + -(-plan.items_per_round.bit_length() // 8)
    return smallest + -(-sketch_bits(plan) // 8)


def too_small(plan: Plan) -> PlanningError:
    """Return the error for a budget that no table fits into."""
    return PlanningError(
        f"A budget of {plan.budget:,} bytes is too small for any table: with these keys, users and "
        f"repetitions the smallest takes {smallest_budget(plan):,} bytes."
    )


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
