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
from linsketch.arrays import Counts, Words
from linsketch.client.histogram import bounded
from linsketch.client.report import sampled
from linsketch.errors import TaskError
from linsketch.hashing import Seeds
from linsketch.keys import KeySpace
from linsketch.plan import Plan
from linsketch.randomness import SimulatedRandomness, cohorts
from linsketch.securesum import Contribution
from linsketch.task import Message, RoundTask, check_task, in_slice, message


@dataclass(frozen=True, eq=False)
class Population:
    """Users in the order of their rounds, each with rows of (item, count), sorted by key."""

    keys: KeySpace[Any]
    item_keys: Words  # one row an item, sorted
    users: Words  # the word of each user
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
        users: Words,
        user_of_row: NDArray[np.integer],
        counts: NDArray[np.integer],
        rounds: int,
        seed: bytes,
    ) -> "Population":
        """Group rows by user and split the users into cohorts by a keyed hash.

        `items` and `users` (their words) are distinct; rows refer to them by number, and may
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
        return self._sums(slice(None), self.counts)[0]

    def item_totals(self) -> dict[Any, int]:
        """Return the true count of each item, in the order of their keys."""
        items = self.keys.decode(self.item_keys)
        return dict(zip(items, self.key_totals().tolist(), strict=True))

    def _sums(self, rows: slice, values: Counts) -> tuple[Counts, Counts]:
        """Add up values by item; return the sums and the numbers of holders."""
        sums, holders = np.zeros((2, len(self.item_keys)), np.int64)
        kernels.rows.by_item(self.items[rows], values, sums, holders)
        return sums, holders

    def _added_up(self, rows: slice, values: Counts) -> tuple[Words, Counts, Counts]:
        """Return the keys that have values, their sums and their numbers of holders."""
        sums, holders = self._sums(rows, values)
        some = sums > 0
        return self.item_keys[some], sums[some], holders[some]

    @property
    def digest(self) -> int:
        """A hash of all rows: digests of parts of the users add up, modulo 2**64."""
        (seed,) = Seeds(self.seed).words("fingerprint", 1)
        digests = hashing.digest(self.item_keys, seed)
        total = kernels.rows.fingerprint(self.users, self.starts, self.items, digests, self.counts)
        return int(total)

    @property
    def fingerprint(self) -> str:
        """A name of the data, whatever the order of its rows."""
        return f"{self.digest:016x}"

    def cohorts(self, *, one_by_one: bool = False) -> list["Cohort"]:
        """Return the cohorts of all rounds; a secure sum takes their users one by one."""
        return [Cohort(self, round_, one_by_one) for round_ in range(1, len(self.first_users))]


@dataclass(frozen=True, eq=False)
class Cohort:
    """The users of one round. They report only if nobody has more items than the plan allows."""

    population: Population
    round: int
    one_by_one: bool = False

    def contributions(self, plan: Plan, task: RoundTask) -> Iterator[Contribution]:
        """Return a contribution of each user, or one that speaks for the whole cohort."""
        people = self.population
        check_task(plan, task)
        if plan.keys != people.keys or people.busiest > plan.items_per_user:
            raise TaskError(
                f"The plan is for {plan.keys.name} and at most {plan.items_per_user:,} items a "
                f"user; this population has {people.keys.name} and up to {people.busiest:,}: "
                "take population.bounded(...)."
            )
        first, last = people.first_users[self.round - 1 : self.round + 1].tolist()
        step = 1 if self.one_by_one else max(last - first, 1)
        parts = message(plan, task)
        for user in range(first, last, step):
            yield self._together(plan, task, parts, user, user + step)

    def _together(
        self, plan: Plan, task: RoundTask, parts: Message, first: int, last: int
    ) -> Contribution:
        """Encode the sum of some users' samples."""
        people = self.population
        rows = slice(people.starts[first], people.starts[last])
        held = np.diff(people.starts[first : last + 1])
        users = np.repeat(people.users[first:last], held)
        counts, row_keys = people.counts[rows], people.item_keys[people.items[rows]]
        vectors = []
        wanted: NDArray[np.bool_] | slice = slice(None)
        if parts.slots:
            # Of a crowd every item is looked up once, of a user only its own.
            alone = last - first == 1
            keys = row_keys if alone else people.item_keys
            of_row = slice(None) if alone else people.items[rows]
            places = parts.slots.places(keys)[of_row]
            wanted = in_slice(plan, task.slice, keys)[of_row] & (places < 0)
        randomness = SimulatedRandomness(people.seed, users[wanted])
        for repetition, table in enumerate(parts.tables):
            states = randomness.for_sampling(task.round, repetition, row_keys[wanted])
            values = np.zeros(len(counts), np.int64)
            values[wanted] = sampled(counts[wanted], plan, task, states)
            if last - first > 1:
                keys, values, holders = people._added_up(rows, values)
                paper = {"holders": holders} if plan.layout == "paper" else {}
                vectors.append(table.encode_keys(keys, values, **paper))
            else:
                vectors.append(table.encode_keys(row_keys, values))
        if parts.sketch:
            vectors.append(parts.sketch.encode_keys(row_keys, counts))
        if parts.slots:
            vectors.append(parts.slots.encode_places(places, counts))
        return Contribution(parts.join(vectors), last - first)


def _inverse(order: NDArray[np.intp]) -> NDArray[np.uint32]:
    places = np.empty(len(order), np.uint32)
    places[order] = np.arange(len(order), dtype=np.uint32)
    return places
