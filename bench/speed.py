"""Measure encode and peel against a yardstick in the same run; write docs/benchmarks.md.

Command: make bench. Run time: about 2 minutes. Expect ratios of about 0.6, 1.2 and 1.0 for
encode and 0.15, 0.6 and 0.5 for peel at 10**5, 10**6 and 10**7 keys.

The yardstick is a loop that adds four uint64 at hashed addresses over a table of as many bytes,
without prefetch. A ratio is k * keys a second over the yardstick's updates a second. Everything
runs on one thread, through the public API, best of five.
"""

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
from numba import njit, uint64
from rich.console import Console
from rich.markdown import Markdown

import accuracy
from linsketch import IBLT, ROOT, IntKeys, RingVector, Seeds, TextKeys, Utf8Keys
from linsketch.kernels.integers import mix, scale
from linsketch.sketch.sizing import Hashing

PAGE = Path(__file__).parents[1] / "docs/benchmarks.md"
TARGETS = {10**5: (0.55, 0.10), 10**6: (0.75, 0.25), 10**7: (0.65, 0.22)}
IMPORT = "import time; t = time.perf_counter(); import linsketch; print(time.perf_counter() - t)"
FIRST_LIST = """
import time; t = time.perf_counter()
from linsketch import IBLT, Seeds, Utf8Keys
table = IBLT.sized(Utf8Keys(8), capacity=9, max_count=9, seeds=Seeds(b"s"))
table.list_entries(table.encode({"a": 1}))
print(time.perf_counter() - t)
"""
MEMORY = """
import numpy as np
from linsketch import IBLT, IntKeys, Seeds, Utf8Keys
space = SPACE
table = IBLT.sized(space, capacity=10**6, max_count=2**30, seeds=Seeds(b"s"))
keys = space.encode([ITEM for i in range(10**6)]).keys
vector = table.encode_keys(keys, np.ones(10**6, np.int64))
small = IBLT.sized(space, capacity=9, max_count=9, seeds=Seeds(b"s"), k=table.size.k)
small.list_entries(small.ring.zeros())
held = vector.arrays[0].base.nbytes
def field(name):
    return int(next(l for l in open("/proc/self/status") if l.startswith(name)).split()[1])
open("/proc/self/clear_refs", "w").write("5")
before = field("VmRSS")
assert table.list_entries(vector).complete
print(1 + (field("VmHWM") - before) * 1024 / held)
"""


@njit
def yardstick(table: np.ndarray, updates: int) -> None:
    """Add four words to each of many hashed rows."""
    rows = uint64(len(table))
    for i in range(updates):
        word = mix(uint64(i))
        row = scale(word >> uint64(32), rows)
        table[row, 0] += word
        table[row, 1] += uint64(1)
        table[row, 2] += uint64(2)
        table[row, 3] += uint64(3)


def best(action: Callable[[], object], times: int = 5, calls: int = 1) -> float:
    """Return the shortest of several run times of an action, in seconds."""
    seconds = []
    for _ in range(times):
        start = perf_counter()
        for _ in range(calls):
            action()
        seconds.append((perf_counter() - start) / calls)
    return min(seconds)


def speed(keys: int, k: int | None, hashing: Hashing | None) -> list[str]:
    """Measure one table and return a line of the page."""
    rng = np.random.default_rng(keys)
    table = IBLT.sized(
        IntKeys(60), capacity=keys, max_count=2**40, seeds=Seeds(b"bench"), k=k, hashing=hashing
    )
    drawn = rng.integers(0, 2**60, (keys, 1), dtype=np.uint64)
    counts = rng.geometric(0.3, keys)
    vector = table.encode_keys(drawn, counts)
    peel = table.list_entries(vector)
    assert peel.complete and int(peel.counts.sum()) == int(counts.sum())  # noqa: PT018  # one fact
    memory = vector.arrays[0].base
    assert memory is not None
    yard = np.zeros((memory.nbytes // 32, 4), np.uint64)
    yardstick(yard, 1)
    calls = max(1, 10**6 // keys)  # a run long enough for the clock and a steady machine
    updates = 2 * keys / best(lambda: yardstick(yard, 2 * keys), calls=calls)
    encode = keys / best(lambda: table.encode_keys(drawn, counts), calls=calls)
    listed = keys / best(lambda: table.list_entries(vector), calls=calls)
    size = table.size
    least_encode, least_peel = TARGETS[keys]
    return [
        f"{keys:,}",
        f"{size.k}, {size.hashing}",
        f"{size.cells / keys:.3f}",
        f"{updates / 1e6:.0f}",
        f"{encode / 1e6:.1f}",
        f"**{size.k * encode / updates:.2f}** (≥ {least_encode:.2f})",
        f"{listed / 1e6:.1f}",
        f"**{size.k * listed / updates:.2f}** (≥ {least_peel:.2f})",
    ]


def papers_setting() -> tuple[float, float, int]:
    """Time a table of 1,250 keys over d = 97,336: encode, list, and its words."""
    space = TextKeys(ROOT, 3)
    table = IBLT.sized(space, capacity=1_250, max_count=10_000, seeds=Seeds(b"bench"))
    rng = np.random.default_rng(3)
    keys = rng.choice(space.bounds[0], 1_250, replace=False).astype(np.uint64)[:, None]
    counts = np.minimum(rng.zipf(1.8, 1_250), 200).astype(np.int64)
    vector = table.encode_keys(keys, counts)
    assert table.list_entries(vector).complete
    encode = best(lambda: table.encode_keys(keys, counts), 50)
    return encode, best(lambda: table.list_entries(vector), 50), table.ring.wire_words


def texts() -> tuple[float, float, float]:
    """Time a million texts: items to keys, encode, and the listed keys back to items."""
    space = Utf8Keys(20)
    items = [f"/page/{i}" for i in range(10**6)]
    table = IBLT.sized(space, capacity=len(items), max_count=2**40, seeds=Seeds(b"bench"))
    keys = space.encode(items).keys
    ones = np.ones(len(items), np.int64)
    peel = table.list_entries(table.encode_keys(keys, ones))
    assert sorted(peel.items) == sorted(items)
    return (
        best(lambda: space.encode(items), 3),
        best(lambda: table.encode_keys(keys, ones), 3),
        best(lambda: space.decode(peel.keys), 3),
    )


def wire() -> tuple[float, float]:
    """Time packing and unpacking; return bytes a second of each."""
    table = IBLT.sized(IntKeys(32), capacity=10**6, max_count=2**20, seeds=Seeds(b"bench"))
    vector: RingVector = table.encode_keys(
        np.arange(10**6, dtype=np.uint64)[:, None], np.ones(10**6, np.int64)
    )
    message = vector.pack()
    assert table.ring.unpack(message) == vector
    size = len(message)
    return size / best(vector.pack), size / best(lambda: table.ring.unpack(message))


def python(code: str, times: int = 5) -> float:
    """Run code in fresh processes and return the smallest number that it prints."""
    command = [sys.executable, "-c", code]
    outputs = [
        subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603  # ours
        for _ in range(times)
    ]
    return min(map(float, outputs))


def main() -> None:
    """Measure everything and write the page."""
    rows = [line for n in TARGETS for line in (speed(n, None, None), speed(n, 3, "standard"))]
    header = (
        "keys | k, hashing | cells a key | yardstick, M updates/s | encode, M keys/s | ratio "
        "| peel, M keys/s | ratio"
    )
    encode, listing, words = papers_setting()
    to_keys, text_encode, to_items = texts()
    pack, unpack = wire()
    python(FIRST_LIST, 1)
    integers = python(MEMORY.replace("SPACE", "IntKeys(60)").replace("ITEM", "i"), 1)
    strings = python(MEMORY.replace("SPACE", "Utf8Keys(20)").replace("ITEM", "str(i)"), 1)
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench` (`bench/speed.py`); one thread, best of five in one run, through",
        "the public API. Counts are geometric with mean 3.3, keys below 2⁶⁰ in the compact layout.",
        "The yardstick adds four uint64 at hashed addresses over a table of as many bytes, without",
        "prefetch; a ratio is k · keys/s over its updates/s. In parentheses the",
        "targets. Machines differ and are noisy: compare ratios, not times.",
        "",
        f"| {header} |",
        "|" + "---:|" * len(rows[0]),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        "| | |",
        "|---|---:|",
        f"| 1,250 keys over d = 97,336 ({words:,} words): encode | {encode * 1e3:.2f} ms |",
        f"| the same: list the entries (≤ 0.5 ms) | {listing * 1e3:.2f} ms |",
        f"| 10⁶ texts of up to 20 bytes: to keys | {to_keys:.2f} s |",
        f"| the same: encode (3 limbs) | {text_encode:.2f} s |",
        f"| the same: listed keys to texts | {to_items:.2f} s |",
        f"| pack a vector for the wire | {pack / 1e6:.0f} MB/s |",
        f"| unpack and check it | {unpack / 1e6:.0f} MB/s |",
        f"| `import linsketch` (≤ 0.4 s) | {python(IMPORT):.2f} s |",
        f"| import, encode, list in a new process, compiled before | {python(FIRST_LIST):.2f} s |",
        f"| memory to list 10⁶ integers, input included (≤ 3) | {integers:.2f} tables |",
        f"| memory to list 10⁶ texts of up to 20 bytes, input included | {strings:.2f} tables |",
        "",
        "Relative error (root mean square of 30) of the estimated number of keys in tables of 10⁴",
        "keys that are too full to decode, by load in multiples of the threshold:",
        "",
        *accuracy.lines(),
        "",
        f"Python {platform.python_version()}, numpy {np.__version__}, {os.cpu_count()} cores, "
        f"{platform.machine()}.",
    ]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    Console().print(Markdown(PAGE.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
