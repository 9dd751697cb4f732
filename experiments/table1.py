"""Table 1 made visible: words needed against R, n and τ, errors of histograms, time against d.

    python -m experiments table1       2 minutes on 2 cores
Expect words that stay flat in R at fixed n, fall with R at fixed N = nR, and grow with n and 1/τ
no faster than in proportion; errors that grow with √R (HybridSketch) and R (shared hashes); a
decoding time in proportion to d for count-median, and independent of d for the IBLT.
"""

import csv
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from experiments.cells import ROUNDS, THRESHOLDS, Results
from experiments.curves import Area, Point, points
from experiments.drawing import save
from experiments.drawn import DOMAIN, KEYS, draw
from experiments.grid import MEANS
from experiments.methods import HASHES
from experiments.results import words_for
from linsketch import IBLT, ROOT, CountSketch, HybridSketch, Seeds, TextKeys

SIZES = (50, 100, 140, 200, 280, 400, 560, 800, 1_100, 1_600, 2_200, 3_200, 5_000, 8_000, 14_000)
CURVES = ("IBLT, adaptive", "compact, adaptive")
LEVEL = 0.8
TOTAL = 100_000  # N = nR, where it is held fixed
Line = tuple[str, str, float, float, str]
"""(panel, curve, x, y, what Table 1 predicts)."""


def figure(results: Results, out: Path, runs: int, workers: int, caption: str) -> list[Point]:
    """Measure, draw, and write the data."""
    area = Area(SIZES, max(ROUNDS), runs, MEANS, THRESHOLDS)
    found = points(results, area, ROUNDS, workers, CURVES)
    lines = [*_words(found), *_errors(results.file), *_times()]
    with (out / "table1.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["panel", "curve", "x", "y", "slope predicted"])
        writer.writerows(lines)
    panels = list(dict.fromkeys(line[0] for line in lines))
    _, all_axes = plt.subplots(2, 3, figsize=(15, 9))
    for axes, panel in zip(all_axes.flat, panels, strict=True):
        own = [line for line in lines if line[0] == panel]
        for curve in dict.fromkeys(line[1] for line in own):
            xs, ys = zip(*((x, y) for _, name, x, y, _ in own if name == curve), strict=True)
            predicted = next(line[4] for line in own if line[1] == curve)
            label = curve
            if len(xs) > 1:
                label += f": slope {slope(xs, ys):+.2f} (Table 1: {predicted})"
            axes.plot(xs, ys, marker="o", label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(panel, fontsize=10)
        axes.grid(alpha=0.3, which="both")
        axes.legend(fontsize=7)
    save(out / "table1", f"Table 1, measured (words are for F1 ≥ {LEVEL})", caption)
    return found


def slope(xs: tuple[float, ...], ys: tuple[float, ...]) -> float:
    """Return the slope of the line through points, both axes logarithmic."""
    return float(np.polyfit(np.log(xs), np.log(ys), 1)[0])


def _words(found: list[Point]) -> list[Line]:
    """Return the words needed, along each axis of Table 1."""

    def needed(curve: str, rounds: int, threshold: int, mean: int) -> float | None:
        own = [
            point
            for point in found
            if (point.curve, point.rounds, point.threshold, point.mean_items)
            == (curve, rounds, threshold, mean)
        ]
        return words_for(own, LEVEL)

    lines: list[Line] = []

    def add(panel: str, curve: str, x: float, words: float | None, predicted: str) -> None:
        if words is not None:
            lines.append((panel, curve, x, words, predicted))

    for curve in CURVES:
        for rounds in ROUNDS:
            add(
                "words against R, n = 10,000, τ = 50",
                curve,
                rounds,
                needed(curve, rounds, 50, 10_000),
                "0",
            )
        for rounds, mean in ((10, 10_000), (50, 2_000), (100, 1_000)):
            panel = f"words against R, N = nR = {TOTAL:,}, τ = 50"
            add(panel, curve, rounds, needed(curve, rounds, 50, mean), "−1")
        for threshold in THRESHOLDS:
            panel = "words against τ, R = 30, n = 10,000"
            add(panel, curve, threshold, needed(curve, 30, threshold, 10_000), "−1")
        for mean in MEANS:
            add("words against n, R = 30, τ = 50", curve, mean, needed(curve, 30, 50, mean), "+1")
    # Without a secure sum (R = N) a user sends its item as it is.
    panel = f"words against R, N = nR = {TOTAL:,}, τ = 50"
    lines.append((panel, "R = N: no secure sum", TOTAL, math.ceil(math.log2(KEYS.most)) / 16, "–"))
    return lines


def _errors(file: str, rows: int = 7, width: int = 150) -> list[Line]:
    """Return the 99th percentile of the error over the domain: HybridSketch and shared hashes."""
    rounds = draw(file, 10_000, 0)
    hybrid = HybridSketch(KEYS, rows, width, 20_000, HASHES.seed)
    shared = CountSketch(KEYS, rows, width, 20_000, HASHES, HASHES)
    truth, naive = np.zeros(len(DOMAIN)), np.zeros(len(DOMAIN))
    sums, lines = {}, []
    panel = "error of a histogram against R (99th percentile)"
    for number, data in enumerate(rounds, 1):
        histogram = data.histogram()
        truth += histogram
        sums[number] = hybrid.for_round(number).encode_keys(DOMAIN, histogram)
        naive += shared.estimate_keys(shared.encode_keys(DOMAIN, histogram), DOMAIN)
        if number in (3, *ROUNDS):
            ours = hybrid.estimate_keys(sums, DOMAIN)
            for name, estimate, predicted in (
                ("HybridSketch", ours, "+0.5"),
                ("sum of rounds, shared hashes", naive, "+1"),
            ):
                error = float(np.quantile(np.abs(estimate - truth), 0.99))
                lines.append((panel, name, float(number), error, predicted))
    return lines


def _times() -> list[Line]:
    """Return the time to decode 1,000 keys, for domains of 46^2 to 46^4 items."""
    panel = "seconds to decode 1,000 keys against d"
    lines: list[Line] = []
    for length in (2, 3, 4):
        keys = TextKeys(ROOT, length)
        domain = np.arange(keys.most, dtype=np.uint64)[:, None]
        some = domain[:: len(domain) // 1000][:1000]
        ones = np.ones(len(some), np.int64)
        seeds = Seeds(HASHES.seed, 1)
        sketch = CountSketch(keys, 7, 1_000, 20_000, seeds, seeds)
        table = IBLT.sized(keys, capacity=len(some), max_count=20_000, seeds=seeds)
        counted, listed = sketch.encode_keys(some, ones), table.encode_keys(some, ones)
        for name, decode, predicted in (
            ("count-median", lambda: sketch.estimate_keys(counted, domain), "+1"),  # noqa: B023  # called at once
            ("IBLT", lambda: table.list_entries(listed), "0"),  # noqa: B023  # called at once
        ):
            lines.append((panel, name, float(keys.most), _best(decode), predicted))
    return lines


def _best(function: Callable[[], object]) -> float:
    """Return the seconds of the fastest of some calls."""
    times = []
    for _ in range(4):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)
