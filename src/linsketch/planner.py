"""Plans, chosen from a threshold, a budget or an error, with what to expect of them."""

from typing import Any

from linsketch.errors import PlanningError
from linsketch.keys import KeySpace
from linsketch.methods import Forecast, Method
from linsketch.plan import Brief, method_named


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
    method: str | type[Method[Any]] | Method[Any] = "slots",
    failure_probability: float = 0.05,
    smallest_cohort: int = 2,
    **options: Any,
) -> Forecast:
    """Plan a search for heavy hitters from a threshold, from a budget in bytes, or from both.

    `users_per_round` and `items_per_user` are upper bounds; `mean_items_per_user` is what users
    have on average, if known, and sets the first round's sampling. `method` is a name or a class
    with `options`, or an object like `Adaptive(layout="paper")`.

    >>> from linsketch import Utf8Keys, plan_campaign
    >>> forecast = plan_campaign(rounds=30, users_per_round=10_000, items_per_user=1,
    ...                          keys=Utf8Keys(8), seed=b"doc", threshold=50, method="adaptive")
    >>> forecast.capacity, forecast.bytes_per_user_round, round(forecast.stderr)
    (2425, 34944, 13)
    """
    brief = Brief(
        rounds=rounds,
        users_per_round=users_per_round,
        items_per_user=items_per_user,
        keys=keys,
        seed=seed,
        failure_probability=failure_probability,
        smallest_cohort=smallest_cohort,
        threshold=threshold,
        budget=budget,
        mean_items_per_user=mean_items_per_user,
    )
    return _forecast(method, options, brief)


def plan_histogram(
    *,
    rounds: int,
    users_per_round: int,
    items_per_user: int,
    keys: KeySpace[Any],
    seed: bytes,
    error: int,
    mean_items_per_user: float | None = None,
    method: str | type[Method[Any]] | Method[Any] = "proven",
    failure_probability: float = 0.05,
    smallest_cohort: int = 2,
    **options: Any,
) -> Forecast:
    """Plan Algorithm 3: every count is within `error` with probability 1 - failure_probability.

    Its list of heavy hitters and its sketch share the failure probability. Where tables that
    hold everything weigh less, or the error is at most the root of the rounds, they are taken
    instead, and the histogram is exact. With slots, items are found and counted by the method of
    that name, beside the same sketch: known items are exact, and that all are found is not proven.
    """
    brief = Brief(
        rounds=rounds,
        users_per_round=users_per_round,
        items_per_user=items_per_user,
        keys=keys,
        seed=seed,
        failure_probability=failure_probability,
        smallest_cohort=smallest_cohort,
        error=error,
        mean_items_per_user=mean_items_per_user,
    )
    return _forecast(method, options, brief)


def _forecast(
    method: str | type[Method[Any]] | Method[Any], options: dict[str, Any], brief: Brief
) -> Forecast:
    if isinstance(method, str):
        method = method_named(method)
    if isinstance(method, type):
        method = method.chosen(**options)
    elif options:
        raise PlanningError("Options go with a method's name, or into its object: Slots(...).")
    plan = method.plan(brief)
    return plan.method.forecast(plan)
