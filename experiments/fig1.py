"""Figure 1: F1 against communication, R = 30, τ = 50, M = 10,000.

    python -m experiments fig1    2 minutes on 2 cores
Expect, at C = 2,000: count-median 0.04 (shared) and 0.10 (fresh), IBLT adaptive 0.83, compact 0.91.
"""

from pathlib import Path

from experiments.cells import Results
from experiments.curves import Area, Point, points
from experiments.drawing import draw_words

SIZES = (100, 200, 500, 1_000, 2_000, 5_000, 8_000, 10_000, 20_000, 30_000, 40_000)


def figure(results: Results, out: Path, runs: int, workers: int, caption: str) -> list[Point]:
    """Draw the figure and write its data."""
    found = points(results, Area(SIZES, 30, runs), (30,), workers)
    draw_words(out / "fig1", found, "Figure 1: R = 30, τ = 50, M = 10,000", caption)
    return found
