"""A campaign: R rounds, from a source of sums to the server."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from linsketch.errors import PlanningError, ProtocolError, RoundFailed
from linsketch.history import Round
from linsketch.plan import Plan
from linsketch.records.transcript import Transcript
from linsketch.rings import Contribution
from linsketch.round import RoundTask
from linsketch.server import Server


@dataclass(frozen=True)
class Gathered:
    """What a source brings of one round: its sums, one a group, or why there are none."""

    task: RoundTask
    sums: tuple[Contribution, ...] = ()
    failure: str = ""
    asked: int = 0  # users
    seconds: Mapping[str, float] = field(default_factory=dict)  # by stage

    def __post_init__(self) -> None:
        if bool(self.sums) == bool(self.failure):
            raise ProtocolError("A round has sums, or a reason why there are none.")


class Source(Protocol):
    """Where the sums of rounds come from: a rehearsal, or a federation of real clients."""

    def gather(self, plan: Plan, tasks: Iterator[RoundTask]) -> Sequence[Gathered]:
        """Carry the first of these rounds to their ends: at least one, side by side if more."""
        ...


@dataclass(frozen=True)
class Progress:
    """A round that has just closed, as it is told to a watcher.

    What is new after rounds that ran side by side is told with the last of them.
    """

    server: Server
    closed: Round
    asked: int  # users
    seconds: Mapping[str, float]  # by stage
    new_heavy_hitters: int | None  # None where nothing is listed


def run(
    plan: Plan,
    source: Source,
    *,
    transcript: Transcript | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> Server:
    """Run the rounds that are not closed yet (Algorithms 2 and 4) and return the server.

    With a transcript, each round is on disk before the next opens, and a campaign that was
    stopped goes on where it was. `watch` is told of each closed round.
    """
    if transcript and transcript.plan != plan:
        raise PlanningError(f"{transcript.path} is the transcript of another plan.")
    server = transcript.server() if transcript else Server(plan)
    counts = watch is not None and plan.method.lists
    known = plan.method.found(server.history) if counts else set()
    while not server.done:
        told = []
        for gathered in source.gather(plan, server.open_rounds()):  # all are kept, then told
            start = time.monotonic()
            closed = _close(server, gathered)
            if transcript:
                transcript.add(closed, gathered.sums)
            seconds = {**gathered.seconds, "decoding": time.monotonic() - start}
            told.append(Progress(server, closed, gathered.asked, seconds, 0 if counts else None))
        if counts:
            new = plan.method.found(server.history) - known
            known |= new
            told[-1] = replace(told[-1], new_heavy_hitters=len(new))
        for progress in told:
            if watch:
                watch(progress)
    return server


def _close(server: Server, gathered: Gathered) -> Round:
    """Close a round. One without a sum has burned its cohort, and the campaign goes on."""
    if not gathered.failure:
        try:
            return server.close_round(gathered.task, gathered.sums)
        except RoundFailed as failure:
            return server.abort_round(gathered.task, str(failure))
    return server.abort_round(gathered.task, gathered.failure)
