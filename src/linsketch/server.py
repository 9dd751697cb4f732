"""The server: it opens rounds, takes their sums, and answers at any time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from linsketch import markup
from linsketch.errors import TaskError
from linsketch.history import Estimate, FailedRounds, History, Round
from linsketch.plan import Plan
from linsketch.rings import Contribution
from linsketch.round import RoundTask


class Server:
    """All that it ever has is the plan and the sums of closed rounds; answers follow from them.

    Threat model: it is curious, so it must be given sums alone, by a secure sum. It does decode
    every sampled item of a sum, also one that a single person has.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.history: History = plan.method.history(plan)

    @property
    def rounds(self) -> Sequence[Round]:
        """The closed rounds."""
        return self.history.rounds

    @property
    def done(self) -> bool:
        """Whether all rounds are closed."""
        return len(self.rounds) == self.plan.rounds

    def open_round(self) -> RoundTask:
        """Return the task of the next round, for anybody to read."""
        if self.done:
            raise TaskError(f"All {self.plan.rounds} rounds are closed.")
        return self.plan.method.open(self.plan, self.history)

    def open_rounds(self) -> Iterator[RoundTask]:
        """Return the tasks that can be open side by side: one, if it decides about the next."""
        first = self.open_round()
        last = first.round if self.plan.method.interactive else self.plan.rounds
        return (replace(first, round=number) for number in range(first.round, last + 1))

    def close_round(self, task: RoundTask, sums: Sequence[Contribution]) -> Round:
        """Take the sums of a round's vectors, one a group."""
        self._in_turn(task)
        return self._kept(self.plan.method.read(self.plan, task, sums))

    def abort_round(self, task: RoundTask, reason: str) -> Round:
        """Close a round that has no sum; its users are not asked again."""
        self._in_turn(task)
        return self._kept(Round(task, failure=reason))

    def _kept(self, closed: Round) -> Round:
        self.history.add(closed)
        return closed

    def _in_turn(self, task: RoundTask) -> None:
        if task.round != len(self.rounds) + 1:
            raise TaskError(f"Round {task.round} cannot follow round {len(self.rounds)}.")

    @property
    def failed_rounds(self) -> list[int]:
        """Rounds without a sum, and rounds with a table that did not decode."""
        return [closed.task.round for closed in self.rounds if closed.status != "complete"]

    def heavy_hitters(
        self, failed: FailedRounds = "scale", candidates: Iterable[Any] = ()
    ) -> list[Estimate]:
        """Return the items that reach the threshold, the largest first.

        A method that lists nothing by itself says which of the candidates reach the threshold.
        """
        return self.plan.method.heavy_hitters(self.history, failed, candidates)

    def histogram(
        self, failed: FailedRounds = "scale", candidates: Iterable[Any] = ()
    ) -> list[Estimate]:
        """Return every item that there is a count for, the largest first.

        Without a sketch that is all that was listed, sampled or not: below the threshold these
        are anecdotes, and may be of one person.
        """
        return self.plan.method.histogram(self.history, failed, candidates)

    def __repr__(self) -> str:
        return f"<Server: {len(self.rounds)} of {self.plan.rounds} rounds closed>"

    def _repr_html_(self) -> str:
        rows = [
            (
                closed.task.round,
                f"{closed.users:,}",
                f"{closed.task.sampling_threshold:.2f}",
                closed.status,
                f"{closed.keys:,}",
            )
            for closed in self.rounds
        ]
        lead = f"{self.plan.method.name}: {len(self.rounds)} of {self.plan.rounds} rounds closed"
        heads = ("round", "users", "t", "status", "keys listed")
        return f"<p>{escape(lead)}</p>{markup.table(heads, rows)}"
