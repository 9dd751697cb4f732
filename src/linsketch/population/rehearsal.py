"""A rehearsal: a source whose users are simulated, on this machine or on a cluster."""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from linsketch.campaign import Gathered
from linsketch.errors import PlanningError, RoundFailed
from linsketch.plan import Plan
from linsketch.rings import Contribution
from linsketch.round import RoundSketch, RoundTask
from linsketch.securesum import ClearSum, SecureSum


class Cohort(Protocol):
    """The users of one round; `Clients` is one, and a `Population` makes them."""

    def contributions(self, plan: Plan, task: RoundTask) -> Iterable[Contribution]:
        """Return what the users of this cohort send."""
        ...


class Rehearsal:
    """Everything but the network is real: users sample and encode, a sum adds up their vectors."""

    def __init__(self, cohorts: Sequence[Cohort], secure_sum: SecureSum | None = None) -> None:
        self._cohorts = cohorts
        self._secure_sum = secure_sum or ClearSum()

    def gather(self, plan: Plan, tasks: Iterator[RoundTask]) -> list[Gathered]:
        """Add up the vectors of the next round."""
        if len(self._cohorts) != plan.rounds:
            raise PlanningError(
                f"{plan.rounds} rounds need as many cohorts, not {len(self._cohorts)}."
            )
        task = next(tasks)
        sketch = RoundSketch.of(plan, task)
        asked = _Counted(self._cohorts[task.round - 1].contributions(plan, task))
        start = time.monotonic()
        sums: tuple[Contribution, ...] = ()
        failure = ""
        try:
            sums = (self._secure_sum(sketch.ring, asked, sketch.context),)
        except RoundFailed as reason:
            failure = str(reason)
        seconds = {"sum": time.monotonic() - start}
        return [Gathered(task, sums, failure, asked.users, seconds)]


class _Counted:
    """Contributions on their way, and how many users have been asked for them."""

    def __init__(self, contributions: Iterable[Contribution]) -> None:
        self._contributions = contributions
        self.users = 0

    def __iter__(self) -> Iterator[Contribution]:
        for contribution in self._contributions:
            self.users += contribution.users
            yield contribution
