"""Users on the workers of a cluster, in pieces that are populations by themselves."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future

from linsketch.arrays import Counts, Uint64s
from linsketch.errors import PlanningError
from linsketch.keys import KeySpace, distinct_keys
from linsketch.plan import Plan
from linsketch.population.simulated import Population, SimulatedCohort
from linsketch.rings import Contribution
from linsketch.round import RoundSketch, RoundTask
from linsketch.securesum import ClearSum

_FAN_IN = 8  # results that one task adds up


@dataclass(frozen=True, eq=False)
class Pieces:
    """To a cluster what `Population` is to one machine.

    The pieces stay in the memory of the workers, or on their disks; one that is lost with a
    worker is read again by another. All rows of a user are in one piece.
    """

    client: Client
    pieces: Sequence[Future]
    keys: KeySpace[Any]
    seed: bytes

    @cached_property
    def _summary(self) -> "_Summary":
        parts = self.client.map(_summary, self.pieces, pure=False)
        summary: _Summary = added_up(self.client, _sum_of_summaries, parts).result()
        return summary

    @property
    def users_in_round(self) -> Counts:
        """How many users each round has."""
        return self._summary.users_in_round

    @property
    def busiest(self) -> int:
        """How many items the user with the most has."""
        return self._summary.busiest

    @property
    def occurrences(self) -> int:
        """How many items all users have together."""
        return self._summary.occurrences

    @property
    def fingerprint(self) -> str:
        """A name of the data, the same as on one machine."""
        return f"{self._summary.digest:016x}"

    def bounded(self, items_per_user: int) -> "Pieces":
        """Return the users, none of whom has more than so many items."""
        if self.busiest <= items_per_user:
            return self
        bounded = self.client.map(
            Population.bounded, self.pieces, items_per_user=items_per_user, pure=False
        )
        return replace(self, pieces=bounded)

    def item_totals(self) -> dict[Any, int]:
        """Return the true count of each item, in the order of their keys."""
        parts = self.client.map(_totals, self.pieces, pure=False)
        keys, totals = added_up(self.client, _sum_of_totals, parts).result()
        return dict(zip(self.keys.decode(keys), totals.tolist(), strict=True))

    def cohorts(self, *, one_by_one: bool = False) -> list["SpreadCohort"]:
        """Return the cohorts of all rounds; their users are added up where they are."""
        if one_by_one:
            raise PlanningError("A cluster adds its users up; one by one they are on one machine.")
        return [SpreadCohort(self, 1 + before) for before in range(len(self.users_in_round))]


@dataclass(frozen=True, eq=False)
class SpreadCohort:
    """The users of one round, on whichever workers they are."""

    people: Pieces
    round: int

    def contributions(self, plan: Plan, task: RoundTask) -> Iterator[Contribution]:
        """Return one contribution for all users: only vectors travel, added up in a tree."""
        client = self.people.client
        parts = client.map(
            _contribution, self.people.pieces, plan=plan, task=task, round_=self.round, pure=False
        )
        yield added_up(client, _sum_of_contributions, parts).result()


def added_up(client: Client, add: Callable[[Any], Any], parts: Sequence[Future]) -> Future:
    """Add up in a tree, on the workers."""
    while len(parts) > 1:
        parts = [
            client.submit(add, parts[first : first + _FAN_IN], pure=False)
            for first in range(0, len(parts), _FAN_IN)
        ]
    return parts[0]


# What follows runs on the workers.


class _Summary(NamedTuple):
    users_in_round: Counts
    busiest: int
    occurrences: int
    digest: int


def _summary(piece: Population) -> _Summary:
    return _Summary(piece.users_in_round, piece.busiest, piece.occurrences, piece.digest)


def _sum_of_summaries(parts: Sequence[_Summary]) -> _Summary:
    users, busiest, occurrences, digests = zip(*parts, strict=True)
    return _Summary(sum(users), max(busiest), sum(occurrences), sum(digests) % 2**64)


def _contribution(piece: Population, plan: Plan, task: RoundTask, round_: int) -> Contribution:
    nobody = Contribution(RoundSketch.of(plan, task).ring.zeros(), 0)
    cohort = SimulatedCohort(piece, round_)
    return _sum_of_contributions([nobody, *cohort.contributions(plan, task)])


def _sum_of_contributions(parts: Sequence[Contribution]) -> Contribution:
    return ClearSum()(parts[0].vector.ring, parts, b"")


def _totals(piece: Population) -> tuple[Uint64s, Counts]:
    return piece.item_keys, piece.key_totals()


def _sum_of_totals(parts: Iterable[tuple[Uint64s, Counts]]) -> tuple[Uint64s, Counts]:
    all_keys, all_totals = zip(*parts, strict=True)
    keys, number = distinct_keys(np.concatenate(all_keys))
    totals = np.zeros(len(keys), np.int64)
    np.add.at(totals, number, np.concatenate(all_totals))
    return keys, totals
