"""Drift: after half of the rounds the words change places. R = 30, τ = 50, M = 10,000.

    python -m experiments drift    a minute on 2 cores
Expect slots and slices never below the compact adaptive method: at C = 1,000, 0.92 and 0.85.
"""

from pathlib import Path

from matplotlib import pyplot as plt

from experiments.cells import Results
from experiments.curves import Point, Setting, points
from experiments.drawing import draw_curves, save, write_csv

SIZES = (500, 700, 1_000, 2_000, 5_000)
CURVES = ("IBLT, adaptive", "compact, adaptive", "slots and slices")


def drifting(results: Results, runs: int, workers: int) -> list[Point]:
    """Return the points of the methods that adapt."""
    return points(results, Setting(SIZES, 30, runs, changes_after=15), (30,), workers, CURVES)


def figure(results: Results, out: Path, runs: int, workers: int, caption: str) -> list[Point]:
    """Draw the figure and write its data."""
    found = drifting(results, runs, workers)
    write_csv(out / "drift.csv", found)
    _, axes = plt.subplots(figsize=(8, 5.5))
    draw_curves(axes, found, lambda point: point.words)
    axes.set_xscale("log")
    axes.set_xlabel("C, words of 16 bits a user and round")
    axes.set_ylabel("F1")
    axes.legend(fontsize=7)
    save(out / "drift", "The words change places after 15 of 30 rounds, τ = 50", caption)
    return found
