"""Counts out of count sketches, for items that one asks about."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsketch.arrays import Estimates
from linsketch.errors import PlanningError
from linsketch.history import Estimate, Round
from linsketch.methods.base import largest_first, planned
from linsketch.plan import Plan, Scope
from linsketch.rings import RingVector
from linsketch.sketch.countsketch import CountSketch
from linsketch.sketch.hybrid import HybridSketch
from linsketch.validation import whole_number

MOST_ROWS, MOST_WIDTH = 1000, 2**32 - 1


@dataclass(frozen=True, kw_only=True)
class WithSketch:
    """A method with the sketch of Algorithm 3 beside it, or without one (0 rows)."""

    sketch_rows: int = planned(0)
    sketch_width: int = planned(0)

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]  # of the method
        whole_number(self, "sketch_rows", 0, MOST_ROWS)
        whole_number(self, "sketch_width", 0, MOST_WIDTH)

    def check_plan(self, plan: Plan) -> None:
        """Raise unless the sketch has rows and a width, or neither."""
        if bool(self.sketch_rows) != bool(self.sketch_width):
            raise PlanningError("A plan's sketch has rows and a width, or neither.")

    def hybrid(self, scope: Scope) -> HybridSketch:
        """Return the sketch of all rounds."""
        rows, width = self.sketch_rows, self.sketch_width
        return HybridSketch(scope.keys, rows, width, scope.items_per_round, scope.seed)

    def sketch(self, scope: Scope, round_: int) -> CountSketch | None:
        """Return the sketch of a round."""
        return self.hybrid(scope).for_round(round_) if self.sketch_rows else None

    def sketched(
        self, scope: Scope, rounds: Sequence[Round], items: Iterable[Any]
    ) -> list[Estimate]:
        """Estimate items: the median over rows of the sums over rounds."""
        wanted, sums = list(items), sketch_sums(rounds)
        if not wanted or not sums:
            return []
        hybrid = self.hybrid(scope)
        values = hybrid.estimate_keys(sums, scope.keys.encode(wanted).keys)
        squares = sum(squared(hybrid.for_round(r), vector) for r, vector in sums.items())
        stderr = row_error(squares, self.sketch_rows, self.sketch_width)
        return as_estimates(wanted, values, stderr, rounds)

    def sketch_notes(self) -> dict[str, str]:
        """Say how large the sketch is."""
        text = f"{self.sketch_rows} rows of {self.sketch_width:,} counters"
        return {"sketch": text} if self.sketch_rows else {}


def sketch_sums(rounds: Sequence[Round]) -> dict[int, RingVector]:
    """Return the sum of the sketches of each round that has one, all groups together."""
    return {
        closed.task.round: vectors[0].ring.sum(vectors)
        for closed in rounds
        if (vectors := [r.sketch_sum for r in closed.readings if r.sketch_sum])
    }


def squared(sketch: CountSketch, vector: RingVector) -> float:
    """Estimate F2, the sum of squared counts: a row's squared counters add up to it on average."""
    return float((sketch.counters(vector).astype(np.float64) ** 2).sum()) / sketch.rows


def row_error(squares: float, rows: int, width: int) -> float:
    """Return the standard error of an estimate.

    A row's error has the variance F2 / width; the median of b independent rows has about
    pi / (2 b) of it.
    """
    efficiency = math.pi / 2 if rows > 1 else 1.0
    return math.sqrt(squares / width * efficiency / rows)


def as_estimates(
    items: Sequence[Any], values: Estimates, stderr: float, rounds: Sequence[Round]
) -> list[Estimate]:
    """Return estimates, the largest first."""
    numbers = tuple(closed.task.round for closed in rounds)
    return largest_first(
        Estimate(item, float(value), stderr, numbers)
        for item, value in zip(items, values, strict=True)
    )
