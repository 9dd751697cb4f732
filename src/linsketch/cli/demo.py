"""`linsketch demo`: thirty rounds of ten thousand people, one English word each."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from linsketch.cli.common import AsJson

THRESHOLD = 100


def demo(
    rounds: Annotated[int, typer.Option(help="Rounds.")] = 30,
    users: Annotated[int, typer.Option(help="People in a round, on average.")] = 10_000,
    out: Annotated[Path, typer.Option(help="Folder for transcript and page.")] = Path(
        "linsketch-demo"
    ),
    as_json: AsJson = False,
) -> None:
    """Find the popular words of people who type one English word each; write a page about it."""
    from linsketch.cli.rehearse import rehearse
    from linsketch.errors import PlanningError
    from linsketch.planner import plan_campaign
    from linsketch.population.typists import typists
    from linsketch.records.transcript import Transcript
    from linsketch.results.folder import TRANSCRIPT

    if not (1 <= rounds <= 1000 and 10 <= users <= 1_000_000):
        raise PlanningError("Take 1 to 1,000 rounds of 10 to 1,000,000 people.")
    people = typists(rounds, users, b"demo")
    forecast = plan_campaign(
        rounds=rounds,
        users_per_round=int(people.users_in_round.max()),
        items_per_user=1,
        keys=people.keys,
        seed=people.seed,
        threshold=THRESHOLD,
    )
    before = out / TRANSCRIPT
    if before.exists():
        with Transcript(before) as record:
            finished = record.fact("demo") and record.closed == record.plan.rounds
        if finished:  # the demo's own, of last time
            for name in (TRANSCRIPT, "result.json", "report.html"):
                (out / name).unlink(missing_ok=True)
    rehearse(
        forecast.plan,
        people,
        out=out,
        failed="scale",
        truth=people.item_totals,
        as_json=as_json,
        facts={"demo": True, "source": "English words, drawn by their frequencies"},
    )
    if not as_json:
        sys.stdout.write(f"Open {out / 'report.html'} in a browser.\n")
