"""Sizes keep their promise, and estimates of overfull tables their accuracy."""

import numpy as np
import pytest

from linsketch import IBLT, IntKeys, Seeds, Size
from linsketch.errors import PlanningError
from linsketch.sketch.cardinality import free_cells
from linsketch.sketch.sizing import Hashing, segment_count, smallest_size

# The fewest cells a key that were ever measured for 1% failures (DESIGN.md), and 3% on top.
LIMITS = {10**2: 1.52, 10**3: 1.30, 10**4: 1.20, 10**5: 1.114, 10**6: 1.067}


def random_table(
    size: Size,
    keys: int,
    seed: int,
    counts: np.ndarray | None = None,
) -> tuple[IBLT, np.ndarray, np.ndarray]:
    """Return a table with random keys and counts for it."""
    rng = np.random.default_rng(seed)
    table = IBLT(IntKeys(60), size, 10**9, Seeds(b"%d" % seed))
    drawn = rng.integers(0, 2**60, (keys, 1), dtype=np.uint64)
    return table, drawn, rng.geometric(0.3, keys) if counts is None else counts


@pytest.mark.parametrize(("keys", "ratio"), LIMITS.items())
def test_no_larger_than_measured(keys: int, ratio: float) -> None:
    """A 1% table needs at most 3% more cells than the measured minimum."""
    assert smallest_size(keys, 0.01).cells <= 1.03 * ratio * keys


@pytest.mark.parametrize(
    ("keys", "target", "trials"),
    [(1, 0.01, 300), (7, 0.01, 6000), (100, 0.01, 6000), (400, 0.01, 4000), (30, 0.001, 15000)],
)
def test_failure_rate(keys: int, target: float, trials: int) -> None:
    """Real tables fail no more often than asked for (seeded; alarm below 10**-6)."""
    size = smallest_size(keys, target)
    failures = 0
    for seed in range(trials):
        table, drawn, counts = random_table(size, keys, seed)
        failures += not table.list_entries(table.encode_keys(drawn, counts)).complete
    assert failures <= trials * target + 6 * np.sqrt(trials * target)


@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("hashing", ["standard", "fuse"])
def test_every_shape_decodes(k: int, hashing: Hashing) -> None:
    """Each k and hashing can be asked for, at any size, and lists its keys."""
    for keys in (1, 2, 30, 1000, 20_000):
        size = smallest_size(keys, 1e-4, k=k, hashing=hashing)
        assert (size.k, size.hashing) == (k, hashing)
        table, drawn, counts = random_table(size, keys, keys)
        assert table.list_entries(table.encode_keys(drawn, counts)).complete


def test_monotone_in_the_target() -> None:
    """A smaller failure probability never gives a smaller table."""
    for keys in (1, 5, 100, 1234, 10**5, 10**8):
        cells = [smallest_size(keys, p).cells for p in (0.5, 0.01, 3e-3, 1e-3, 1e-4, 1e-6, 1e-9)]
        assert cells == sorted(cells)


@pytest.mark.parametrize(
    "arguments",
    [(0, 0.01), (10**10, 0.01), (10, 0.0), (10, 0.9), (10, float("nan"))],
)
def test_impossible_wishes(arguments: tuple[int, float]) -> None:
    """Capacities and probabilities out of range are refused."""
    with pytest.raises(PlanningError):
        smallest_size(*arguments)
    with pytest.raises(PlanningError):
        smallest_size(10, 0.01, k=5)


def fuse(k: int, load: float) -> tuple[Size, float]:
    """Return the fuse shape that the library chooses for 10**4 keys and its threshold load."""
    segments = segment_count(k, "fuse", 10_000)
    return Size(k, segments, 1), load * (segments - k + 1) / segments


# Threshold loads: Molloy 2005 for standard tables, Walzer 2021 for spatially coupled ones.
THRESHOLDS = dict(
    [(Size(3, 3, 1), 0.8184), (Size(4, 4, 1), 0.7722), fuse(3, 0.9179), fuse(4, 0.9767)]
)


@pytest.mark.parametrize("shape", THRESHOLDS)
@pytest.mark.parametrize(("times", "tolerance"), [(1.05, 0.05), (1.5, 0.05), (2, 0.05), (3, 0.1)])
def test_cardinality_of_overfull_tables(shape: Size, times: float, tolerance: float) -> None:
    """At 10**4 keys the root mean square error is 5% up to twice the threshold, 10% up to 3."""
    keys = 10_000
    cells = round(keys / (THRESHOLDS[shape] * times) / shape.segments)
    size = Size(shape.k, shape.segments, cells)
    errors = []
    for seed in range(12):
        table, drawn, counts = random_table(size, keys, seed)
        peel = table.list_entries(table.encode_keys(drawn, counts))
        assert not peel.complete
        errors.append(peel.cardinality.keys / keys - 1)
    assert np.sqrt(np.mean(np.square(errors))) < tolerance


@pytest.mark.parametrize("shape", [Size(3, 3, 1), Size(4, 4, 1)])
def test_saturated_tables_say_at_least(shape: Size) -> None:
    """With no cell free the answer is a flagged lower bound, and never above the mass."""
    size = Size(shape.k, shape.segments, round(10_000 / 4.5 / shape.segments))
    for seed in range(5):
        table, drawn, counts = random_table(size, 10_000, seed)
        cardinality = table.list_entries(table.encode_keys(drawn, counts)).cardinality
        assert cardinality.at_least
        assert 4_000 < cardinality.keys < 10_000
    table, drawn, ones = random_table(size, 10_000, 1, np.ones(10_000, np.int64))
    assert table.list_entries(table.encode_keys(drawn, ones)).cardinality.keys <= 10_000


def test_vague_estimates_say_at_least() -> None:
    """Far beyond three times the threshold a fuse table gives a lower bound, and flags it."""
    shape, load = fuse(4, 0.9767)
    size = Size(4, shape.segments, round(10_000 / (6 * load) / shape.segments))
    for seed in range(10):
        table, drawn, counts = random_table(size, 10_000, seed)
        cardinality = table.list_entries(table.encode_keys(drawn, counts)).cardinality
        assert cardinality.at_least
        assert 4_000 < cardinality.keys < 10_000


def test_a_few_knotted_keys() -> None:
    """Below the threshold a stuck table misses two keys or so, not thousands."""
    size = Size(3, 3, 600)
    missing = []
    for seed in range(600):
        table, drawn, counts = random_table(size, 1_000, seed)
        peel = table.list_entries(table.encode_keys(drawn, counts))
        if not peel.complete:
            missing.append((1_000 - len(peel.keys), peel.missing))
    assert missing
    assert all(abs(true - estimated) <= 1 for true, estimated in missing)


def test_the_papers_equations() -> None:
    """With one start segment the core equations are the paper's closed form, for k = 3 and 4."""
    for k in (3, 4):
        size = Size(k, k, 1000)
        for x in (2.5, 4.0, 6.0):
            keys = size.cells / k * x / (1 - np.exp(-x)) ** (k - 1)
            assert free_cells(size, keys) == pytest.approx(size.cells * np.exp(-x) * (1 + x))
