"""Drift: after half of the rounds the words change places. R = 30, τ = 50, M = 10,000.

    python -m experiments drift    a minute on 2 cores
Expect slots and slices never below the compact adaptive method: at C = 1,000, 0.97 and 0.83.
"""

from pathlib import Path

from experiments.cells import Results
from experiments.curves import Area, Point, points
from experiments.drawing import draw_words

SIZES = (500, 700, 1_000, 2_000, 5_000)
CURVES = ("IBLT, adaptive", "compact, adaptive", "slots and slices")


def drifting(results: Results, runs: int, workers: int) -> list[Point]:
    """Return the points of the methods that adapt."""
    return points(results, Area(SIZES, 30, runs, changes_after=15), (30,), workers, CURVES)


def figure(results: Results, out: Path, runs: int, workers: int, caption: str) -> list[Point]:
    """Draw the figure and write its data."""
    found = drifting(results, runs, workers)
    draw_words(
        out / "drift", found, "The words change places after 15 of 30 rounds, τ = 50", caption
    )
    return found
