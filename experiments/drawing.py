"""Figures as PNG and SVG, their data as CSV."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # after the backend is chosen
from matplotlib.axes import Axes

from experiments.curves import Point, names

MARKS = "osv^D<>Ph*"


def write_csv(path: Path, found: Sequence[Point]) -> None:
    """Write points, one a line."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(asdict(found[0])))
        writer.writeheader()
        writer.writerows(asdict(point) for point in found)


def draw_words(path: Path, found: Sequence[Point], title: str, caption: str) -> None:
    """Draw F1 against words, and write the data beside it."""
    write_csv(path.with_suffix(".csv"), found)
    _, axes = plt.subplots(figsize=(8, 5.5))
    draw_curves(axes, found, lambda point: point.words)
    axes.set_xscale("log")
    axes.set_xlabel("C, words of 16 bits a user and round")
    axes.set_ylabel("F1")
    axes.legend(fontsize=7)
    save(path, title, caption)


def draw_curves(
    axes: Axes, found: Sequence[Point], x: Callable[[Point], float], *, bars: bool = True
) -> None:
    """Draw one line a curve, with error bars of three standard deviations (as in the paper)."""
    for number, name in enumerate(names()):
        line = [point for point in found if point.curve == name]
        if line:
            axes.errorbar(
                [x(point) for point in line],
                [point.f1 for point in line],
                [3 * point.deviation for point in line] if bars else None,
                label=name,
                color=f"C{number}" if number < 10 else "black",
                marker=MARKS[number % len(MARKS)],
                markersize=4,
                linewidth=1.2,
                capsize=2,
            )
    axes.set_ylim(0, 1.02)
    axes.grid(alpha=0.3)


def save(path: Path, title: str, caption: str) -> None:
    """Save the current figure under both names."""
    figure = plt.gcf()
    figure.suptitle(title, fontsize=11)
    figure.text(0.5, 0.005, caption, ha="center", fontsize=7, color="0.35", wrap=True)
    figure.tight_layout(rect=(0, 0.03, 1, 0.97))
    for suffix in (".png", ".svg"):
        figure.savefig(
            path.with_suffix(suffix), dpi=150, metadata=None if suffix == ".png" else {"Date": None}
        )
    plt.close(figure)
