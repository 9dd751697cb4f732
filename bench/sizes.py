"""Measure how many cells a key a table needs, and write src/linsketch/sketch/sizing_table.py.

Command: make sizes. Run time: about 40 minutes on 2 cores. Expect for 1% failures: 1.52 cells a
key at 100 keys (k = 4), 1.30 at 1,000 (k = 3), then fuse with k = 4: 1.21 at 10**4, 1.12 at
10**5, 1.07 at 10**6.

`python bench/sizes.py check` counts failures of tables whose sizes are extrapolated, to rates or
numbers of keys that were not measured.

Each trial fills a real table with random keys and lists it. A size is accepted when the failures
seen plus twice their root stay below target * trials; bisection finds the smallest.
"""

import math
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from linsketch import IBLT, IntKeys, Seeds, kernels
from linsketch.sketch.iblt import SPARE_ENTRIES
from linsketch.sketch.sizing import Hashing, Size, segment_count, smallest_size

TABLE = Path(__file__).parents[1] / "src/linsketch/sketch/sizing_table.py"
SHAPES: list[tuple[int, Hashing]] = [
    (3, "standard"),
    (4, "standard"),
    (3, "fuse"),
    (4, "fuse"),
]
#        keys, trials at 1%, trials at 0.1% (0: take the step from 1% of the row before)
GRID = [
    (1, 2_000, 2_000),
    (2, 60_000, 200_000),
    (3, 60_000, 200_000),
    (5, 60_000, 200_000),
    (10, 60_000, 200_000),
    (20, 60_000, 200_000),
    (50, 60_000, 200_000),
    (100, 100_000, 200_000),
    (200, 60_000, 100_000),
    (500, 30_000, 60_000),
    (1_000, 20_000, 30_000),
    (2_000, 10_000, 20_000),
    (5_000, 5_000, 10_000),
    (10_000, 3_000, 8_000),
    (30_000, 1_500, 0),
    (100_000, 600, 0),
    (300_000, 400, 0),
    (1_000_000, 300, 0),
]
LARGE = 100_000  # above this, only the shapes that are ever chosen there
BITS = 60


class Trials:
    """Tables of one size and number of keys, filled and listed again and again."""

    def __init__(self, size: Size, keys: int) -> None:
        self.sketch = IBLT(IntKeys(BITS), size, keys, Seeds(b"replaced in every trial"))
        self.keys = keys
        self.rng = np.random.default_rng([size.k, size.segments, size.segment_cells, keys])
        room = 2 * size.cells + SPARE_ENTRIES
        self.table = self.sketch._empty()
        self.peel_list = (
            np.empty((room, 1), np.uint64),
            np.empty(room, np.int64),
            np.empty(0, np.uint64),
            np.empty(room, np.uint8),
        )
        self.ones = np.ones(keys, np.uint64)
        self.bounds = np.array(self.sketch.keys.bounds, np.uint64)
        self.encode = kernels.encode.encoder(size.k, 1, False)
        self.peel = kernels.peel.peeler(size.k, 1, False)

    def fails(self) -> bool:
        """Fill a fresh table, list it, and tell whether anything is left."""
        words = self.rng.integers(0, 1 << 64, 4, dtype=np.uint64)
        parameters = self.sketch._table._replace(
            seed=words[0], tweak_0=words[1], tweak_1=words[2], tweak_2=words[3]
        )
        keys = self.rng.integers(0, 1 << BITS, (self.keys, 1), dtype=np.uint64)
        self.table[:] = 0
        self.encode(self.table, keys, self.ones, self.ones, parameters)
        self.peel(self.table, *self.peel_list, self.bounds, parameters)
        return bool(self.table.any())


def meets(size: Size, keys: int, target: float, trials: int) -> bool:
    """Tell whether failures, plus twice their root, stay below the target."""
    allowed = target * trials
    table = Trials(size, keys)
    failures = 0
    for _ in range(trials):
        failures += table.fails()
        if failures + 2 * math.sqrt(failures) > allowed:
            return False
    return True


def smallest_ratio(
    k: int, hashing: Hashing, keys: int, target: float, trials: int, low: float, high: float
) -> float:
    """Find by bisection the fewest cells a key that meet the target."""
    segments = segment_count(k, hashing, keys)
    bad, good = math.floor(low * keys / segments), math.ceil(high * keys / segments)
    while not meets(Size(k, segments, max(good, 1)), keys, target, trials):
        bad, good = good, math.ceil(1.5 * good)
    step = max(1, round(0.001 * good))
    while good - bad > step:
        middle = (bad + good) // 2
        if middle and meets(Size(k, segments, middle), keys, target, trials):
            good = middle
        else:
            bad = middle
    return good * segments / keys


def measure(shape: tuple[int, Hashing]) -> list[tuple[int, float, float]]:
    """Walk the grid for one shape, each bracket from the row before."""
    rows: list[tuple[int, float, float]] = []
    for keys, common_trials, rare_trials in GRID:
        if keys > LARGE and shape not in ((3, "standard"), (4, "fuse")):
            break
        high = rows[-1][1] if rows else 8.0
        low = max(1.0, 0.9 * high) if keys > 3_000 else 1.0
        common = smallest_ratio(*shape, keys, 0.01, common_trials, low, high)
        if rare_trials:
            rare = smallest_ratio(*shape, keys, 0.001, rare_trials, 0.99 * common, 1.5 * common)
        else:
            rare = common * rows[-1][2] / rows[-1][1]
        rows.append((keys, round(common, 4), round(rare, 4)))
        sys.stderr.write(f"{shape}: {rows[-1]}\n")
    return rows


CHECKS = [  # keys, failure probability, trials
    (10, 1e-4, 1_000_000),
    (100, 1e-4, 1_000_000),
    (100, 1e-5, 3_000_000),
    (1_000, 1e-4, 300_000),
    (10_000, 1e-4, 60_000),
    (10_000_000, 0.01, 30),
]


def check() -> None:
    """Count failures where the sizes are extrapolated."""
    for keys, target, trials in CHECKS:
        size = smallest_size(keys, target)
        table = Trials(size, keys)
        failures = sum(table.fails() for _ in range(trials))
        sys.stdout.write(
            f"{keys:,} keys, target {target:g}: k = {size.k}, {size.hashing}, "
            f"{size.cells / keys:.3f} cells a key, {failures} of {trials:,} failed\n"
        )
        sys.stdout.flush()


def main() -> None:
    """Measure every shape and write the table."""
    with ProcessPoolExecutor(2) as pool:
        results = dict(zip(SHAPES, pool.map(measure, SHAPES), strict=True))
    lines = [
        '"""Cells a key that tables need, measured by `make sizes`; do not edit."""',
        "",
        "CELLS_PER_KEY = {  # (k, hashing): (keys, at 1% failures, at 0.1% failures)",
        *(f"    {shape}: {rows}," for shape, rows in results.items()),
        "}",
    ]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    ruff = Path(sys.executable).with_name("ruff")
    subprocess.run([ruff, "format", "-q", TABLE], check=True)  # noqa: S603  # our own file


if __name__ == "__main__":
    check() if sys.argv[1:] == ["check"] else main()
