"""`linsketch plan`: what a campaign would cost and promise."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from linsketch.cli.common import (
    AsJson,
    Budget,
    ChosenLayout,
    ChosenMethod,
    ChosenSampling,
    FailureProbability,
    Rounds,
    Seed,
    SlotsFrom,
    Threshold,
    given,
    print_json,
    seed_bytes,
)

if TYPE_CHECKING:
    from linsketch.methods import Forecast


def plan(
    rounds: Rounds,
    users_per_round: Annotated[int, typer.Option(help="At most so many users in a round.")],
    items_per_user: Annotated[int, typer.Option(help="At most so many items of a user.")] = 1,
    threshold: Threshold = None,
    budget: Budget = None,
    error: Annotated[
        int | None,
        typer.Option(help="Plan a histogram with this error instead."),
    ] = None,
    mean_items_per_user: Annotated[
        float | None, typer.Option(help="What users have on average, if known.")
    ] = None,
    keys: Annotated[str, typer.Option(help="utf8:20, bytes:20, text:3 or int:32.")] = "utf8:20",
    method: ChosenMethod = None,
    sampling: ChosenSampling = None,
    layout: ChosenLayout = None,
    failure_probability: FailureProbability = 0.05,
    slots_from: SlotsFrom = None,
    smallest_cohort: Annotated[
        int, typer.Option(help="Rounds of fewer users than this are not read.")
    ] = 2,
    seed: Seed = "1",
    as_json: AsJson = False,
) -> None:
    """Plan a campaign from a threshold, a budget or an error: table, bytes, expected errors."""
    from linsketch.errors import PlanningError
    from linsketch.keys import parse_keys
    from linsketch.planner import plan_campaign, plan_histogram

    numbers: dict[str, Any] = {
        "rounds": rounds,
        "users_per_round": users_per_round,
        "items_per_user": items_per_user,
        "keys": parse_keys(keys),
        "seed": seed_bytes(seed),
        "failure_probability": failure_probability,
        "smallest_cohort": smallest_cohort,
        "mean_items_per_user": mean_items_per_user,
        **given(method=method, sampling=sampling, layout=layout, slots_from=slots_from),
    }
    if error is None:
        forecast = plan_campaign(
            **numbers,
            threshold=threshold,
            budget=budget,
        )
    elif threshold is None and budget is None:
        forecast = plan_histogram(**numbers, error=error)
    else:
        raise PlanningError("Give an error (histogram), or a threshold or budget (heavy hitters).")
    if as_json:
        print_json(forecast.to_json())
    else:
        _show(forecast, mean_items_per_user)


def _show(forecast: "Forecast", mean: float | None) -> None:
    from rich.console import Console
    from rich.table import Table

    plan = forecast.plan
    goal = "threshold" if plan.error is None else "error"
    times = forecast.words_per_user_round / forecast.lower_bound_words
    lines = {
        "method": plan.method.name,
        goal: f"{plan.cutoff:,}",
        "bytes a user and round": f"{forecast.bytes_per_user_round:,}",
        "16-bit words": f"{forecast.words_per_user_round:,}",
        "the paper's lower bound, words": f"{forecast.lower_bound_words:,.0f} (without constants)",
        "times the lower bound": f"{times:,.0f}",
    }
    if forecast.stderr is not None:
        lines[f"standard error at the {goal}"] = f"{forecast.stderr:,.1f}"
    if plan.method.uses_mean and mean is None and plan.items_per_user > 1:
        lines["items a user on average"] = "unknown, so the most (--mean-items-per-user)"
    lines |= forecast.notes
    table = Table(show_header=False, title=f"Plan {plan.plan_id[:12]}")
    for name, value in lines.items():
        table.add_row(name, value)
    Console().print(table)
