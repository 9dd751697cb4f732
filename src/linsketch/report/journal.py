"""A campaign as it goes: a line a round for people, a JSON object a round for machines."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linsketch.campaign import Progress
from linsketch.plan import Plan
from linsketch.report.outcome import round_facts
from linsketch.server import Round, Server


@dataclass
class Journal:
    """Tells of closed rounds; with `log`, also appends JSON lines to that file.

    A file that cannot be written raises at once, before anybody is asked anything.
    """

    log: Path | None = None
    _known: set[Any] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.log:
            self.log.open("a").close()

    def line(self, progress: Progress) -> str:
        """Write the round down, and return it in words."""
        new = self._new(progress)
        if self.log:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(_facts(progress, new)) + "\n")
        return _words(progress, new)

    def _new(self, progress: Progress) -> int | None:
        """Count the items that are heavy now and were not before; a sketch lists none."""
        plan = progress.server.plan
        if not plan.repetitions:
            return None
        number, rounds = progress.closed.task.round, progress.server.rounds
        if self._known is None:  # also of a campaign that goes on
            self._known = _heavy(plan, rounds[: number - 1])
        found = _heavy(plan, rounds[:number])
        new = len(found - self._known)
        self._known |= found
        return new


def _heavy(plan: Plan, rounds: list[Round]) -> set[Any]:
    server = Server(plan)
    server.rounds = rounds
    return {line.item for line in server.heavy_hitters()}


def _facts(progress: Progress, new: int | None) -> dict[str, Any]:
    closed = progress.closed
    return {
        **round_facts(closed),
        "rounds": progress.server.plan.rounds,
        "asked": progress.asked,
        "dropouts": progress.asked - closed.users,
        "failure": closed.failure,
        "new_heavy_hitters": new,
        "seconds": {stage: round(taken, 3) for stage, taken in progress.seconds.items()},
    }


def _words(progress: Progress, new: int | None) -> str:
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
    if new is not None:
        parts.append(f"{new:,} new heavy hitter{'s' * (new != 1)}")
    stages = ", ".join(f"{stage} {taken:.1f}" for stage, taken in progress.seconds.items())
    return f"round {task.round}/{progress.server.plan.rounds}: {', '.join(parts)}; {stages} s"
