"""Figure 3: adaptive against the best fixed t, τ = 50, M = 10,000, R = 30.

    python -m experiments fig3         20 seconds on 2 cores, less after fig1
The paper's caption says C = 5,000, its text all C: against R at C = 5,000 on the left, against C on
the right. Expect adaptive within 0.03 of the best of eight fixed t, mostly.
"""

from pathlib import Path

from matplotlib import pyplot as plt

from experiments.cells import ROUNDS, Results
from experiments.curves import Area, Point, points
from experiments.drawing import draw_curves, save, write_csv
from experiments.fig1 import SIZES

CURVES = ("IBLT, adaptive", "IBLT, best fixed t", "IBLT, fixed sampling", "compact, adaptive")


def figure(results: Results, out: Path, runs: int, workers: int, caption: str) -> list[Point]:
    """Draw the figure and write its data."""
    over_rounds = points(results, Area((5_000,), max(ROUNDS), runs), ROUNDS, workers, CURVES)
    over_sizes = points(results, Area(SIZES, 30, runs), (30,), workers, CURVES)
    write_csv(out / "fig3.csv", [*over_rounds, *over_sizes])
    _, (left, right) = plt.subplots(1, 2, figsize=(11, 5), sharey=True)
    draw_curves(left, over_rounds, lambda point: point.rounds)
    draw_curves(right, over_sizes, lambda point: point.words)
    left.set_xlabel("R, rounds (C = 5,000)")
    right.set_xlabel("C, words of 16 bits (R = 30)")
    right.set_xscale("log")
    left.set_ylabel("F1")
    right.legend(fontsize=7)
    save(out / "fig3", "Figure 3: adaptive against the best fixed t, τ = 50, M = 10,000", caption)
    return [*over_rounds, *over_sizes]
