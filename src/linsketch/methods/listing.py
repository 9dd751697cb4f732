"""What tables listed, added up over the rounds, with standard errors."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from linsketch.arrays import Counts, Estimates, Mask, Uint64s
from linsketch.history import Estimate, FailedRounds, History, Round
from linsketch.keys import KeyIndex
from linsketch.methods.base import largest_first
from linsketch.plan import Plan
from linsketch.sampling import Sampling, sampling_variance


class Sightings:
    """In which rounds each key was seen."""

    def __init__(self) -> None:
        self._rounds: list[int] = []
        self._rows: list[Counts] = []

    def add(self, round_: int, rows: Counts) -> None:
        """Note that keys were seen in a round; more than once counts once."""
        self._rounds.append(round_)
        self._rows.append(rows)

    def rounds_of(self, which: Mask) -> list[tuple[int, ...]]:
        """Return the rounds of some keys, in the order of the keys."""
        rows = np.concatenate([np.empty(0, np.int64), *self._rows])
        rounds = np.repeat(self._rounds, [len(each) for each in self._rows])
        kept = which[rows]
        place = np.cumsum(which) - 1
        pairs = np.unique(np.stack([place[rows[kept]], rounds[kept]]), axis=1)
        ends = np.searchsorted(pairs[0], np.arange(int(which.sum())), side="right")
        return [tuple(part.tolist()) for part in np.split(pairs[1], ends[:-1])][: len(ends)]


@dataclass(frozen=True)
class Listed:
    """All keys that came out of a campaign's tables."""

    plan: Plan
    keys: Uint64s
    estimates: Estimates
    variances: Estimates
    seen: Sightings
    suspect: Mask | None = None

    @property
    def heavy(self) -> Mask:
        """Which keys reach the cutoff."""
        reached: Mask = self.estimates >= self.plan.cutoff
        return reached

    def lines(self, which: Mask) -> list[Estimate]:
        """Return the items of some keys, the largest first."""
        rows, rounds = np.flatnonzero(which), self.seen.rounds_of(which)
        stderr = np.sqrt(self.variances[rows]).tolist()
        items = self.plan.keys.decode(self.keys[rows])
        suspect = np.zeros(len(rows), bool) if self.suspect is None else self.suspect[rows]
        return largest_first(
            Estimate(item, value, error, numbers, bool(doubt))
            for item, value, error, numbers, doubt in zip(
                items, self.estimates[rows].tolist(), stderr, rounds, suspect, strict=True
            )
        )

    def everything(self) -> list[Estimate]:
        """Return all items."""
        return self.lines(np.ones(len(self.keys), bool))


class ListingHistory(History, ABC):
    """A history that can list every key that was seen."""

    @abstractmethod
    def listed(self, failed: FailedRounds) -> Listed:
        """Estimate the counts of all keys over the campaign."""


class ListedSums(ListingHistory):
    """The sums, by key and repetition, of what complete tables listed.

    Keys of partial peels are right, but those that are missing are not missing at random: partial
    peels do not count.
    """

    def __init__(self, plan: Plan, sampling: Sampling, repetitions: int) -> None:
        super().__init__(plan)
        self._sampling, self._repetitions = sampling, repetitions
        self._index = KeyIndex(plan.keys.limbs)
        self._values = np.zeros((0, repetitions))
        self._spread = np.zeros((0, repetitions))  # values times the variance of sampling 1
        self._decoded = np.zeros(repetitions)  # users in tables that decoded
        self._users = 0
        self._seen = Sightings()

    def add(self, closed: Round) -> None:
        """Take a closed round."""
        super().add(closed)
        self._users += closed.users
        t = closed.task.sampling_threshold
        for reading in closed.readings:
            for repetition, peel in enumerate(reading.peels):
                if not peel.complete:
                    continue
                self._decoded[repetition] += reading.users
                rows = self._index.add(peel.keys)
                more = ((0, len(self._index) - len(self._values)), (0, 0))
                self._values, self._spread = np.pad(self._values, more), np.pad(self._spread, more)
                values = peel.counts * (t if self._sampling == "binomial" else 1.0)
                self._values[rows, repetition] += values
                self._spread[rows, repetition] += sampling_variance(t, self._sampling) * values
                self._seen.add(closed.task.round, rows)

    @property
    def votes(self) -> Counts:
        """How many repetitions saw each key, in any round."""
        votes: Counts = (self._values > 0).sum(axis=1)
        return votes

    def listed(self, failed: FailedRounds) -> Listed:
        """Average the repetitions.

        An item with the value v in a round has a variance of v(t - 1) from sampling, and a little
        more where threshold sampling rounds t; this is an upper bound if users have it more than
        once (docs/math.md). Who fell into the lost rounds is the same for all repetitions.
        """
        scale = np.ones(self._repetitions)
        if failed == "scale":
            scale = np.where(self._decoded > 0, self._users / np.maximum(self._decoded, 1), 1.0)
        estimates = (scale * self._values).sum(axis=1) / self._repetitions
        chance = (scale * (scale - 1) * self._values).sum(axis=1) / self._repetitions
        sampling = (scale**2 * self._spread).sum(axis=1) / self._repetitions**2
        return Listed(self.plan, self._index.keys, estimates, sampling + chance, self._seen)
