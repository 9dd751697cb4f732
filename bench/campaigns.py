"""Campaigns through the front door: F1 on real data, and the time of ten million rows.

    python bench/campaigns.py [DATA]        about 12 minutes; writes docs/benchmarks-campaigns.md

DATA is a folder with kosarak_part.csv.gz and msweb_visits.csv.gz, unless it is data/.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import polars as pl

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/benchmarks-campaigns.md"
SEEDS = range(1, 16)
ROWS = 10_000_000

SETS: dict[str, list[str]] = {
    "kosarak_part": ["--item", "item", "--threshold", "393", "--items-per-user", "92"],
    "msweb_visits": ["--item", "url", "--threshold", "323"],
}
BUDGETS = {"slots": (1, 2, 4, 16), "unsampled": (0,)}  # KiB; 0: whatever it takes
TARGETS = (
    "Targets: kosarak_part, slots, 4 KiB 0.95; adaptive 4 and 16 KiB 0.74 and 0.87; msweb_visits, "
    "slots, 2 KiB 0.95; adaptive 4 and 16 KiB 0.88 and 0.95; unsampled 1."
)


def linsketch(*args: str, out: Path) -> Any:
    """Run a command in a process of its own and return its JSON."""
    command = [sys.executable, "-m", "linsketch", *args, "--json", "--out", str(out)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  # ours
    return json.loads(done.stdout)


def f1_table(data: Path, folder: Path) -> list[str]:
    """Return the F1 of each method at each budget, over the seeds."""
    lines = [
        "| data | method | budget | F1, mean of 15 seeds | rounds decoded | bytes up | bytes "
        "down |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for name, options in SETS.items():
        file = str(data / f"{name}.csv.gz")
        for method in ("slots", "adaptive", "fixed", "count-median", "unsampled"):
            for kib in BUDGETS.get(method, (4, 16)):
                budget = ["--budget", str(1024 * kib)] if kib else []
                runs = [
                    linsketch(
                        *("run", file, "--user", "user", "--rounds", "10", "--check"),
                        *("--method", method, "--seed", str(seed)),
                        *(options + budget),
                        out=folder / f"{name}-{method}-{kib}-{seed}",
                    )
                    for seed in SEEDS
                ]
                scores = [run["truth"]["after"]["f1"] for run in runs]
                decoded = mean(10 - len(run["failed_rounds"]["rounds"]) for run in runs)
                largest = max(run["bytes_per_user_round"] for run in runs)
                lines.append(
                    f"| {name} | {method} | {f'{kib} KiB' if kib else 'all keys'} | "
                    f"**{mean(scores):.3f}** ± {stdev(scores):.3f} | "
                    f"{decoded:.1f} of 10 | {largest:,} | "
                    f"{max(run['down_bytes_per_user_round'] for run in runs):,} |"
                )
                print(lines[-1], flush=True)
    return lines


def write_rows(path: Path) -> None:
    """Write rows of 1.2 million users and 260,000 items, both as text."""
    rng = np.random.default_rng(1)
    rows = pl.DataFrame({"u": rng.integers(0, 1_200_000, ROWS), "i": rng.zipf(1.3, ROWS) % 500_000})
    texts = rows.select(
        ("user-" + pl.col("u").cast(pl.String)).alias("user"),
        ("item-" + pl.col("i").cast(pl.String)).alias("item"),
    )
    texts.write_parquet(path)


def timed_polars(path: Path, engine: Any) -> float:
    """Return the best of five times of reading the file and grouping it."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        pl.scan_parquet(path).group_by("user", "item").len().collect(engine=engine)
        best = min(best, time.perf_counter() - start)
    return best


def speed(folder: Path) -> list[str]:
    """Return the time of a whole command, beside that of polars in the same run."""
    path = folder / "rows.parquet"
    write_rows(path)
    polars = {engine: timed_polars(path, engine) for engine in ("in-memory", "streaming")}
    times, out = [], folder / "speed"
    for run in range(5):
        start = time.perf_counter()
        linsketch(
            *("run", str(path), "--user", "user", "--item", "item", "--rounds", "30"),
            *("--threshold", "5000"),
            out=out / str(run),
        )
        times.append(time.perf_counter() - start)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    best = min(times)
    return [
        "| | seconds | times polars (target: at most 4) |",
        "|---|---:|---:|",
        f"| polars, read and group by (user, item), in memory | {polars['in-memory']:.2f} | |",
        f"| polars, the same, streaming | {polars['streaming']:.2f} | |",
        f"| `linsketch run`, 30 rounds, the whole process | {best:.2f} | "
        f"{best / polars['in-memory']:.2f} (streaming: {best / polars['streaming']:.2f}) |",
        "",
        f"Largest memory of a `linsketch run`: {memory:.2f} GiB (target: under 4).",
    ]


def quote(scores: list[str]) -> None:
    """Put the README's rows, which are some of these, up to date."""
    rows = {tuple(line.split("|")[1:4]): line for line in scores}
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    lines = [rows.get(tuple(line.split("|")[1:4]), line) for line in readme]
    (ROOT / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Measure and write the page."""
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "data"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fast = speed(folder)
        print("\n".join(fast), flush=True)
        scores = f1_table(data, folder)
    PAGE.write_text(
        "\n".join(
            [
                "# Campaigns, measured",
                "",
                "Written by `python bench/campaigns.py` (part of `make bench`) on 2 cores,",
                "through the command line.",
                "",
                "## F1 on real data",
                "",
                *scores,
                "",
                TARGETS,
                "",
                "## Ten million rows",
                "",
                "1.2 million users, 260,000 items, both as text, in a Parquet file; best of five.",
                "",
                *fast,
                "",
            ]
        ),
        encoding="utf-8",
    )
    quote(scores)


if __name__ == "__main__":
    main()
