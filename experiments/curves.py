"""Curves: means and spreads over runs; where a name stands for several methods, the best."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, pstdev

from experiments.cells import Results, cells_of
from experiments.methods import METHODS


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
class Setting:
    """What a figure holds fixed."""

    sizes: Sequence[int]
    rounds: int  # of the run
    runs: int = 5
    means: Sequence[int] = (10_000,)
    thresholds: Sequence[int] = (50,)
    items_per_user: int = 1
    changes_after: int = 0


def names(curves: Iterable[str] | None = None) -> list[str]:
    """Return the curves in the order of METHODS."""
    known = list(dict.fromkeys(method.name for method in METHODS))
    return [name for name in known if curves is None or name in set(curves)]


def points(
    results: Results,
    setting: Setting,
    at_rounds: Sequence[int],
    workers: int,
    curves: Iterable[str] | None = None,
) -> list[Point]:
    """Compute what is missing and return the points of all curves."""
    wanted = names(curves)
    methods = [number for number, method in enumerate(METHODS) if method.name in wanted]

    def cells(method: int, means: Sequence[int], sizes: Sequence[int], taus: Sequence[int]) -> list:  # type: ignore[type-arg]
        return list(
            cells_of(
                method,
                means,
                sizes,
                setting.runs,
                setting.rounds,
                taus,
                setting.items_per_user,
                setting.changes_after,
            )
        )

    everything = [
        cell
        for method in methods
        for cell in cells(method, setting.means, setting.sizes, setting.thresholds)
    ]
    results.finish(everything, workers)
    found = []
    for name in wanted:
        for mean_items in setting.means:
            for words in setting.sizes:
                for rounds in at_rounds:
                    for threshold in setting.thresholds:
                        best = max(
                            (
                                [
                                    results.scores(cell)[rounds, threshold]
                                    for cell in cells(number, [mean_items], [words], [threshold])
                                ]
                                for number in methods
                                if METHODS[number].name == name
                            ),
                            key=mean,
                        )
                        found.append(
                            Point(
                                name, rounds, threshold, mean_items, words, mean(best), pstdev(best)
                            )
                        )
    return found
