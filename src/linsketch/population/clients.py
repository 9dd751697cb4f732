"""Users one by one, each with a histogram of their own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linsketch.client import report
from linsketch.plan import Plan
from linsketch.rings import Contribution
from linsketch.round import RoundTask


@dataclass(frozen=True)
class Clients:
    """A cohort of clients that report as real ones do, with the system's randomness."""

    histograms: Sequence[Mapping[Any, int]]

    def contributions(self, plan: Plan, task: RoundTask) -> Iterator[Contribution]:
        """Return each client's vector."""
        return (Contribution(report(own, plan, task).vector) for own in self.histograms)
