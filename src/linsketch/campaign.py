"""A campaign: R rounds, from a source of sums to the server."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from linsketch.errors import PlanningError, RoundFailed
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


class Source(Protocol):
    """Where the sums of rounds come from: a rehearsal, or a federation of real clients."""

    def gather(self, plan: Plan, tasks: Iterator[RoundTask]) -> Sequence[Gathered]:
        """Carry the first of these rounds to their ends: at least one, side by side if more."""
        ...


@dataclass(frozen=True)
class Progress:
    """A round that has just closed, for whoever watches."""

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
    known = _Known(server, watched=watch is not None)
    while not server.done:
        told = []
        for gathered in source.gather(plan, server.open_rounds()):
            start = time.monotonic()
            closed = _close(server, gathered)
            if transcript:
                transcript.add(closed, gathered.sums)
            seconds = {**gathered.seconds, "decoding": time.monotonic() - start}
            told.append(Progress(server, closed, gathered.asked, seconds, known.new()))
        for progress in told:  # when all are kept
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


class _Known:
    """The heavy hitters so far: tells how many have come since it was asked last."""

    def __init__(self, server: Server, watched: bool) -> None:
        self._server, self._watched = server, watched and server.plan.method.lists
        self._items = self._now()

    def _now(self) -> set[object]:
        return {line.item for line in self._server.heavy_hitters()} if self._watched else set()

    def new(self) -> int | None:
        """Count the new ones; None where nobody watches, or nothing is listed."""
        new = self._now() - self._items
        self._items |= new
        return len(new) if self._watched else None
