"""Figure 2: F1 against the number of rounds, C = 10,000, M = 10,000, τ = 100 and 200.

    python -m experiments fig2         1 minute on 2 cores
The paper's text says τ = 200, its caption τ = 100: both are drawn. Expect shared count-median to
fall from 0.93 to 0.32 (τ = 100), the IBLTs to stay above 0.9, fresh count-median above 0.97.
"""

from pathlib import Path

from matplotlib import pyplot as plt

from experiments.cells import ROUNDS, Results
from experiments.curves import Area, Point, points
from experiments.drawing import draw_curves, save, write_csv


def figure(results: Results, out: Path, runs: int, workers: int, caption: str) -> list[Point]:
    """Draw the figure and write its data."""
    area = Area((10_000,), max(ROUNDS), runs, thresholds=(100, 200))
    found = points(results, area, ROUNDS, workers)
    write_csv(out / "fig2.csv", found)
    _, both = plt.subplots(1, 2, figsize=(11, 5), sharey=True)
    for axes, threshold in zip(both, (100, 200), strict=True):
        draw_curves(axes, [p for p in found if p.threshold == threshold], lambda p: p.rounds)
        axes.set_title(f"τ = {threshold}", fontsize=10)
        axes.set_xlabel("R, rounds")
    both[0].set_ylabel("F1")
    both[0].legend(fontsize=7, loc="lower left")
    save(out / "fig2", "Figure 2: C = 10,000 words, M = 10,000", caption)
    return found
