"""A population in arrays: who has what, split into cohorts.

Simulation uses linearity: the samples of a cohort are added up and encoded once. That gives the
same bytes as a report of each user by itself, because every decision is a keyed function of
(seed, round, repetition, user, item): `linsketch.randomness`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linsketch import hashing, kernels
from linsketch.arrays import Counts, Uint64s
from linsketch.errors import TaskError
from linsketch.hashing import Seeds
from linsketch.keys import KeySpace
from linsketch.plan import Plan
from linsketch.randomness import SimulatedRandomness, cohorts
from linsketch.rings import Contribution, RingVector
from linsketch.round import RoundSketch, RoundTask
from linsketch.sampling import bounded


@dataclass(frozen=True, eq=False)
class Population:
    """Users in the order of their rounds, each with rows of (item, count), sorted by key."""

    keys: KeySpace[Any]
    item_keys: Uint64s  # one row an item, sorted
    users: Uint64s  # the id of each user
    first_users: Counts  # the first user of each round, and the end
    starts: Counts  # the first row of each user, and the end
    items: NDArray[np.uint32]  # a row's item: its number in item_keys
    counts: Counts
    seed: bytes

    @classmethod
    def from_rows(
        cls,
        keys: KeySpace[Any],
        items: Sequence[Any],
        item_of_row: NDArray[np.integer],
        users: Uint64s,
        user_of_row: NDArray[np.integer],
        counts: NDArray[np.integer],
        rounds: int,
        seed: bytes,
    ) -> "Population":
        """Group rows by user and split the users into cohorts by a keyed hash.

        `items` and `users` (their ids) are distinct; rows refer to them by number, and may
        repeat.
        """
        item_keys = keys.encode(items).keys
        key_order = np.lexsort(item_keys.T[::-1])
        round_of_user = cohorts(users, rounds, seed)
        user_order = np.argsort(round_of_user, kind="stable")
        starts = np.empty(len(users) + 1, np.int64)
        rows = np.empty((len(counts), 2), np.uint64)  # item, count
        end = kernels.rows.by_user(
            _inverse(user_order)[user_of_row],
            _inverse(key_order)[item_of_row],
            counts,
            starts,
            rows,
        )
        return cls(
            keys=keys,
            item_keys=item_keys[key_order],
            users=users[user_order],
            first_users=np.searchsorted(round_of_user[user_order], np.arange(1, rounds + 2)),
            starts=starts,
            items=rows[:end, 0].astype(np.uint32),
            counts=rows[:end, 1].astype(np.int64),
            seed=seed,
        )

    @property
    def users_in_round(self) -> Counts:
        """How many users each round has."""
        return np.diff(self.first_users)

    @cached_property
    def totals(self) -> Counts:
        """How many items each user has in all."""
        sums = np.zeros(len(self.counts) + 1, np.int64)
        np.cumsum(self.counts, out=sums[1:])
        return np.diff(sums[self.starts])

    @property
    def busiest(self) -> int:
        """How many items the user with the most has."""
        return int(self.totals.max(initial=0))

    @property
    def occurrences(self) -> int:
        """How many items all users have together."""
        return int(self.counts.sum())

    def bounded(self, items_per_user: int) -> "Population":
        """Return the population in which nobody has more than so many items."""
        if self.busiest <= items_per_user:
            return self
        states = SimulatedRandomness(self.seed, self.users).for_bound()
        return replace(self, counts=bounded(self.counts, items_per_user, states, self.starts))

    def key_totals(self) -> Counts:
        """Return the true count of each of `item_keys`."""
        sums, holders = np.zeros((2, len(self.item_keys)), np.int64)
        kernels.rows.by_item(self.items, self.counts, sums, holders)
        return sums

    def item_totals(self) -> dict[Any, int]:
        """Return the true count of each item, in the order of their keys."""
        items = self.keys.decode(self.item_keys)
        return dict(zip(items, self.key_totals().tolist(), strict=True))

    @property
    def digest(self) -> int:
        """A hash of all rows: digests of parts of the users add up, modulo 2**64."""
        (seed,) = Seeds(self.seed).integers("fingerprint", 1)
        digests = hashing.digest(self.item_keys, seed)
        total = kernels.rows.fingerprint(self.users, self.starts, self.items, digests, self.counts)
        return int(total)

    @property
    def fingerprint(self) -> str:
        """A name of the data, whatever the order of its rows."""
        return f"{self.digest:016x}"

    def cohorts(self, *, one_by_one: bool = False) -> list["SimulatedCohort"]:
        """Return the cohorts of all rounds; a secure sum takes their users one by one."""
        rounds = range(1, len(self.first_users))
        return [SimulatedCohort(self, round_, one_by_one) for round_ in rounds]


@dataclass(frozen=True, eq=False)
class SimulatedCohort:
    """The users of one round. They report only if nobody has more items than the plan allows."""

    population: Population
    round: int
    one_by_one: bool = False

    def contributions(self, plan: Plan, task: RoundTask) -> Iterator[Contribution]:
        """Return a contribution of each user, or one that speaks for the whole cohort."""
        people = self.population
        sketch = RoundSketch.of(plan, task)
        if plan.keys != people.keys or people.busiest > plan.items_per_user:
            raise TaskError(
                f"The plan is for {plan.keys.name} and at most {plan.items_per_user:,} items a "
                f"user; this population has {people.keys.name} and up to {people.busiest:,}: "
                "take population.bounded(...)."
            )
        first, last = people.first_users[self.round - 1 : self.round + 1].tolist()
        if self.one_by_one:
            for user in range(first, last):
                yield Contribution(self._alone(sketch, user))
        elif last > first:
            yield Contribution(self._together(sketch, first, last), last - first)

    def _alone(self, sketch: RoundSketch, user: int) -> RingVector:
        """Encode one user's items."""
        people = self.population
        rows = slice(people.starts[user], people.starts[user + 1])
        keys = people.item_keys[people.items[rows]]
        randomness = SimulatedRandomness(people.seed, people.users[user : user + 1])
        return sketch.encode(keys, people.counts[rows], randomness)

    def _together(self, sketch: RoundSketch, first: int, last: int) -> RingVector:
        """Encode the sum of some users' samples."""
        people = self.population
        rows = slice(people.starts[first], people.starts[last])
        held = np.diff(people.starts[first : last + 1])
        users = np.repeat(people.users[first:last], held)
        randomness = SimulatedRandomness(people.seed, users)
        return sketch.encode(
            people.item_keys, people.counts[rows], randomness, item_of_row=people.items[rows]
        )


def _inverse(order: NDArray[np.intp]) -> NDArray[np.uint32]:
    places = np.empty(len(order), np.uint32)
    places[order] = np.arange(len(order), dtype=np.uint32)
    return places
