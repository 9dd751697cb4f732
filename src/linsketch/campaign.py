"""A campaign: R rounds, client to secure sum to server."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from linsketch.errors import PlanningError, RoundFailed
from linsketch.plan import Plan
from linsketch.securesum import ClearSum, Contribution, SecureSum
from linsketch.server import Round, Server, Update, halfway
from linsketch.task import RoundTask, message
from linsketch.transcript import Transcript


class Cohort(Protocol):
    """The users of one round; `Clients` and `Population` make them."""

    def contributions(self, plan: Plan, task: RoundTask) -> Iterable[Contribution]:
        """Return what the users of this cohort send."""
        ...


@dataclass(frozen=True)
class Progress:
    """A round that has just closed, for whoever watches."""

    server: Server
    closed: Round
    asked: int  # users
    seconds: Mapping[str, float]  # by stage


def run(
    plan: Plan,
    cohorts: Sequence[Cohort],
    secure_sum: SecureSum | None = None,
    *,
    transcript: Transcript | None = None,
    update: Update = halfway,
    watch: Callable[[Progress], None] = lambda _: None,
) -> Server:
    """Run the rounds that are not closed yet (Algorithms 2 and 4) and return the server.

    With a transcript, each round is on disk before the next opens, and a campaign that was
    stopped goes on where it was. `watch` is told of each closed round.
    """
    if len(cohorts) != plan.rounds:
        raise PlanningError(f"{plan.rounds} rounds need as many cohorts, not {len(cohorts)}.")
    if transcript and transcript.plan != plan:
        raise PlanningError(f"{transcript.path} is the transcript of another plan.")
    secure_sum = secure_sum or ClearSum()
    server = transcript.server(update) if transcript else Server(plan, update)
    for cohort in cohorts[len(server.rounds) :]:
        task = server.open_round()  # public: t and table of this round
        ring, context = message(plan, task).ring, task.context(plan)
        asked = _Counted(cohort.contributions(plan, task))
        start = summed = time.monotonic()
        try:
            total = secure_sum(ring, asked, context)
            summed = time.monotonic()
            closed = server.close_round(task, total.vector, total.users)
        except RoundFailed as failure:  # the cohort is burned, and the campaign goes on
            total, closed = None, server.abort_round(task, str(failure))
        if transcript:
            transcript.add(task, total, closed.failure)
        seconds = {"sum": summed - start, "decoding": time.monotonic() - summed}
        watch(Progress(server, closed, asked.users, seconds))
    return server


class _Counted:
    """Contributions on their way, and how many users have been asked for them."""

    def __init__(self, contributions: Iterable[Contribution]) -> None:
        self._contributions = contributions
        self.users = 0

    def __iter__(self) -> Iterator[Contribution]:
        for contribution in self._contributions:
            self.users += contribution.users
            yield contribution
