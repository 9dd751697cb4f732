"""A campaign: R rounds, client to secure sum to server."""

from collections.abc import Callable, Iterable, Sequence
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


def run(
    plan: Plan,
    cohorts: Sequence[Cohort],
    secure_sum: SecureSum | None = None,
    *,
    transcript: Transcript | None = None,
    update: Update = halfway,
    watch: Callable[[Round], None] = lambda _: None,
) -> Server:
    """Run the rounds that are not closed yet (Algorithms 2 and 4) and return the server.

    With a transcript, each round is on disk before the next opens, and a campaign that was
    stopped goes on where it was. `watch` is shown each closed round.
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
        try:
            total = secure_sum(ring, cohort.contributions(plan, task), context)
            closed = server.close_round(task, total.vector, total.users)
        except RoundFailed as failure:  # the cohort is burned, and the campaign goes on
            total, closed = None, server.abort_round(task, str(failure))
        if transcript:
            transcript.add(task, total, closed.failure)
        watch(closed)
    return server
