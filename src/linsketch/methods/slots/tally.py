"""Counts and exposures of keys, and how far a count may be from what is expected."""

import math
from dataclasses import dataclass

import numpy as np

from linsketch.arrays import Counts, Estimates, Mask

TAIL = math.log(1e9)  # a residue is resolved wrongly with a probability of at most 2e-9
_TINY = 1e-12


@dataclass(frozen=True)
class Tally:
    """What an epoch says, one entry a key."""

    kept: Counts  # occurrences that were seen, sampled or not
    looked: Estimates  # exposure of these
    exact: Counts  # occurrences in rounds that counted all of them
    covered: Estimates  # mass of those rounds
    guessed: Estimates  # unbiased sums of sampled rounds
    variances: Estimates  # of these

    @classmethod
    def empty(cls, keys: int) -> "Tally":
        """Return the tally of no rounds."""
        whole, real = np.zeros((2, keys), np.int64), np.zeros((4, keys))
        return cls(whole[0], real[0], whole[1], real[1], real[2], real[3])

    def with_more(self, keys: int) -> "Tally":
        """Return the tally with keys that have not been observed."""
        return Tally(*(np.pad(array, (0, keys)) for array in vars(self).values()))

    @property
    def rates(self) -> Estimates:
        """Occurrences a unit of exposure."""
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


def spread(expected: Estimates, looked: Estimates, mass: float, dispersion: float) -> Estimates:
    """Return the variance of a count around an expectation from a rate that is an estimate."""
    value: Estimates = (
        dispersion * np.maximum(expected, 0.5) * (1 + mass / np.maximum(looked, _TINY))
    )
    return value


def window(expected: Estimates, variance: Estimates) -> tuple[Estimates, Estimates]:
    """Return between which counts one lies, with the tail's probability outside (Bernstein)."""
    around = TAIL / 3 + np.sqrt(TAIL**2 / 9 + 2 * variance * TAIL)
    return np.maximum(np.floor(expected - around), 0.0), np.ceil(expected + around)
