"""The server: it opens rounds, takes their sums, and answers at any time."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from linsketch.arrays import Mask
from linsketch.errors import TaskError
from linsketch.plan import Plan
from linsketch.rings import RingVector
from linsketch.server.estimates import Estimate, FailedRounds, Listed, listed
from linsketch.server.recover import Round, recover
from linsketch.server.sketches import sketched
from linsketch.server.slots.answers import listed_by_slots
from linsketch.server.tuning import Update, halfway, next_task
from linsketch.task import RoundTask


class Server:
    """All that it ever has is the plan and the sums of closed rounds; answers follow from them.

    Threat model: it is curious, so it must be given sums alone, by a secure sum. It does decode
    every sampled item of a sum, also one that a single person has.
    """

    def __init__(self, plan: Plan, update: Update = halfway) -> None:
        self.plan = plan
        self.rounds: list[Round] = []
        self._update = update

    @property
    def done(self) -> bool:
        """Whether all rounds are closed."""
        return len(self.rounds) == self.plan.rounds

    def open_round(self) -> RoundTask:
        """Return the task of the next round, for anybody to read."""
        if self.done:
            raise TaskError(f"All {self.plan.rounds} rounds are closed.")
        return next_task(self.plan, self.rounds, self._update)

    def close_round(self, task: RoundTask, vector: RingVector, users: int) -> Round:
        """Take the sum of a round's vectors."""
        self._in_turn(task)
        closed = recover(self.plan, task, vector, users)
        self.rounds.append(closed)
        return closed

    def abort_round(self, task: RoundTask, reason: str) -> Round:
        """Close a round that has no sum; its users are not asked again."""
        self._in_turn(task)
        closed = Round(task, 0, (), None, None, 0, 0, 0, reason)
        self.rounds.append(closed)
        return closed

    def _in_turn(self, task: RoundTask) -> None:
        if task.round != len(self.rounds) + 1:
            raise TaskError(f"Round {task.round} cannot follow round {len(self.rounds)}.")

    @property
    def failed_rounds(self) -> list[int]:
        """Rounds without a sum, or of which at least one table did not decode."""
        return [closed.task.round for closed in self.rounds if closed.status != "complete"]

    def heavy_hitters(
        self, failed: FailedRounds = "scale", candidates: Iterable[Any] = ()
    ) -> list[Estimate]:
        """Return the items that reach the threshold, the largest first.

        Practical methods report estimates of at least the threshold (section 7), the proven one
        what most repetitions saw (Algorithm 2). Count-median lists nothing by itself: it says
        which of the candidates reach the threshold.
        """
        if self.plan.method == "count-median":
            return [e for e in self._sketched(candidates) if e.estimate >= self.plan.cut]
        found = self.listed(failed)
        return found.as_estimates(self.plan, self._heavy(found))

    def histogram(
        self, failed: FailedRounds = "scale", candidates: Iterable[Any] = ()
    ) -> list[Estimate]:
        """Return every item that the plan gives a count for, the largest first.

        Algorithm 3: counts of the listed heavy hitters out of the sketch; with slots, out of
        whichever knows them better. Without a sketch, all
        that the tables listed, sampled or not: below the threshold these are anecdotes.
        """
        if self.plan.method == "count-median":
            return self._sketched(candidates)
        found = self.listed(failed)
        if self.plan.sketch_rows:
            known = found.as_estimates(self.plan, self._heavy(found))
            sketched_ = self._sketched(line.item for line in known)
            if self.plan.method != "slots":
                return sketched_
            other = {line.item: line for line in sketched_}
            best = [
                other[line.item]
                if line.suspect
                else min(line, other[line.item], key=lambda each: each.stderr)
                for line in known
            ]
            return sorted(best, key=lambda line: (-line.estimate, str(line.item)))
        return found.as_estimates(self.plan, np.ones(len(found.keys), bool))

    def listed(self, failed: FailedRounds = "scale") -> Listed:
        """Return every key that came out of the rounds, with its estimate."""
        how = listed_by_slots if self.plan.method == "slots" else listed
        return how(self.plan, self.rounds, failed)

    def _heavy(self, found: Listed) -> Mask:
        heavy: Mask = found.estimates >= self.plan.cut
        if self.plan.method == "proven" and self.plan.sampling_threshold > 1:
            heavy = 2 * found.votes >= self.plan.repetitions
        return heavy

    def _sketched(self, items: Iterable[Any]) -> list[Estimate]:
        wanted = list(items)
        if not wanted or all(closed.sketch_sum is None for closed in self.rounds):
            return []
        keys = self.plan.keys.encode(wanted).keys
        values, stderr = sketched(self.plan, self.rounds, keys)
        numbers = tuple(closed.task.round for closed in self.rounds)
        found = [
            Estimate(item, float(value), stderr, numbers)
            for item, value in zip(wanted, values, strict=True)
        ]
        return sorted(found, key=lambda e: (-e.estimate, str(e.item)))
