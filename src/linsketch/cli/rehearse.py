"""Rehearse a planned campaign over a population, durably, and show what came out."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

from linsketch.cli.common import print_json, progress, seed_bytes
from linsketch.cli.secure import Secure
from linsketch.cli.show import show
from linsketch.errors import DataError, PlanningError
from linsketch.history import FailedRounds
from linsketch.plan import MOST_ROUNDS, Plan
from linsketch.population import Rehearsal
from linsketch.population.base import People, Rows
from linsketch.records.transcript import Transcript
from linsketch.results.conduct import conduct
from linsketch.results.folder import TRANSCRIPT
from linsketch.results.score import truth_of
from linsketch.securesum.local import LocalSum

CLEAR = Secure()


def split(rows: Rows, rounds: int, items_per_user: int | None, seed: str) -> tuple[People, int]:
    """Split the users into rounds, bounded; return them and the bound.

    Refused: a split that would show a single person's items.
    """
    if not 1 <= rounds <= MOST_ROUNDS:
        raise PlanningError(f"Take 1 to {MOST_ROUNDS:,} rounds, not {rounds:,}.")
    if items_per_user is not None and items_per_user < 1:
        raise PlanningError(f"Take 1 item a user or more, not {items_per_user}.")
    if not seed:
        raise PlanningError("The seed must not be empty.")
    people = rows.population(rounds, seed_bytes(seed))
    users = int(people.users_in_round.sum())
    if users < 2:
        raise DataError("There is one user only: the sum over one user is that user's items.")
    smallest = int(people.users_in_round.min())
    if smallest < 2:
        raise PlanningError(
            f"With {rounds:,} rounds some round has {smallest} of the {users:,} users, and the sum "
            f"over one user is that user's items. Take fewer rounds: {max(1, users // 20):,}, say."
        )
    most = items_per_user or people.busiest
    return people.bounded(most), most


def rehearse(
    plan: Plan,
    population: People,
    *,
    out: Path | None,
    failed: FailedRounds,
    truth: Callable[[], dict[Any, int]] | None,
    as_json: bool,
    facts: Mapping[str, Any],
    secure: Secure = CLEAR,
    log_json: Path | None = None,
) -> None:
    """Run what is left of a campaign over bounded users; show what came out."""
    folder = out or Path("linsketch-runs") / plan.plan_id[:12]
    secure_sum = secure.start(plan, population.seed)
    cutoff = plan.cutoff if plan.error is None else 0

    def source(transcript: Transcript) -> Rehearsal:
        cohorts = population.cohorts(one_by_one=secure.summation != "clear")
        left = int(population.users_in_round[transcript.closed :].sum())
        if secure.summation != "clear" and left:
            seconds = secure.expected_seconds(plan, cohorts[transcript.closed :], left)
            sys.stderr.write(
                f"{secure.summation}: {left:,} users, one by one; about {_duration(seconds)}.\n"
            )
        return Rehearsal(cohorts, secure_sum)

    def checked() -> Any:
        assert truth  # noqa: S101  # else nobody asks
        return truth_of(plan.keys, truth(), population.item_totals(), cutoff)

    def kept() -> dict[str, Any]:
        if plan.method.lists:
            return dict(facts)
        return {**facts, "candidates": list(map(plan.keys.to_json, population.item_totals()))}

    try:
        with progress(plan.rounds) as say:
            outcome = conduct(
                folder,
                plan,
                source,
                bound_to={"data": population.fingerprint, "secure_sum": secure.fact},
                facts=kept,
                log=log_json,
                say=say,
                failed=failed,
                truth=checked if truth else None,
                weights=secure_sum.weights if isinstance(secure_sum, LocalSum) else dict,
            )
    except KeyboardInterrupt:
        sys.stderr.write(f"\nStopped. {_kept_in(folder / TRANSCRIPT)}\n")
        raise typer.Exit(130) from None
    if as_json:
        print_json(outcome.to_json())
    else:
        show(outcome, folder)


def _kept_in(path: Path) -> str:
    """Say what an interrupted campaign has kept."""
    if not path.exists():
        return "Nothing was kept."
    with Transcript(path) as transcript:
        closed, rounds = transcript.closed, transcript.plan.rounds
    return f"{closed} of {rounds} rounds are kept in {path}. To go on, run the same command again."


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds > 120 else f"{max(seconds, 1):.0f} seconds"
