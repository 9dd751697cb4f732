"""What the closed rounds say of every key that was ever seen.

Each observation of a key has an *exposure*: the round's total count (its *mass*), divided by t if
occurrences were sampled. A key is observed in a round if a slot counted it, or if it lay in the
round's slice and the table decoded. Counts over exposure are rates. Rounds are taken to be alike
within an *epoch*. When the slots of a round disagree all together with what was expected, another
epoch begins, and what was not observed in the old one is filled up with the old rates.
"""

from typing import NamedTuple

import numpy as np

from linsketch.arrays import Counts, Estimates, Mask, Uint64s
from linsketch.history import FailedRounds, Reading, Round
from linsketch.keys import KeyIndex
from linsketch.methods.listing import Listed, ListingHistory, Sightings
from linsketch.methods.slots.tally import Tally, spread, window
from linsketch.plan import Plan
from linsketch.round import RoundSketch, RoundTask
from linsketch.sampling import Sampling, sampling_variance
from linsketch.sketch.slices import WHOLE, Slice, slice_places
from linsketch.sketch.slots import SlotSketch

_SUSPECT = 4.75  # a key is suspect beyond so many standard deviations: once in a million
_SUSPECT_ROUNDS = 3  # and only after so many rounds with a slot
_DRIFT = 3.0  # an epoch ends when the slots of a round misfit so many times more than usual
_MOST = 25.0  # one slot adds no more than this to a round's misfit: no single one makes a drift
_SLOTS = 16  # a round with fewer slots cannot end an epoch
LEARNED = 64  # slots, all rounds together, after which the usual misfit is known


class _Sweep(NamedTuple):
    """A table that decoded, in the epoch that lasts: all keys of its slice were observed."""

    start: int
    width: int
    looked: float
    covered: float


class Evidence(ListingHistory):
    """The epoch that lasts and those before, kept round by round.

    Residues are resolved by what is known before their round. A key that is seen for the first
    time has been observed before, with a count of zero, by every sweep of the epoch that its
    place lay in.
    """

    def __init__(self, plan: Plan, sampling: Sampling) -> None:
        super().__init__(plan)
        self._sampling = sampling
        self.index = KeyIndex(plan.keys.limbs)
        self.places = np.empty(0, np.uint64)  # of the keys, on the slices' circle
        self.now = Tally.empty(0)
        self.masses: list[float] = []  # of the epoch's rounds
        self.past: list[tuple[Tally, float]] = []  # earlier epochs, and their masses
        self.misfit = np.empty(0)  # squared deviations of slots, over their variance
        self.slot_rounds = np.empty(0, np.int64)
        self.tainted = np.empty(0, bool)  # keys that were suspect in an earlier epoch
        self.compared = 0  # slots that the dispersion was taken from
        self.swept = 0  # width of all slices whose tables decoded
        self.seen = Sightings()
        self.last: Round | None = None  # the last round with a sum
        self._deviated = 0.0  # over all epochs: people stay as they are
        self._sweeps: list[_Sweep] = []

    @property
    def keys(self) -> Uint64s:
        """All keys that were seen."""
        return self.index.keys

    @property
    def dispersion(self) -> float:
        """How much more than chance the slots deviate."""
        return max(1.0, self._deviated / self.compared) if self.compared else 1.0

    @property
    def mass(self) -> float:
        """Items in the epoch's rounds."""
        return float(np.array(self.masses).sum())

    @property
    def mean_mass(self) -> float:
        """Items in a round, on average."""
        return float(np.array(self.masses).mean()) if self.masses else 0.0

    @property
    def suspect(self) -> Mask:
        """Keys whose slots disagree with what was expected of them, all rounds together."""
        return self.tainted | _suspect(self.misfit, self.slot_rounds)

    def before(self, fill: bool = True) -> tuple[Estimates, Estimates]:
        """Return counts of the earlier epochs, and their variances; 0 for keys seen later."""
        totals, variances = np.zeros((2, len(self.index)))
        for tally, mass in self.past:
            values, spread_ = tally.totals(mass, self.dispersion, fill)
            totals[: len(values)] += values
            variances[: len(values)] += spread_
        return totals, variances

    def add(self, closed: Round) -> None:
        """Take a closed round."""
        super().add(closed)
        for reading in closed.readings:
            self.last = closed
            if closed.task.slice and reading.peels[0].complete:
                self.swept += closed.task.slice.width
            self._take(closed.task, reading)

    def _take(self, task: RoundTask, reading: Reading) -> None:
        assert reading.slot_sum is not None  # noqa: S101  # of a method with slots
        slots = RoundSketch.of(self.plan, task).parts.slots
        assert slots is not None  # noqa: S101  # as above
        peel = reading.peels[0]
        mass = float(reading.slot_sum.arrays[0][0])
        if mass > reading.users * self.plan.items_per_user:  # somebody lies: nothing is believed
            return
        named = self._with_rows(slots.named)
        rows, counts, expected = self._resolved(reading, slots, named, mass)
        chance = spread(expected, self.now.looked[rows], mass, 1.0)
        deviations = (counts - expected) ** 2 / (chance * self.dispersion)
        together = float(np.minimum(deviations, _MOST).mean()) if len(rows) >= _SLOTS else 0.0
        if together > _DRIFT and self.compared >= LEARNED:
            self._end_epoch()
        else:
            known = self.compared >= LEARNED
            parts = np.minimum(deviations, _MOST) if known else deviations
            self._deviated += float(parts.sum()) * self.dispersion
            self.compared += len(rows)
            # Anscombe's root: small counts are far from normal.
            roots = 2 * (np.sqrt(counts + 0.375) - np.sqrt(expected + 0.375))
            relative = chance / np.maximum(expected, 0.5) * self.dispersion
            self.misfit[rows] += roots**2 / relative
            self.slot_rounds[rows] += 1
            self.now.kept[rows] += counts
            self.now.exact[rows] += counts
            self.now.looked[rows] += mass
            self.now.covered[rows] += mass
            self.seen.add(task.round, rows[counts > 0])
        if peel.complete:
            listed = self._with_rows(peel.keys)
            self._take_table(task, named, listed, peel.counts, mass)
        self.masses.append(mass)

    def _with_rows(self, keys: Uint64s) -> Counts:
        """Return the rows of keys; new ones are observed by the epoch's sweeps, with zero."""
        before = len(self.index)
        rows = self.index.add(keys)
        more = len(self.index) - before
        if not more:
            return rows
        places = slice_places(self.plan.seed, self.index.keys[before:])
        self.places = np.concatenate([self.places, places])
        self.now = self.now.with_more(more)
        self.misfit = np.pad(self.misfit, (0, more))
        self.slot_rounds = np.pad(self.slot_rounds, (0, more))
        self.tainted = np.pad(self.tainted, (0, more))
        if self._sweeps:
            starts, widths, looked, covered = map(np.array, zip(*self._sweeps, strict=True))
            turned = (places[:, None] - starts.astype(np.uint64)) % np.uint64(WHOLE)
            inside = turned < widths.astype(np.uint64)
            # Added up one after the other, as for keys that were known all along.
            self.now.looked[before:] = np.cumsum(np.where(inside, looked, 0.0), axis=1)[:, -1]
            self.now.covered[before:] = np.cumsum(np.where(inside, covered, 0.0), axis=1)[:, -1]
        return rows

    def _end_epoch(self) -> None:
        """Close the books of the rounds that were alike."""
        self.past.append((self.now, sum(self.masses)))
        self.tainted = self.suspect
        self.now, self.masses = Tally.empty(len(self.index)), []
        self.misfit, self.slot_rounds = np.zeros(len(self.index)), 0 * self.slot_rounds
        self._sweeps = []

    def _resolved(
        self, reading: Reading, slots: SlotSketch, named: Counts, mass: float
    ) -> tuple[Counts, Counts, Estimates]:
        """Return which keys' residues are clear, the counts that they mean, and the expected.

        A residue is clear if all counts that are possible in a round of this mass have others.
        """
        assert reading.slot_sum is not None  # noqa: S101  # of a method with slots
        rows, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        classes = [each for each in slots.classes if each.bits and each.items]
        for each, residues, keys in zip(
            classes, reading.slot_sum.arrays[1:], slots.split(named), strict=True
        ):
            modulus = float(1 << each.bits)
            expected = self.now.rates[keys] * mass
            variance = spread(expected, self.now.looked[keys], mass, self.dispersion)
            low, high = window(expected, variance)
            high = np.minimum(high, mass)
            middle = np.floor((low + high + 1 - modulus) / 2)  # as far on both sides
            low_value = np.clip(middle, 0.0, max(mass + 1 - modulus, 0.0))
            found = low_value + (residues.astype(np.float64) - low_value) % modulus
            clear = (high - low < modulus) & (found <= mass)
            counts.append(found[clear].astype(np.int64))
            rows.append(keys[clear])
        found_rows = np.concatenate(rows)
        return found_rows, np.concatenate(counts), self.now.rates[found_rows] * mass

    def _take_table(
        self, task: RoundTask, named: Counts, listed: Counts, values: Counts, mass: float
    ) -> None:
        t, now = task.sampling_threshold, self.now
        inside = _held(task.slice, self.places)
        inside[named] = False
        counts = np.zeros(len(self.index), np.int64)
        counts[listed] = values
        unit = 1.0 if self._sampling == "binomial" else t  # of what the table counts
        now.kept[inside] += np.rint(counts[inside] / unit).astype(np.int64)
        now.looked[inside] += mass / t
        if t == 1:
            now.exact[inside] += counts[inside]
            now.covered[inside] += mass
        else:
            scaled = counts[inside] * (t / unit)
            now.guessed[inside] += scaled
            now.variances[inside] += sampling_variance(t, self._sampling) * scaled
        start, width = (task.slice.start, task.slice.width) if task.slice else (0, WHOLE)
        self._sweeps.append(_Sweep(start, width, mass / t, mass if t == 1 else 0.0))
        self.seen.add(task.round, np.flatnonzero(counts))

    def listed(self, failed: FailedRounds) -> Listed:
        """Estimate every key that was seen.

        What was counted is exact. Rounds in which a key was not counted are taken to be like those
        of the same epoch in which it was ("scale"), or count for what was sampled in them
        ("zero"). For a key whose slots disagree with what was expected of them it is always the
        latter, with an error as large as what the other would have added.
        """
        scale, suspect = failed == "scale", self.suspect
        totals, variances = self.now.totals(self.mass, self.dispersion, ~suspect & scale)
        filled, _ = self.now.totals(self.mass, self.dispersion, True)
        variances = variances + np.where(suspect & scale, (filled - totals) ** 2, 0.0)
        before, spread_ = self.before(scale)
        return Listed(
            self.plan, self.keys, totals + before, variances + spread_, self.seen, suspect
        )


def _held(part: Slice | None, places: Uint64s) -> Mask:
    return np.ones(len(places), bool) if part is None else part.holds(places)


def _suspect(misfit: Estimates, rounds: Counts) -> Mask:
    freedom = np.maximum(rounds, 1)
    ratio = np.cbrt(misfit / freedom)  # Wilson and Hilferty's normal of a chi-square
    normal = (ratio - (1 - 2 / (9 * freedom))) / np.sqrt(2 / (9 * freedom))
    found: Mask = (rounds >= _SUSPECT_ROUNDS) & (normal > _SUSPECT)
    return found
