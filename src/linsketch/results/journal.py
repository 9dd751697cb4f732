"""A campaign as it goes: a line a round for people, a JSON object a round for machines."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from linsketch.campaign import Progress
from linsketch.results.outcome import RoundFacts


@dataclass
class Journal:
    """Tells of closed rounds; with `log`, also appends JSON lines to that file.

    A file that cannot be written raises at once, before anybody is asked anything.
    """

    log: Path | None = None

    def __post_init__(self) -> None:
        if self.log:
            self.log.open("a").close()

    def line(self, progress: Progress) -> str:
        """Write the round down, and return it in words."""
        if self.log:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(_facts(progress)) + "\n")
        return _line(progress)


def _facts(progress: Progress) -> dict[str, Any]:
    closed = progress.closed
    return {
        **asdict(RoundFacts.of(closed)),
        "rounds": progress.server.plan.rounds,
        "asked": progress.asked,
        "dropouts": progress.asked - closed.users,
        "failure": closed.failure,
        "new_heavy_hitters": progress.new_heavy_hitters,
        "seconds": {stage: round(taken, 3) for stage, taken in progress.seconds.items()},
    }


def _line(progress: Progress) -> str:
    closed, task = progress.closed, progress.closed.task
    parts = [f"{progress.asked:,} asked"]
    if closed.failure:
        parts.append(f"aborted: {closed.failure.rstrip('.')}")
    else:
        parts.append(f"{closed.users:,} answered")
    if gone := progress.asked - closed.users:
        parts.append(f"{gone:,} lost")
    if task.table:
        parts.append(f"t = {task.sampling_threshold:.2f}")
    if task.table and not closed.failure:
        load = f"{closed.estimated_keys:,.0f} of {task.table.capacity:,} keys"
        parts += ["≥ " * closed.at_least + load, closed.status]
    if (new := progress.new_heavy_hitters) is not None:
        parts.append(f"{new:,} new heavy hitter{'s' * (new != 1)}")
    stages = ", ".join(f"{stage} {taken:.1f}" for stage, taken in progress.seconds.items())
    return f"round {task.round}/{progress.server.plan.rounds}: {', '.join(parts)}; {stages} s"
