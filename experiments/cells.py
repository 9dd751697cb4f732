"""Cells: one method, one size, one run. Computed in any order, by any number of workers, once.

A cell gives the F1 of every number of rounds and every threshold: rounds of a longer run serve
the shorter ones, and one sketch serves all thresholds. Everything random follows from the cell.
"""

import json
import multiprocessing
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

from experiments.methods import METHODS, Method
from experiments.words import DOMAIN, draw, load
from linsketch.arrays import Mask

ROUNDS = (10, 30, 50, 100)
THRESHOLDS = (20, 50, 100, 200)


@dataclass(frozen=True)
class Cell:
    """Where in the grid: the method (a place in METHODS), M, C, and the number of the run."""

    method: int
    mean: int
    words: int
    run: int
    rounds: int
    threshold: int  # 0: all of them, for methods that do not depend on it
    items_per_user: int = 1
    changes_after: int = 0  # rounds after which the words change places; 0: never


Scores = dict[tuple[int, int], float]
"""{(rounds, threshold): F1}."""


def f1(found: Mask, heavy: Mask) -> float:
    """Return the F1 score; 1 if there is nothing to find and nothing found."""
    both, all_ = int((found & heavy).sum()), int(found.sum() + heavy.sum())
    return 2 * both / all_ if all_ else 1.0


def compute(words_file: str, cell: Cell) -> Scores:
    """Run a cell."""
    method = METHODS[cell.method]
    drawn = draw(words_file, cell.mean, cell.run, cell.items_per_user, cell.changes_after)
    rounds = drawn[: cell.rounds]
    thresholds = (cell.threshold,) if cell.threshold else THRESHOLDS
    truth = np.zeros(len(DOMAIN), np.int64)
    scores: Scores = {}
    estimates = method.run(rounds, cell.mean, cell.words, cell.threshold)
    for number, (data, estimate) in enumerate(zip(rounds, estimates, strict=True), 1):
        truth += data.histogram
        if number in ROUNDS:
            for threshold in thresholds:
                scores[number, threshold] = f1(estimate >= threshold, truth >= threshold)
    return scores


def cells_of(
    method: int,
    means: Iterable[int],
    sizes: Iterable[int],
    runs: int,
    rounds: int,
    thresholds: Iterable[int] = THRESHOLDS,
    items_per_user: int = 1,
    changes_after: int = 0,
) -> Iterator[Cell]:
    """Return the cells of a method over a grid."""
    each = tuple(thresholds) if METHODS[method].per_threshold else (0,)
    for mean in means:
        for run in range(runs):
            for words in sizes:
                for threshold in each:
                    yield Cell(
                        method, mean, words, run, rounds, threshold, items_per_user, changes_after
                    )


class Results:
    """Finished cells, in a file that grows line by line: an interrupted grid goes on there."""

    def __init__(self, folder: Path, words_file: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.words_file = words_file
        self.path = folder / f"cells-{load(words_file).digest}.jsonl"
        self._known: dict[str, Scores] = {}
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                self._learn(line)

    def _learn(self, line: str) -> None:
        try:
            name, scores = json.loads(line)
        except ValueError:  # the process was killed while it wrote this line
            return
        self._known[name] = {(rounds, threshold): score for rounds, threshold, score in scores}

    @staticmethod
    def _name(cell: Cell) -> str:
        method: Method = METHODS[cell.method]
        values = asdict(cell)
        if not cell.changes_after:  # as cells were named before there were such
            del values["changes_after"]
        return json.dumps({**values, "method": repr(method)}, sort_keys=True)

    def scores(self, cell: Cell) -> Scores:
        """Return a finished cell's scores."""
        return self._known[self._name(cell)]

    def finish(self, cells: Iterable[Cell], workers: int) -> None:
        """Compute the cells that are not there yet."""
        wanted = {self._name(cell): cell for cell in cells}
        # Cells of one population side by side, so that a worker draws it once.
        order = sorted(wanted.items(), key=lambda item: (item[1].mean, item[1].run, item[0]))
        missing = [cell for name, cell in order if name not in self._known]
        if not missing:
            return
        columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
        with (
            self.path.open("a", encoding="utf-8") as file,
            multiprocessing.Pool(workers) as pool,
            Progress(*columns, disable=not sys.stderr.isatty()) as bar,
        ):
            task = bar.add_task("cells", total=len(missing))
            jobs = ((self.words_file, cell) for cell in missing)
            for cell, scores in pool.imap_unordered(_job, jobs, chunksize=4):
                rows: list[Any] = [[*key, score] for key, score in scores.items()]
                line = json.dumps([self._name(cell), rows])
                file.write(line + "\n")
                file.flush()
                self._learn(line)
                bar.advance(task)
            os.fsync(file.fileno())


def _job(job: tuple[str, Cell]) -> tuple[Cell, Scores]:
    return job[1], compute(*job)
