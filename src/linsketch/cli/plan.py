"""`linsketch plan`: what a campaign would cost and promise."""

from typing import Annotated, Any

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
    print_json,
    seed_bytes,
)


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
    method: ChosenMethod = "slots",
    sampling: ChosenSampling = None,
    layout: ChosenLayout = "compact",
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
        "layout": layout,
        "failure_probability": failure_probability,
        "smallest_cohort": smallest_cohort,
    }
    if error is None:
        forecast = plan_campaign(
            **numbers,
            threshold=threshold,
            budget=budget,
            mean_items_per_user=mean_items_per_user,
            method=method,
            sampling=sampling,
            slots_from=slots_from,
        )
    elif threshold is None and budget is None:
        forecast = plan_histogram(**numbers, error=error)
    else:
        raise PlanningError("Give an error (histogram), or a threshold or budget (heavy hitters).")
    if as_json:
        print_json(forecast.to_json())
    else:
        _show(forecast, mean_items_per_user)


def _show(forecast: Any, mean: float | None) -> None:
    from rich.console import Console
    from rich.table import Table

    plan = forecast.plan
    goal = "threshold" if plan.error is None else "error"
    times = forecast.words_per_user_round / forecast.lower_bound_words
    lines = {
        "method": plan.method + (" (Algorithm 3)" if plan.error and plan.sketch_rows else ""),
        goal: f"{plan.cut:,}",
        "bytes a user and round": f"{forecast.bytes_per_user_round:,}",
        "16-bit words": f"{forecast.words_per_user_round:,}",
        "the paper's lower bound, words": f"{forecast.lower_bound_words:,.0f} (without constants)",
        "times the lower bound": f"{times:,.0f}",
    }
    if plan.repetitions:
        lines |= {
            "table": f"{forecast.capacity:,} keys in {forecast.cells:,} cells, "
            f"{plan.repetitions} repetition{'s' * (plan.repetitions > 1)}",
            "a full table does not decode": f"{forecast.decode_failure_probability:.2g}",
            "sampling threshold t": f"{plan.sampling_threshold:,.2f} ({plan.sampling})",
        }
    if forecast.stderr is not None:
        lines[f"standard error at the {goal}"] = f"{forecast.stderr:,.1f}"
    if plan.method in ("adaptive", "slots", "fixed") and mean is None and plan.items_per_user > 1:
        lines["items a user on average"] = "unknown, so the most (--mean-items-per-user)"
    if plan.method == "slots":
        lines |= {
            "slots": "up to three quarters of the bytes, for items that have been seen "
            f"{plan.slots_from:,} times; at most {plan.most_slots:,} items are named",
            "slices": "the rest of the bytes: new keys, a part of all keys in each round; t above "
            "is the first round's",
        }
    if plan.sketch_rows:
        lines["sketch"] = f"{plan.sketch_rows} rows of {plan.sketch_width:,} counters"
    if forecast.printed:
        lines["the paper prints"] = (
            f"{forecast.printed.capacity:,} keys, {forecast.printed.repetitions} repetitions "
            f"({forecast.printed.repetitions_of_the_proof} in its proof), "
            f"{forecast.printed.words:,} words"
        )
    table = Table(show_header=False, title=f"Plan {plan.plan_id[:12]}")
    for name, value in lines.items():
        table.add_row(name, value)
    Console().print(table)
