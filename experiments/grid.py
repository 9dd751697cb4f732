"""The full grid of section 7: R, τ, M and C, as Parquet and a page of small multiples.

python -m experiments grid    goes on where it was interrupted; 11 minutes on 2 cores without
slots and slices, whose cells of 100 rounds take longer (the whole was not measured)
"""

from dataclasses import asdict
from pathlib import Path

import polars as pl
from matplotlib import pyplot as plt

from experiments.cells import ROUNDS, THRESHOLDS, Results
from experiments.curves import Area, Point, points
from experiments.drawing import draw_curves, save
from experiments.fig1 import SIZES

MEANS = (1_000, 2_000, 5_000, 10_000)


def figure(results: Results, out: Path, runs: int, workers: int, caption: str) -> list[Point]:
    """Compute the grid; write it, and draw a page for each M."""
    area = Area(SIZES, max(ROUNDS), runs, MEANS, THRESHOLDS)
    found = points(results, area, ROUNDS, workers)
    pl.DataFrame([asdict(point) for point in found]).write_parquet(out / "grid.parquet")
    for mean_items in MEANS:
        _, all_axes = plt.subplots(len(ROUNDS), len(THRESHOLDS), figsize=(15, 13), sharey=True)
        for row, rounds in zip(all_axes, ROUNDS, strict=True):
            for axes, threshold in zip(row, THRESHOLDS, strict=True):
                own = [
                    point
                    for point in found
                    if (point.mean_items, point.rounds, point.threshold)
                    == (mean_items, rounds, threshold)
                ]
                draw_curves(axes, own, lambda point: point.words, bars=False)
                axes.set_xscale("log")
                axes.set_title(f"R = {rounds}, τ = {threshold}", fontsize=9)
        all_axes[0][0].legend(fontsize=6)
        save(out / f"grid-{mean_items}", f"M = {mean_items:,}: F1 against C in words", caption)
    return found
