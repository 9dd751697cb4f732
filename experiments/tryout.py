"""Methods side by side on a file of who-has-what: `python -m experiments try FILE ...`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import typer

from experiments import methods as methods  # so that its methods can be tried, too
from linsketch import Plan, Rehearsal, campaign, plan_campaign
from linsketch.cli.common import Count, Item, User
from linsketch.cli.rehearse import split
from linsketch.errors import PlanningError
from linsketch.plan import METHODS, method_named
from linsketch.population.base import People
from linsketch.population.files import read_data
from linsketch.results.outcome import outcome_of
from linsketch.results.score import HeavyTruth, truth_of

OWN = [name for name, kind in METHODS.items() if kind.__module__.startswith("linsketch.")]
RANK = 50  # of the item whose count is the threshold, where none is given


@dataclass(frozen=True)
class Tried:
    """What came out of one campaign."""

    budget: int
    f1: float
    up: int  # bytes, the most that a user sent in a round
    down: int
    decoded: int  # rounds


def try_methods(
    file: Annotated[
        Path, typer.Argument(help="Parquet, CSV, TSV or JSON lines; .gz too.", metavar="FILE")
    ],
    user: User,
    item: Item,
    count: Count = None,
    method: Annotated[
        list[str] | None, typer.Option(help=f"Some of {', '.join(METHODS)}; else the package's.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Rounds; each user is in one of them.")] = 10,
    threshold: Annotated[
        int | None, typer.Option(help=f"Without it, the count of the {RANK}th most popular item.")
    ] = None,
    budget: Annotated[
        list[int] | None,
        typer.Option(help="Bytes a user and round; without it, what each method plans by itself."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Campaigns a line; F1 is their mean.")] = 3,
) -> None:
    """Try methods on a file, with one budget or several, and score them against the truth.

    count-median, which lists nothing by itself, is told all items of the file.
    """
    names = [method_named(name).name for name in method or OWN]
    budgets: list[int | None] = [*budget] if budget else [None]
    data = read_data(file, user=user, item=item, count=count)
    truth = data.item_totals()
    counts = sorted(truth.values(), reverse=True)
    if threshold is None:
        threshold = counts[min(RANK, len(counts)) - 1]
    if threshold > counts[0]:
        raise PlanningError(f"No item reaches {threshold:,}: the most popular has {counts[0]:,}.")
    crowds = [split(data, rounds, None, str(seed))[0] for seed in range(1, seeds + 1)]
    lines = [
        (name, each, planned(crowds, name, threshold, each)) for each in budgets for name in names
    ]
    reasons = [plans for *_, plans in lines if isinstance(plans, PlanningError)]
    if len(reasons) == len(lines):
        raise reasons[0]
    typer.echo(
        f"{file.name}: {len(data.users):,} users, {len(truth):,} items, threshold {threshold:,}; "
        f"F1 and rounds decoded: means over {seeds} seed{'s' * (seeds > 1)}"
    )
    typer.echo(_line("method", "budget", "F1", "bytes up", "bytes down", "rounds decoded"))
    for name, each, plans in lines:
        if isinstance(plans, PlanningError):
            typer.echo(_line(name, "its own" if each is None else f"{each:,}", "–") + f"  {plans}")
        else:
            found = [tried(*pair, truth) for pair in zip(plans, crowds, strict=True)]
            typer.echo(_summary(name, rounds, found))


def planned(
    crowds: Sequence[People], method: str, threshold: int, budget: int | None
) -> list[Plan] | PlanningError:
    """Plan a campaign for each crowd, or say why there is none."""
    try:
        return [plan_for(people, method, threshold, budget) for people in crowds]
    except PlanningError as reason:
        return reason


def plan_for(people: People, method: str, threshold: int, budget: int | None) -> Plan:
    """Plan a campaign for the users of a file."""
    return plan_campaign(
        rounds=len(people.users_in_round),
        users_per_round=int(people.users_in_round.max()),
        items_per_user=people.busiest,
        mean_items_per_user=people.occurrences / int(people.users_in_round.sum()),
        keys=people.keys,
        seed=people.seed,
        threshold=threshold,
        budget=budget,
        method=method,
    ).plan


def tried(plan: Plan, people: People, truth: Mapping[Any, int]) -> Tried:
    """Rehearse a campaign and score it."""
    server = campaign.run(plan, Rehearsal(people.cohorts()))
    outcome = outcome_of(
        server,
        candidates=() if plan.method.lists else truth,
        truth=truth_of(plan.keys, truth, truth, plan.cutoff),
    )
    score = outcome.truth.after.f1 if isinstance(outcome.truth, HeavyTruth) else 0.0
    return Tried(
        budget=plan.budget,
        f1=score,
        up=outcome.bytes_per_user_round,
        down=outcome.down_bytes_per_user_round,
        decoded=plan.rounds - len(outcome.failed_rounds),
    )


def _summary(name: str, rounds: int, found: Sequence[Tried]) -> str:
    """Write a line: means over seeds, and the most bytes."""
    return _line(
        name,
        f"{max(each.budget for each in found):,}",
        f"{mean(each.f1 for each in found):.3f}",
        f"{max(each.up for each in found):,}",
        f"{max(each.down for each in found):,}",
        f"{mean(each.decoded for each in found):.1f} of {rounds}",
    )


def _line(name: str, *others: str) -> str:
    """Write columns under each other."""
    widths = (12, 8, 12, 12, 16)
    columns = (text.rjust(width) for text, width in zip(others, widths, strict=False))
    return name.ljust(20) + "".join(columns)
