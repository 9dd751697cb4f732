"""Hash families: committed vectors, the compiled loops, uniformity and independence."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linsketch import IBLT, BytesKeys, CountSketch, IntKeys, Seeds, Size
from linsketch.hashing import digest, high_product, mix
from tests.vectors import make

VECTORS = json.loads(make.FILE.read_text(encoding="utf-8"))


def test_committed_vectors() -> None:
    """Law 5, same seed, same bytes: this release computes the committed vectors."""
    assert make.vectors() == VECTORS


def test_splitmix() -> None:
    """The mixer is that of SplitMix64: its stream from state 0 begins as published."""
    states = np.arange(1, 4, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    assert [hex(word) for word in mix(states).tolist()] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
        "0x6c45d188009454f",
    ]


@given(st.lists(st.integers(0, 2**64 - 1), max_size=9), st.integers(0, 2**48))
def test_high_product(a: list[int], b: int) -> None:
    """The high half of a product is that of integers."""
    assert high_product(np.array(a, np.uint64), b).tolist() == [x * b >> 64 for x in a]


def chi_square(observed: np.ndarray) -> float:
    """Return how many standard deviations the statistic lies off (Wilson and Hilferty 1931)."""
    expected = observed.sum() / observed.size
    statistic = ((observed - expected) ** 2 / expected).sum()
    freedom = observed.size - 1
    spread = 2 / (9 * freedom)
    return float(((statistic / freedom) ** (1 / 3) - (1 - spread)) / np.sqrt(spread))


STRUCTURED = {
    "consecutive": np.arange(200_000, dtype=np.uint64)[:, None],
    "high bits": (np.arange(200_000, dtype=np.uint64) << np.uint64(40))[:, None],
    "multiples": (np.arange(200_000, dtype=np.uint64) * np.uint64(2**32 + 2))[:, None],
}


@pytest.mark.parametrize("name", STRUCTURED)
@pytest.mark.parametrize("size", [Size(3, 3, 100), Size(4, 12, 50)])
def test_uniform_and_independent(name: str, size: Size) -> None:
    """Cells, checks, and pairs of them, are uniform on structured keys (false alarms: 10**-7)."""
    table = IBLT(IntKeys(60), size, 10**6, Seeds(b"uniform", 1))
    cells, checks = table.positions(STRUCTURED[name] & np.uint64(2**60 - 1))
    offsets = (cells % np.uint64(size.segment_cells)).astype(np.int64)
    start = (cells[:, 0] // np.uint64(size.segment_cells)).astype(np.int64)
    families = [*offsets.T, checks.astype(np.int64) - 1, start]
    widths = [size.segment_cells] * size.k + [508, size.starts]
    for i, (first, width) in enumerate(zip(families, widths, strict=True)):
        if width > 1:
            assert abs(chi_square(np.bincount(first, minlength=width))) < 5.3
        for second, other in zip(families[i + 1 :], widths[i + 1 :], strict=True):
            pairs = np.bincount(first * other + second, minlength=width * other)
            if width * other > 1:
                assert abs(chi_square(pairs)) < 5.3


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Seeds(b"a", 0), Seeds(b"a", 1)),
        (Seeds(b"a", 0), Seeds(b"a", 0, 1)),
        (Seeds(b"a", 0), Seeds(b"a")),
        (Seeds(b"a"), Seeds(b"b")),
    ],
)
def test_fresh_means_independent(first: Seeds, second: Seeds) -> None:
    """Another round, repetition or seed gives cells that are independent of the first ones."""
    keys = STRUCTURED["consecutive"]
    cells = [
        IBLT(IntKeys(60), Size(3, 3, 64), 9, seeds).positions(keys)[0][:, 0].astype(np.int64)
        for seeds in (first, second)
    ]
    assert abs(chi_square(np.bincount(cells[0] * 64 + cells[1], minlength=64 * 64))) < 5.3


def test_signs_are_balanced_and_pairwise_independent() -> None:
    """Signs are fair coins: over keys, between rows, and against locations."""
    keys = STRUCTURED["consecutive"]
    sketch = CountSketch(IntKeys(60), 5, 64, 10**6, Seeds(b"s"), Seeds(b"s", 3))
    signs = sketch._signs(keys)
    deviation = np.sqrt(len(keys))
    assert (np.abs(signs.sum(axis=1)) < 6 * deviation).all()
    correlation = signs @ signs.T
    assert (np.abs(correlation[~np.eye(5, dtype=bool)]) < 6 * deviation).all()
    for places, row in zip(sketch._places(keys), signs, strict=True):
        joint = np.bincount((places % np.uint64(64)).astype(np.int64) * 2 + (row > 0))
        assert abs(chi_square(joint)) < 5.3


def test_every_limb_counts() -> None:
    """A change in any limb changes the digest, so long keys are hashed whole."""
    space = BytesKeys(40)
    keys = space.encode([b"x" * i + b"!" + b"x" * (39 - i) for i in range(40)]).keys
    assert len(set(digest(keys, 1).tolist())) == 40


def test_vectors_are_where_they_should_be() -> None:
    """The vectors lie beside the tests, in the file that docs/wire.md names."""
    root = Path(__file__).parents[1]
    assert make.FILE.relative_to(root).as_posix() in (root / "docs/wire.md").read_text(
        encoding="utf-8"
    )
