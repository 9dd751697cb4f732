"""Plans, chosen from a threshold, a budget or an error, with what to expect of them."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from linsketch.errors import PlanningError
from linsketch.keys import KeySpace
from linsketch.plan import MAX_THRESHOLD, Method, Plan, Sampling, on_grid, sampling_variance
from linsketch.planner.proofs import (
    PrintedConstants,
    heavy_constants,
    printed_constants,
    sketch_shape,
)
from linsketch.planner.tables import (
    fitting_table,
    smallest_budget,
    table_bytes,
    too_small,
    useful_capacity,
)
from linsketch.sketch.iblt import Layout
from linsketch.task import RoundTask, message, sketch_bits

RELATIVE_ERROR = 0.25  # of an item at the threshold, where the planner is free to choose
COUNT_MEDIAN_ROWS = 7
LEAST_THRESHOLD = 2  # that is chosen by itself: a list from 1 on shows what single people have
_FREE = 10**12  # a budget that does not bind


@dataclass(frozen=True)
class Forecast:
    """A plan and what to expect of it.

    `stderr` is that of an item whose true count is the threshold, from sampling alone, at the
    first round's t, where no user has it more than once. `lower_bound_words` is the paper's
    Table 1, without its constants and logarithms.
    """

    plan: Plan
    capacity: int
    cells: int
    bytes_per_user_round: int
    words_per_user_round: int
    decode_failure_probability: float  # of a table that holds as many keys as it is sized for
    stderr: float | None  # None where it depends on the data: out of a sketch, and with slots
    lower_bound_words: float
    printed: PrintedConstants | None  # the paper's constants, beside proven ones

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {**asdict(self), "plan": self.plan.to_json(), "plan_id": self.plan.plan_id}


def plan_campaign(
    *,
    rounds: int,
    users_per_round: int,
    items_per_user: int,
    keys: KeySpace[Any],
    seed: bytes,
    threshold: int | None = None,
    budget: int | None = None,
    mean_items_per_user: float | None = None,
    method: Method = "adaptive",
    sampling: Sampling | None = None,
    layout: Layout = "compact",
    failure_probability: float = 0.05,
    smallest_cohort: int = 2,
    slots_from: int | None = None,
) -> Forecast:
    """Plan a search for heavy hitters from a threshold, from a budget in bytes, or from both.

    `users_per_round` and `items_per_user` are upper bounds; `mean_items_per_user` is what users
    have on average, if known, and sets the first round's sampling.

    >>> from linsketch import Utf8Keys, plan_campaign
    >>> forecast = plan_campaign(rounds=30, users_per_round=10_000, items_per_user=1,
    ...                          keys=Utf8Keys(8), seed=b"doc", threshold=50)
    >>> forecast.capacity, forecast.bytes_per_user_round, round(forecast.stderr)
    (2425, 34944, 13)
    """
    if threshold is None and (budget is None or method in ("unsampled", "count-median")):
        raise PlanningError(
            "Give a threshold, a budget or both; unsampled and count-median need a threshold."
        )
    mean = items_per_user if mean_items_per_user is None else mean_items_per_user
    if not 0 < mean <= items_per_user:
        raise PlanningError(
            f"The mean of items a user lies above 0 and is at most {items_per_user}, not {mean}."
        )
    plan = Plan(
        method=method,
        rounds=rounds,
        users_per_round=users_per_round,
        items_per_user=items_per_user,
        keys=keys,
        budget=_FREE if budget is None else budget,
        sampling_threshold=1.0,
        seed=seed,
        threshold=LEAST_THRESHOLD if threshold is None else threshold,
        failure_probability=failure_probability,
        layout=layout,
        sampling=sampling or ("binomial" if method == "slots" else "threshold"),
        smallest_cohort=smallest_cohort,
        slots_from=slots_from or (2 if items_per_user == 1 else 3),
    )
    if method == "proven":
        return forecast(_proven(plan, threshold, budget))
    if method == "unsampled":
        return forecast(_unsampled(plan))
    if method == "slots":
        plan = _for_slots(plan, threshold, users_per_round * mean)
    if method == "count-median":
        return forecast(_count_median(plan, users_per_round * mean))
    return forecast(_practical(plan, threshold, users_per_round * mean))


def _practical(plan: Plan, threshold: int | None, mass: float) -> Plan:
    """Section 7: as much table as the budget has room for, and t so that a round fills it."""
    plan = _with_budget(plan, mass)
    if plan.budget < smallest_budget(plan):
        raise too_small(plan)
    t = 1.0
    for _ in range(3):  # the counts' width depends on t, and the capacity on that
        wanted = max(1.0, mass / fitting_table(plan, t).capacity)
        t = on_grid(min(wanted, plan.largest_sampling_threshold))
    if threshold is None:
        least = max(LEAST_THRESHOLD, math.ceil((t - 1) / RELATIVE_ERROR**2))
        if plan.method == "slots":  # never worse than by sampling alone
            least = min(least, plan.cut)
        plan = replace(plan, threshold=min(least, plan.rounds * plan.items_per_round))
    if plan.method == "fixed":
        t = on_grid(max(1.0, min(t, plan.cut / 2)))
    return replace(plan, sampling_threshold=t)


def _for_slots(plan: Plan, threshold: int | None, mass: float) -> Plan:
    """Give a plan with slots a budget for its threshold, or a threshold for its budget."""
    if threshold is not None:
        budget = max(_slots_bytes(plan, threshold, mass), smallest_budget(plan))
        return plan if plan.budget != _FREE else replace(plan, budget=budget)
    low, high = LEAST_THRESHOLD - 1, max(math.ceil(plan.rounds * mass), LEAST_THRESHOLD)
    while high - low > 1:
        middle = (low + high) // 2
        fits = _slots_bytes(plan, middle, mass) <= plan.budget
        low, high = (low, middle) if fits else (middle, high)
    return replace(plan, threshold=high)


def _slots_bytes(plan: Plan, threshold: int, mass: float) -> int:
    """Return the bytes that a threshold asks for: a table for so many new keys a round, and slots.

    The table is of the order of the paper's lower bound, mass / threshold; the slots have room
    for a quarter of the items that can reach the threshold, with a byte each.
    """
    capacity = min(math.ceil(100 + mass / threshold), useful_capacity(plan))
    slots = math.ceil(plan.rounds * mass / threshold / 4)
    total = -(-plan.items_per_round.bit_length() // 8)
    return table_bytes(plan, capacity, 1.0) + slots + total


def _with_budget(plan: Plan, mass: float) -> Plan:
    """Give a plan without a budget one where an item at the threshold has the error above."""
    if plan.budget != _FREE:
        return plan
    wanted = 1 + RELATIVE_ERROR**2 * plan.cut
    t = on_grid(min(wanted, plan.largest_sampling_threshold))
    capacity = min(useful_capacity(plan), math.ceil(mass / t))
    return replace(plan, budget=max(table_bytes(plan, capacity, t), smallest_budget(plan)))


def _unsampled(plan: Plan) -> Plan:
    """Everything goes into tables that all decode but for the plan's failure probability."""
    plan = replace(plan, table_failure_probability=min(plan.failure_probability / plan.rounds, 0.5))
    if plan.budget == _FREE:
        plan = replace(plan, budget=table_bytes(plan, useful_capacity(plan), 1.0))
    return plan


def _count_median(plan: Plan, mass: float) -> Plan:
    """Spend on counters what the adaptive method would spend on a table."""
    plan = _with_budget(plan, mass)
    shape = replace(plan, repetitions=0, sketch_rows=COUNT_MEDIAN_ROWS, sketch_width=1)
    width = 8 * plan.budget // sketch_bits(shape)
    if not width:
        raise PlanningError(
            f"A budget of {plan.budget:,} bytes is too small for any sketch: the smallest takes "
            f"{-(-sketch_bits(shape) // 8):,} bytes."
        )
    return replace(shape, sketch_width=width)


def _proven(plan: Plan, threshold: int | None, budget: int | None) -> Plan:
    """Algorithm 2 for a threshold, or for the smallest that the budget has room for."""
    if threshold is None:
        low, high = LEAST_THRESHOLD - 1, plan.rounds * plan.items_per_round
        high = min(high, 2 * MAX_THRESHOLD)  # t is half of it
        if _proven_for(plan, LEAST_THRESHOLD).budget <= plan.budget:  # nothing is sampled there
            high = LEAST_THRESHOLD
        while high - low > 1:
            middle = (low + high) // 2
            fits = _proven_for(plan, middle).budget <= plan.budget
            low, high = (low, middle) if fits else (middle, high)
        threshold = high
    chosen = _proven_for(plan, threshold)
    if budget is not None and chosen.budget > budget:
        raise PlanningError(
            f"A budget of {budget:,} bytes is too small to prove a threshold of {threshold:,}: "
            f"that takes {chosen.budget:,} bytes."
        )
    return chosen


def _proven_for(plan: Plan, threshold: int) -> Plan:
    constants = heavy_constants(
        plan.items_per_round, plan.rounds, threshold, plan.failure_probability
    )
    plan = replace(
        plan,
        threshold=threshold,
        sampling_threshold=constants.sampling_threshold,
        repetitions=constants.repetitions,
        table_failure_probability=constants.table_failure_probability,
    )
    capacity = min(constants.capacity, useful_capacity(plan))
    return replace(plan, budget=table_bytes(plan, capacity, plan.sampling_threshold))


def plan_histogram(
    *,
    rounds: int,
    users_per_round: int,
    items_per_user: int,
    keys: KeySpace[Any],
    seed: bytes,
    error: int,
    layout: Layout = "compact",
    failure_probability: float = 0.05,
    smallest_cohort: int = 2,
    method: Literal["proven", "slots"] = "proven",
) -> Forecast:
    """Plan Algorithm 3: every count within `error`, but for the failure probability.

    Its list of heavy hitters and its sketch share the failure probability. Where tables that
    hold everything weigh less, or the error is at most the root of the rounds, they are taken
    instead, and the histogram is exact. With slots, items are found and counted by the method of
    that name, beside the same sketch: known items are exact, and that all are found is not proven.
    """
    common: dict[str, Any] = {
        "rounds": rounds,
        "users_per_round": users_per_round,
        "items_per_user": items_per_user,
        "keys": keys,
        "seed": seed,
        "budget": _FREE,
        "sampling_threshold": 1.0,
        "error": error,
        "failure_probability": failure_probability,
        "layout": layout,
        "smallest_cohort": smallest_cohort,
    }
    if method == "slots":
        return forecast(_slots_histogram(Plan(method="slots", sampling="binomial", **common)))
    plans, reasons = [], []
    for make in (_unsampled, _algorithm_3):
        try:
            plans.append(make(Plan(method="unsampled", **common)))
        except PlanningError as error_:
            reasons.append(error_)
    if not plans:
        raise reasons[0]
    return forecast(min(plans, key=lambda plan: plan.budget))


def _slots_histogram(plan: Plan) -> Plan:
    """Put slots beside the sketch of Algorithm 3."""
    items, error = plan.items_per_round, plan.cut
    rows, width = sketch_shape(items, plan.rounds, error, plan.failure_probability)
    plan = replace(plan, sketch_rows=rows, sketch_width=width)
    budget = _slots_bytes(plan, error, items) + -(-sketch_bits(plan) // 8)
    return _practical(replace(plan, budget=max(budget, smallest_budget(plan))), error, items)


def _algorithm_3(plan: Plan) -> Plan:
    """Split the failure probability between the list of heavy hitters and the sketch."""
    error, half = plan.cut, plan.failure_probability / 2
    if error <= math.sqrt(plan.rounds):
        raise PlanningError("For an error up to the root of the rounds everything goes in.")
    listing = _proven_for(
        replace(plan, method="proven", threshold=error, error=None, failure_probability=half), error
    )
    rows, width = sketch_shape(plan.items_per_round, plan.rounds, error, half)
    plan = replace(
        listing,
        threshold=None,
        error=error,
        failure_probability=plan.failure_probability,
        sketch_rows=rows,
        sketch_width=width,
    )
    return replace(plan, budget=listing.budget + -(-sketch_bits(plan) // 8))


def forecast(plan: Plan) -> Forecast:
    """Say what to expect of a plan."""
    t = plan.sampling_threshold
    taken = plan.items_per_round.bit_length() if plan.method == "slots" else 0
    table = fitting_table(plan, t, taken) if plan.repetitions else None
    ring = message(plan, RoundTask(plan.plan_id, 1, t, table)).ring
    items, cut = plan.items_per_round, plan.cut
    spread = math.sqrt(plan.rounds) if plan.error else 1.0
    printed = None
    if plan.method == "proven" and plan.rounds > 1:  # with one round the paper's constants vanish
        printed = printed_constants(items, plan.rounds, cut, plan.failure_probability)
    return Forecast(
        plan=plan,
        capacity=table.capacity if table else 0,
        cells=table.size.cells if table else plan.sketch_rows * plan.sketch_width,
        bytes_per_user_round=ring.wire_bytes,
        words_per_user_round=ring.wire_words,
        decode_failure_probability=plan.table_failure_probability if table else 0.0,
        stderr=None
        if plan.sketch_rows or plan.method == "slots"
        else math.sqrt(cut * sampling_variance(t, plan.sampling) / plan.repetitions),
        lower_bound_words=min(items * spread / cut, items),
        printed=printed,
    )
