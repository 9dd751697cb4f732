"""A hundred million rows on a Dask cluster of this machine, beside the plain run of one process.

    python bench/cluster.py [ROWS]        about 10 minutes; writes docs/benchmarks-clusters.md

ROWS (default 100,000,000) are written to a temporary folder: 6 bytes of disk each.
"""

import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import dask
import numpy as np
import polars as pl
from distributed import Client, LocalCluster

PAGE = Path(__file__).parents[1] / "docs/benchmarks-clusters.md"
A_PARTITION = 1_000_000  # rows
USERS = 100_000  # of a partition
ITEMS = 100_000
ENV = {
    "POLARS_MAX_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "500000000",
}
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
    """Return a cluster of single-threaded workers, set up as docs/clusters.md says."""
    environment = {f"distributed.nanny.pre-spawn-environ.{name}": ENV[name] for name in ENV}
    with dask.config.set(environment):
        return LocalCluster(n_workers=number, threads_per_worker=1, dashboard_address=":0")


def busy() -> float:
    """Return the seconds for which the cores of this machine have worked, whoever for."""
    user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def own(client: Client | None) -> float:
    """Return the seconds for which they have worked for us: this process, commands, workers."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    at_work = client.run(time.process_time).values() if client else ()
    return sum(usage.ru_utime + usage.ru_stime for usage in usages) + sum(at_work)


def resident(client: Client) -> float:
    """Return the largest memory that a worker has used, in GiB."""
    peaks = client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return float(max(peaks.values())) / 2**20


def measure(folder: Path, rows: int) -> dict[str, float]:
    """Return the times of all commands, having seen that their sums are the same."""
    times: dict[str, float] = {}
    whole = folder / "whole"
    one_file, share, split = write_share(whole, folder)
    some = SHARE * A_PARTITION

    def best(name: str, data: Path, count: int, client: Client | None = None) -> None:
        """Time a command; keep its best time, and how many cores others took meanwhile."""
        all_before, own_before = busy(), own(client)
        took = seconds(data, folder / f"{name} {run}", count, client and client.cluster)
        others = max(busy() - all_before - (own(client) - own_before), 0) / took
        print(f"{name}: {took:.1f} s; others took {others:.2f} cores", flush=True)
        if took < times.get(name, float("inf")):
            times[name], times[f"others, {name}"] = took, others

    for run, number in product(range(2), (1, 2)):
        if number == 1:
            best("plain", one_file, some)
        with workers(number) as cluster, Client(cluster) as client:
            seconds(share, folder / f"warm-up {number} {run}", some, cluster)  # loads, compiles
            best(f"share on {number}", share, some, client)
            best(f"whole on {number}", whole, rows, client)
            times[f"memory on {number}"] = resident(client)
            if number == 2:
                best("split on 2", split, some, client)
    for name in ("share on 1", "share on 2", "split on 2"):
        assert sums(folder / f"{name} 0") == sums(folder / "plain 0")
    assert sums(folder / "whole on 1 0") == sums(folder / "whole on 2 0")
    return times


def page(rows: int, size: float, times: dict[str, float]) -> str:
    """Return the page."""
    some = SHARE * A_PARTITION

    def line(what: str, name: str, count: int, says: str = "") -> str:
        took, others = times[name], times[f"others, {name}"]
        return f"| {what} | {count:,} | {took:.1f} | {count / took:,.0f} | {others:.2f} | {says} |"

    gain = times["whole on 1"] / times["whole on 2"]
    moved = times["split on 2"] - times["share on 2"]
    lines = [
        "# Clusters, measured",
        "",
        "Written by `python bench/cluster.py` on 2 cores, which scheduler, workers and command",
        "share. Users have about ten rows each; there are 100,000 items; both are texts. Parquet",
        f"files of 1,000,000 rows, {size:.2f} GiB for {rows:,}. Ten rounds. Times are those of the",
        "whole command, the better of two, taken in turns; workers have one thread each and the",
        "environment that [clusters.md](clusters.md) advises.",
        "",
        "| `linsketch run` | rows | seconds | rows/s | cores that others took | |",
        "|---|---:|---:|---:|---:|---|",
        line("one process, one file, polars on both cores", "plain", some),
        line("`--cluster`, 1 worker", "share on 1", some),
        line("`--cluster`, 2 workers", "share on 2", some),
        line("`--cluster`, 1 worker", "whole on 1", rows),
        line("`--cluster`, 2 workers", "whole on 2", rows, f"**{gain:.2f}** times 1 (target: 1.7)"),
        line(
            "`--cluster`, 2 workers, all users split over the partitions",
            "split on 2",
            some,
            f"the grouped pass: {moved:.1f} s, {moved / some * 1e6:.2f} s a million rows",
        ),
        "",
        f"Largest memory of a worker: {times['memory on 1']:.1f} GiB (1 worker), "
        f"{times['memory on 2']:.1f} GiB (2 workers).",
        f"The sums of the runs over {some:,} rows are the same, byte for byte; so are those over",
        f"{rows:,}.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Write the rows, measure, write the page."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000
    with tempfile.TemporaryDirectory() as name:
        whole = Path(name) / "whole"
        whole.mkdir()
        for number in range(rows // A_PARTITION):
            write_partition(number, whole)
        size = sum(path.stat().st_size for path in whole.iterdir()) / 2**30
        text = page(rows, size, measure(Path(name), rows))
    PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
