"""A hundred million rows on a Dask cluster of this machine, beside the plain run of one process.

    python bench/cluster.py [ROWS]        about 10 minutes; writes docs/benchmarks-clusters.md

ROWS (default 100,000,000) are written to a temporary folder: 13 bytes of disk each.
"""

import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from distributed import Client, LocalCluster

PAGE = Path(__file__).parents[1] / "docs/benchmarks-clusters.md"
A_PARTITION = 1_000_000  # rows
USERS = 100_000  # of a partition
ITEMS = 100_000
SHARE = 10  # partitions that fit into the memory of one process, too


def write_partition(number: int, folder: Path) -> None:
    """Write the rows of users who are in this partition only, about ten each."""
    rng = np.random.default_rng([1, number])
    users = number * USERS + rng.integers(0, USERS, A_PARTITION)
    rows = pl.DataFrame({"u": users, "i": rng.zipf(1.2, A_PARTITION) % ITEMS})
    texts = rows.select(
        ("user-" + pl.col("u").cast(pl.String)).alias("user"),
        ("item-" + pl.col("i").cast(pl.String)).alias("item"),
    )
    texts.write_parquet(folder / f"{number:05}.parquet")


def write_share(whole: Path, folder: Path) -> tuple[Path, Path, Path]:
    """Write the first partitions again: as one file, as they are, and with all users split."""
    parts = sorted(whole.iterdir())[:SHARE]
    rows = pl.read_parquet(parts)
    paths = folder / "share.parquet", folder / "share", folder / "split"
    rows.write_parquet(paths[0])
    for path in paths[1:]:
        path.mkdir()
    for number, part in enumerate(parts):
        (paths[1] / part.name).hardlink_to(part)
        rows[number :: len(parts)].write_parquet(paths[2] / part.name)
    return paths


def seconds(data: Path, out: Path, rows: int, cluster: LocalCluster | None = None) -> float:
    """Return the time of a whole command."""
    where = ["--cluster", cluster.scheduler_address] if cluster else []
    command = [sys.executable, "-m", "linsketch", "run", str(data), "--user", "user"]
    command += ["--item", "item", "--rounds", "10", "--threshold", str(rows // 1000), *where]
    start = time.perf_counter()
    done = subprocess.run([*command, "--out", str(out)], capture_output=True, text=True)  # noqa: S603  # ours
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - start


def sums(out: Path) -> list[tuple[object, ...]]:
    """Return the sums of all rounds."""
    with sqlite3.connect(out / "transcript.sqlite") as database:
        return database.execute("SELECT round, users, sum FROM rounds ORDER BY round").fetchall()


def workers(number: int) -> LocalCluster:
    """Return a cluster of single-threaded workers."""
    return LocalCluster(
        n_workers=number,
        threads_per_worker=1,
        dashboard_address=":0",
        env={"POLARS_MAX_THREADS": "1"},
    )


def resident(client: Client) -> float:
    """Return the largest memory that a worker has used, in GiB."""
    peaks = client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return float(max(peaks.values())) / 2**20


def main() -> None:
    """Measure and write the page."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000
    times: dict[object, float] = {}
    memory: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = folder / "whole"
        whole.mkdir()
        for number in range(rows // A_PARTITION):
            write_partition(number, whole)
        size = sum(path.stat().st_size for path in whole.iterdir()) / 2**30
        one_file, share, split = write_share(whole, folder)
        some = SHARE * A_PARTITION
        times["plain"] = min(seconds(one_file, folder / f"plain {n}", some) for n in range(2))
        for number in (1, 2):
            with workers(number) as cluster, Client(cluster) as client:
                seconds(share, folder / f"share {number}", some, cluster)  # loads, compiles
                assert sums(folder / f"share {number}") == sums(folder / "plain 0")
                times[number] = seconds(whole, folder / f"whole {number}", rows, cluster)
                memory[number] = resident(client)
                print(number, times[number], memory[number], flush=True)
                if number == 2:
                    times["share"] = seconds(share, folder / "again", some, cluster)
                    times["split"] = seconds(split, folder / "split out", some, cluster)
                    assert sums(folder / "split out") == sums(folder / "plain 0")
        assert sums(folder / "whole 1") == sums(folder / "whole 2")
    load = os.getloadavg()
    print(times, memory, size, load)


if __name__ == "__main__":
    main()
