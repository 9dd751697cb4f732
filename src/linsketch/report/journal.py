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
    """Tells of closed rounds; with `log`, also appends JSON lines to that file."""

    log: Path | None = None
    _known: set[Any] | None = field(default=None, init=False)

    def line(self, progress: Progress) -> str:
        """Write the round down, and return it in words."""
        closed, plan = progress.closed, progress.server.plan
        new = self._new(progress)
        facts = {
            **round_facts(closed),
            "rounds": plan.rounds,
            "asked": progress.asked,
            "dropouts": progress.asked - closed.users,
            "failure": closed.failure,
            "new_heavy_hitters": new,
            "seconds": {stage: round(taken, 3) for stage, taken in progress.seconds.items()},
        }
        if self.log:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(facts) + "\n")
        text = (
            f"round {closed.task.round}/{plan.rounds}: {closed.users:,} of {progress.asked:,} users"
        )
        if closed.failure:
            text += f", aborted: {closed.failure.rstrip('.')}"
        elif table := closed.task.table:
            text += (
                f", t = {closed.task.sampling_threshold:.2f}, {'≥ ' * closed.at_least}"
                f"{closed.estimated_keys:,.0f} keys (capacity {table.capacity:,}), {closed.status}"
            )
        if new is not None:
            text += f", {new:,} new heavy hitter{'s' * (new != 1)}"
        stages = ", ".join(f"{stage} {taken:.1f}" for stage, taken in progress.seconds.items())
        return f"{text}; {stages} s"

    def _new(self, progress: Progress) -> int | None:
        """Count the items that are heavy now and were not before; a sketch lists none."""
        plan = progress.server.plan
        if not plan.repetitions:
            return None
        if self._known is None:  # also of a campaign that goes on
            self._known = _heavy(plan, progress.server.rounds[:-1])
        found = _heavy(plan, progress.server.rounds)
        new = len(found - self._known)
        self._known |= found
        return new


def _heavy(plan: Plan, rounds: list[Round]) -> set[Any]:
    server = Server(plan)
    server.rounds = rounds
    return {line.item for line in server.heavy_hitters()}
