"""Curves: means and spreads over runs; where a name stands for several entries, the best."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import mean, pstdev

from experiments.cells import Cell, Results, cells_of
from experiments.methods import ENTRIES


@dataclass(frozen=True)
class Point:
    """One point of a curve."""

    curve: str
    rounds: int
    threshold: int
    mean_items: int
    words: int
    f1: float
    deviation: float


@dataclass(frozen=True)
class Area:
    """The part of the grid that a figure draws."""

    sizes: Sequence[int]
    rounds: int  # of the run
    runs: int = 5
    means: Sequence[int] = (10_000,)
    thresholds: Sequence[int] = (50,)
    items_per_user: int = 1
    changes_after: int = 0

    def cells(
        self, entry: int, means: Sequence[int], sizes: Sequence[int], thresholds: Sequence[int]
    ) -> Iterator[Cell]:
        """Return the cells of an entry for some means, sizes and thresholds."""
        same = (self.items_per_user, self.changes_after)
        return cells_of(entry, means, sizes, self.runs, self.rounds, thresholds, *same)


def names(curves: Iterable[str] | None = None) -> list[str]:
    """Return the curves in the order of ENTRIES."""
    known = list(dict.fromkeys(entry.name for entry in ENTRIES))
    return [name for name in known if curves is None or name in set(curves)]


def points(
    results: Results,
    area: Area,
    at_rounds: Sequence[int],
    workers: int,
    curves: Iterable[str] | None = None,
) -> list[Point]:
    """Compute what is missing and return the points of all curves."""
    numbers: dict[str, list[int]] = {name: [] for name in names(curves)}
    for number, entry in enumerate(ENTRIES):
        if entry.name in numbers:
            numbers[entry.name].append(number)
    everything = (
        cell
        for entries in numbers.values()
        for entry in entries
        for cell in area.cells(entry, area.means, area.sizes, area.thresholds)
    )
    results.finish(everything, workers)
    found = []
    for name, mean_items, words, rounds, threshold in product(
        numbers, area.means, area.sizes, at_rounds, area.thresholds
    ):
        scores = (
            [
                results.scores(cell)[rounds, threshold]
                for cell in area.cells(entry, [mean_items], [words], [threshold])
            ]
            for entry in numbers[name]
        )
        best = max(scores, key=mean)
        point = Point(name, rounds, threshold, mean_items, words, mean(best), pstdev(best))
        found.append(point)
    return found
