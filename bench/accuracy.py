"""How well tables that did not decode tell how many keys they held; used by speed.py.

Command: make bench. Run time: 10 seconds. Expect errors of 1% at 1.05 times the threshold load
and 2 to 6% at 3 times.
"""

import numpy as np

from linsketch import IBLT, IntKeys, Seeds, Size
from linsketch.sketch.sizing import segment_count

KEYS = 10_000
TRIALS = 30
TIMES = (1.05, 1.2, 1.5, 2.0, 3.0)
# Threshold loads of standard (Molloy 2005) and of coupled tables (Walzer 2021).
LOADS = {(3, "standard"): 0.8184, (4, "standard"): 0.7722, (3, "fuse"): 0.9179, (4, "fuse"): 0.9767}


def error(size: Size) -> float:
    """Return the root mean square of the relative error of the estimated number of keys."""
    rng = np.random.default_rng(size.cells)
    errors = []
    for trial in range(TRIALS):
        table = IBLT(IntKeys(60), size, 10**9, Seeds(b"%d" % trial))
        keys = rng.integers(0, 2**60, (KEYS, 1), dtype=np.uint64)
        peel = table.list_entries(table.encode_keys(keys, rng.geometric(0.3, KEYS)))
        errors.append(peel.cardinality.keys / KEYS - 1)
    return float(np.sqrt(np.mean(np.square(errors))))


def lines() -> list[str]:
    """Measure every shape and return a table in Markdown."""
    rows = []
    for (k, hashing), load in LOADS.items():
        segments = segment_count(k, hashing, KEYS)  # type: ignore[arg-type]  # a literal above
        full = KEYS * segments / (load * (segments - k + 1) if segments > k else load * segments)
        sizes = [Size(k, segments, round(full / times / segments)) for times in TIMES]
        cells = " | ".join(f"{error(size):.1%}" for size in sizes)
        rows.append(f"| {k}, {hashing}, {segments} segments | {cells} |")
    return [
        "| k, hashing | " + " | ".join(f"{times} times" for times in TIMES) + " |",
        "|---|" + "---:|" * len(TIMES),
        *rows,
    ]
