"""Cells: one entry, one size, one run. Computed in any order, by any number of workers, once.

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

from experiments.drawn import DOMAIN, draw, load
from experiments.methods import ENTRIES
from linsketch.arrays import Estimates, Mask
from linsketch.errors import PlanningError

ROUNDS = (10, 30, 50, 100)
THRESHOLDS = (20, 50, 100, 200)


@dataclass(frozen=True)
class Cell:
    """Where in the grid: the entry (its place in ENTRIES), M, C, and the number of the run."""

    entry: int
    mean: int
    words: int
    run: int
    rounds: int
    threshold: int  # 0: all of them, for entries that do not depend on it
    items_per_user: int = 1
    changes_after: int = 0  # rounds after which the words change places; 0: never


Scores = dict[tuple[int, int], float]
"""{(rounds, threshold): F1}."""


def f1(found: Mask, heavy: Mask) -> float:
    """Return the F1 score; 1 if there is nothing to find and nothing found."""
    both, all_ = int((found & heavy).sum()), int(found.sum() + heavy.sum())
    return 2 * both / all_ if all_ else 1.0


def compute(file: str, cell: Cell) -> Scores:
    """Run a cell."""
    entry = ENTRIES[cell.entry]
    drawn = draw(file, cell.mean, cell.run, cell.items_per_user, cell.changes_after)[: cell.rounds]
    answers: dict[int, Estimates] = {}
    try:
        plan = entry.plan(cell.rounds, cell.mean, cell.words, cell.threshold, cell.items_per_user)
    except PlanningError:
        pass  # the words pay for nothing, so nothing is found
    else:
        answers.update(entry.run(plan, drawn, ROUNDS))
    truth, nothing = np.zeros(len(DOMAIN), np.int64), np.zeros(len(DOMAIN))
    scores: Scores = {}
    for number, data in enumerate(drawn, 1):
        truth += data.histogram()
        if number in ROUNDS:
            answer = answers.get(number, nothing)
            for threshold in (cell.threshold,) if cell.threshold else THRESHOLDS:
                scores[number, threshold] = f1(answer >= threshold, truth >= threshold)
    return scores


def cells_of(
    entry: int,
    means: Iterable[int],
    sizes: Iterable[int],
    runs: int,
    rounds: int,
    thresholds: Iterable[int] = THRESHOLDS,
    items_per_user: int = 1,
    changes_after: int = 0,
) -> Iterator[Cell]:
    """Return the cells of an entry over a grid."""
    each = tuple(thresholds) if ENTRIES[entry].per_threshold else (0,)
    for mean in means:
        for run in range(runs):
            for words in sizes:
                for threshold in each:
                    yield Cell(
                        entry, mean, words, run, rounds, threshold, items_per_user, changes_after
                    )


class Results:
    """Finished cells, in a file that grows line by line: an interrupted grid goes on there."""

    def __init__(self, folder: Path, file: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file = file
        self.path = folder / f"cells-{load(file).digest}.jsonl"
        self._known: dict[str, Scores] = {}
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                self._learn(line)

    def _learn(self, line: str) -> None:
        """Take a finished cell from a line of the file."""
        try:
            name, scores = json.loads(line)
        except ValueError:  # the process was killed while it wrote this line
            return
        self._known[name] = {(rounds, threshold): score for rounds, threshold, score in scores}

    @staticmethod
    def _name(cell: Cell) -> str:
        """Name a cell by all that its scores depend on."""
        return json.dumps({**asdict(cell), "entry": repr(ENTRIES[cell.entry])}, sort_keys=True)

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
            jobs = ((self.file, cell) for cell in missing)
            for cell, scores in pool.imap_unordered(_job, jobs, chunksize=4):
                rows: list[Any] = [[*key, score] for key, score in scores.items()]
                line = json.dumps([self._name(cell), rows])
                file.write(line + "\n")
                file.flush()
                self._learn(line)
                bar.advance(task)
            os.fsync(file.fileno())


def _job(job: tuple[str, Cell]) -> tuple[Cell, Scores]:
    """Compute a cell in a worker."""
    return job[1], compute(*job)
