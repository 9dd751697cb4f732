"""Run a planned campaign over a population, durably, and show what came out."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from linsketch import campaign
from linsketch.cli.common import print_json, progress, seed_bytes
from linsketch.cli.secure import Secure
from linsketch.cli.show import show
from linsketch.errors import DataError, PlanningError
from linsketch.plan import MOST_ROUNDS, Plan
from linsketch.population.base import People, Rows
from linsketch.report.folder import TRANSCRIPT, write_outcome
from linsketch.report.journal import Journal
from linsketch.report.outcome import outcome, shown, truth_of
from linsketch.securesum.local import LocalSum
from linsketch.server import FailedRounds
from linsketch.transcript import Transcript

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


def conduct(
    plan: Plan,
    population: People,
    *,
    out: Path | None,
    failed: FailedRounds,
    truth: Callable[[], dict[Any, int]] | None,
    as_json: bool,
    facts: dict[str, Any] | None = None,
    secure: Secure = CLEAR,
    log_json: Path | None = None,
) -> None:
    """Run what is left of a campaign over bounded users; write what came out into a folder."""
    folder = out or Path("linsketch-runs") / plan.plan_id[:12]
    transcript = _open(folder, plan, population, {**(facts or {}), "secure_sum": secure.fact})
    with transcript:
        closed = transcript.closed
        if closed:
            sys.stderr.write(f"Going on after round {closed} of {plan.rounds}.\n")
        secure_sum = secure.start(plan, population.seed)
        cohorts = population.cohorts(one_by_one=secure.protocol != "clear")
        if secure.protocol != "clear" and closed < plan.rounds:
            left = int(population.users_in_round[closed:].sum())
            seconds = secure.expected_seconds(plan, cohorts[closed:], left)
            sys.stderr.write(
                f"{secure.protocol}: {left:,} users, one by one; about {_duration(seconds)}.\n"
            )
        journal = Journal(log_json)
        try:
            with progress(plan.rounds, closed) as say:
                server = campaign.run(
                    plan,
                    cohorts,
                    secure_sum,
                    transcript=transcript,
                    watch=lambda progress: say(journal.line(progress)),
                )
        except KeyboardInterrupt:
            sys.stderr.write(
                f"\nStopped. {transcript.closed} of {plan.rounds} rounds are closed and kept in "
                f"{transcript.path}. To go on, run the same command again.\n"
            )
            raise typer.Exit(130) from None
        if isinstance(secure_sum, LocalSum) and secure_sum.up_bytes:
            weights = {
                "vector_bytes": secure_sum.vector_bytes,
                "up_bytes": secure_sum.up_bytes,
                "down_bytes": secure_sum.down_bytes,
            }
            transcript.keep_fact("secure_sum_bytes", weights)
        if truth and not transcript.fact("truth"):
            cut = plan.cut if plan.error is None else 0
            transcript.keep_fact("truth", truth_of(truth(), population.item_totals(), cut))
        result = outcome(transcript, failed, server, check=truth is not None)
    write_outcome(folder, result)
    if as_json:
        print_json(result)
    else:
        show(result, folder)


def _open(folder: Path, plan: Plan, population: People, facts: dict[str, Any]) -> Transcript:
    """Return the folder's transcript of this plan and this data, a new one if there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / TRANSCRIPT
    if not path.exists():
        for name in ("report.html", "result.json"):
            if (folder / name).exists():
                raise DataError(f"{folder} holds a {name} of something else. Take another folder.")
        facts = {"data": population.fingerprint, **facts}
        if plan.method == "count-median":  # it lists nothing by itself
            facts["candidates"] = [shown(item) for item in population.item_totals()]
        return Transcript.create(path, plan, facts)
    transcript = Transcript(path)
    if transcript.plan != plan:
        raise DataError(
            f"{path} belongs to another plan ({transcript.plan.plan_id[:12]}, not "
            f"{plan.plan_id[:12]}). Take another folder with --out."
        )
    if transcript.fact("data") != population.fingerprint:
        raise DataError(f"{path} was made from other data. Take another folder with --out.")
    if (transcript.fact("secure_sum") or CLEAR.fact) != facts["secure_sum"]:
        raise DataError(f"{path} was made with another secure sum. Take another folder with --out.")
    return transcript


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds > 120 else f"{max(seconds, 1):.0f} seconds"
