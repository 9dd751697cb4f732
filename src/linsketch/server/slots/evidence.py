"""What the closed rounds say of every key that was ever seen: a pure function of them.

A key is *observed* in a round if a slot counted it, or if it lay in the round's slice and the
table decoded. An observation looks at a mass: that of the round, over t where occurrences were
sampled. Counts over mass are rates. Rounds are taken to be alike within an *epoch*; when the slots
of a round disagree all together with what was expected, another epoch begins, and what was
unobserved in the old one is filled up with the old rates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linsketch.arrays import Counts, Estimates, Mask, Words
from linsketch.keys import distinct_keys
from linsketch.plan import Plan, sampling_variance
from linsketch.server.recover import Round
from linsketch.sketch.slots import Slots
from linsketch.task import slice_places, within

TAIL = math.log(1e9)  # a residue is resolved wrongly with a probability of at most 2e-9
_SUSPECT = 4.75  # standard deviations of a normal: once in a million
_SUSPECT_ROUNDS = 3  # of slots, that it takes
_DRIFT = 3.0  # times the usual misfit, over all slots of a round
_MOST = 25.0  # that one slot adds to it: no single one makes a drift
_SLOTS = 16  # that it takes to tell
LEARNED = 64  # slots, all rounds together, after which the usual misfit is known
_TINY = 1e-12


@dataclass(frozen=True)
class Tally:
    """What an epoch says, one entry a key."""

    kept: Counts  # occurrences that were seen, sampled or not
    looked: Estimates  # mass that was looked at, over t where it was sampled
    exact: Counts  # occurrences in rounds that counted all of them
    covered: Estimates  # mass of those rounds
    guessed: Estimates  # unbiased sums of sampled rounds
    variances: Estimates  # of these

    @classmethod
    def empty(cls, keys: int) -> "Tally":
        """Return the tally of no rounds."""
        whole, real = np.zeros((2, keys), np.int64), np.zeros((4, keys))
        return cls(whole[0], real[0], whole[1], real[1], real[2], real[3])

    @property
    def rates(self) -> Estimates:
        """Occurrences a unit of mass."""
        rates: Estimates = self.kept / np.maximum(self.looked, _TINY)
        return rates

    def totals(
        self, mass: float, dispersion: float, fill: Mask | bool
    ) -> tuple[Estimates, Estimates]:
        """Return counts over rounds of this mass in all, and their variances.

        Where `fill` is asked for, what was not counted is filled up at the key's rate; else
        sampled rounds count for themselves, and others as zero.
        """
        rest = np.maximum(mass - self.covered, 0.0)
        filled = self.rates * rest
        spread_ = dispersion * filled * (1 + rest / np.maximum(self.looked, _TINY))
        totals = self.exact.astype(np.float64) + np.where(fill, filled, self.guessed)
        variances: Estimates = np.where(fill, spread_, self.variances)
        return totals, variances


@dataclass(frozen=True)
class Evidence:
    """Of all keys that were seen: the epoch that lasts, and those before."""

    keys: Words
    now: Tally
    masses: Estimates  # of the epoch's rounds
    past: list[tuple[Tally, float]]  # earlier epochs, and their masses
    misfit: Estimates  # squared deviations of slots from what was expected, over their variance
    slot_rounds: Counts
    tainted: Mask  # keys that were suspect in an earlier epoch
    dispersion: float  # how much more than chance the slots deviate
    compared: int  # slots that this was taken from
    seen: list[tuple[int, Counts]]  # rounds, and the keys that showed in them

    @property
    def mean_mass(self) -> float:
        """Items in a round, on average."""
        return float(self.masses.mean()) if len(self.masses) else 0.0

    @cached_property
    def suspect(self) -> Mask:
        """Keys whose slots disagree with what was expected of them, all rounds together."""
        return self.tainted | _suspect(self.misfit, self.slot_rounds)

    def before(self, fill: bool = True) -> tuple[Estimates, Estimates]:
        """Return counts of the earlier epochs, and their variances."""
        totals, variances = np.zeros((2, len(self.keys)))
        for tally, mass in self.past:
            values, spread_ = tally.totals(mass, self.dispersion, fill)
            totals, variances = totals + values, variances + spread_
        return totals, variances


def _suspect(misfit: Estimates, rounds: Counts) -> Mask:
    freedom = np.maximum(rounds, 1)
    ratio = np.cbrt(misfit / freedom)  # Wilson and Hilferty's normal of a chi-square
    normal = (ratio - (1 - 2 / (9 * freedom))) / np.sqrt(2 / (9 * freedom))
    found: Mask = (rounds >= _SUSPECT_ROUNDS) & (normal > _SUSPECT)
    return found


def spread(expected: Estimates, looked: Estimates, mass: float, dispersion: float) -> Estimates:
    """Return the variance of a count around an expectation from a rate that is an estimate."""
    value: Estimates = (
        dispersion * np.maximum(expected, 0.5) * (1 + mass / np.maximum(looked, _TINY))
    )
    return value


def window(expected: Estimates, variance: Estimates) -> tuple[Estimates, Estimates]:
    """Return between which counts one lies, but for the tail (Bernstein)."""
    around = TAIL / 3 + np.sqrt(TAIL**2 / 9 + 2 * variance * TAIL)
    return np.maximum(np.floor(expected - around), 0.0), np.ceil(expected + around)


def evidence(plan: Plan, rounds: Sequence[Round]) -> Evidence:
    """Collect the evidence of closed rounds."""
    rounds = [closed for closed in rounds if closed.slot_sum is not None]
    parts = [Slots(plan.keys, plan.items_per_round, closed.task.slots) for closed in rounds]
    none = np.empty((0, plan.keys.limbs), np.uint64)
    listed = [closed.peels[0].keys if closed.peels[0].complete else none for closed in rounds]
    lists = [none, *(part.named for part in parts), *listed]
    keys, group = distinct_keys(np.concatenate(lists))  # once, not once a round
    rows = np.split(group, np.cumsum([len(each) for each in lists])[:-1])[1:]
    state = _State(plan, keys)
    for number, (closed, slots) in enumerate(zip(rounds, parts, strict=True)):
        state.take(closed, slots, rows[number], rows[len(rounds) + number])
    return state.evidence()


class _State:
    """Evidence in the making, round by round: residues are resolved by what is known before."""

    def __init__(self, plan: Plan, keys: Words) -> None:
        self.plan, self.keys = plan, keys
        self.places = slice_places(plan, keys)
        self.now = Tally.empty(len(keys))
        self.masses: list[float] = []
        self.past: list[tuple[Tally, float]] = []
        self.misfit, self.slot_rounds = np.zeros(len(keys)), np.zeros(len(keys), np.int64)
        self.tainted = np.zeros(len(keys), bool)
        self.deviated, self.compared = 0.0, 0  # over all epochs: people stay as they are
        self.seen: list[tuple[int, Counts]] = []

    @property
    def dispersion(self) -> float:
        return max(1.0, self.deviated / self.compared) if self.compared else 1.0

    def take(self, closed: Round, slots: Slots, named: Counts, listed: Counts) -> None:
        """Add a round: which keys its task named, and which its table listed."""
        assert closed.slot_sum is not None  # noqa: S101  # only such are taken
        mass = float(closed.slot_sum.arrays[0][0])
        if mass > closed.users * self.plan.items_per_user:  # somebody lies: nothing is believed
            return
        rows, counts, expected = self._resolved(closed, slots, named, mass)
        chance = spread(expected, self.now.looked[rows], mass, 1.0)
        deviations = (counts - expected) ** 2 / (chance * self.dispersion)
        together = float(np.minimum(deviations, _MOST).mean()) if len(rows) >= _SLOTS else 0.0
        if together > _DRIFT and self.compared >= LEARNED:
            self._end_epoch()
        else:
            known = self.compared >= LEARNED
            parts = np.minimum(deviations, _MOST) if known else deviations
            self.deviated += float(parts.sum()) * self.dispersion
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
            self.seen.append((closed.task.round, rows[counts > 0]))
        if closed.peels[0].complete:
            unnamed = np.ones(len(self.keys), bool)
            unnamed[named] = False
            self._take_table(closed, unnamed, listed, mass)
        self.masses.append(mass)

    def _end_epoch(self) -> None:
        """Close the books of the rounds that were alike."""
        self.past.append((self.now, sum(self.masses)))
        self.tainted |= _suspect(self.misfit, self.slot_rounds)
        self.now, self.masses = Tally.empty(len(self.keys)), []
        self.misfit, self.slot_rounds = np.zeros(len(self.keys)), 0 * self.slot_rounds

    def _resolved(
        self, closed: Round, slots: Slots, named: Counts, mass: float
    ) -> tuple[Counts, Counts, Estimates]:
        """Return which keys' residues are clear, the counts that they mean, and the expected.

        A residue is clear if all counts that are possible in a round of this mass have others.
        """
        assert closed.slot_sum is not None  # noqa: S101  # only such are taken
        rows, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        classes = [each for each in slots.classes if each.bits and each.items]
        for each, residues, keys in zip(
            classes, closed.slot_sum.arrays[1:], slots.split(named), strict=True
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

    def _take_table(self, closed: Round, unnamed: Mask, listed: Counts, mass: float) -> None:
        peel, t, now = closed.peels[0], closed.task.sampling_threshold, self.now
        inside = within(closed.task.slice, self.places) & unnamed
        counts = np.zeros(len(self.keys), np.int64)
        counts[listed] = peel.counts
        unit = 1.0 if self.plan.sampling == "binomial" else t  # of what the table counts
        now.kept[inside] += np.rint(counts[inside] / unit).astype(np.int64)
        now.looked[inside] += mass / t
        if t == 1:
            now.exact[inside] += counts[inside]
            now.covered[inside] += mass
        else:
            values = counts[inside] * (t / unit)
            now.guessed[inside] += values
            now.variances[inside] += sampling_variance(t, self.plan.sampling) * values
        self.seen.append((closed.task.round, np.flatnonzero(counts)))

    def evidence(self) -> Evidence:
        """Return what has come together."""
        return Evidence(
            keys=self.keys,
            now=self.now,
            masses=np.array(self.masses),
            past=self.past,
            misfit=self.misfit,
            slot_rounds=self.slot_rounds,
            tainted=self.tainted,
            dispersion=self.dispersion,
            compared=self.compared,
            seen=self.seen,
        )
