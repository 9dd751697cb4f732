"""Figure 4, not in the paper: threshold against binomial sampling, 1 and 50 items a user.

    python -m experiments fig4         30 seconds on 2 cores
With one item a user both sample alike, and binomial sampling has the smaller counts to send; with
many, threshold sampling keeps what a user has often. R = 30, τ = 50, M = 10,000.
"""

from pathlib import Path

from matplotlib import pyplot as plt

from experiments.cells import Results
from experiments.curves import Area, Point, points
from experiments.drawing import draw_curves, save, write_csv

SIZES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000)
CURVES = ("compact, adaptive", "compact, adaptive, binomial")
ITEMS = (1, 50)


def figure(results: Results, out: Path, runs: int, workers: int, caption: str) -> list[Point]:
    """Draw the figure and write its data."""
    everything = []
    _, both = plt.subplots(1, 2, figsize=(11, 5), sharey=True)
    for axes, items in zip(both, ITEMS, strict=True):
        area = Area(SIZES, 30, runs, items_per_user=items)
        found = points(results, area, (30,), workers, CURVES)
        write_csv(out / f"fig4-{items}.csv", found)
        draw_curves(axes, found, lambda point: point.words)
        axes.set_xscale("log")
        axes.set_title(f"{items} item{'s' * (items > 1)} a user", fontsize=10)
        axes.set_xlabel("C, words of 16 bits a user and round")
        everything += found
    both[0].set_ylabel("F1")
    both[0].legend(fontsize=7)
    save(out / "fig4", "Figure 4: threshold against binomial sampling", caption)
    return everything
