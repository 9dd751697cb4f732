"""Count sketches: linear, unbiased, with errors that grow as they should."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linsketch import CountMin, CountSketch, HybridSketch, IntKeys, Seeds, Utf8Keys
from linsketch.errors import CountError, ItemError, PlanningError, VectorError
from tests import strategies

ROUND = Seeds(b"sketch", 1)
KINDS: dict[str, Any] = {
    "median": lambda keys: CountSketch(keys, 5, 11, 10**5, ROUND, ROUND),
    "min": lambda keys: CountMin(keys, 3, 11, 10**5, ROUND),
}


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_linearity(kind: str, data: st.DataObject) -> None:
    """Law 1: encode(h1) + encode(h2) = encode(h1 + h2)."""
    space = data.draw(strategies.spaces)
    sketch = KINDS[kind](space)
    first, second = (Counter(data.draw(strategies.histograms(space))) for _ in range(2))
    assert sketch.encode(first) + sketch.encode(second) == sketch.encode(first + second)


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_one_item_is_exact(kind: str, data: st.DataObject) -> None:
    """Alone in the sketch, an item's estimate is its count."""
    space = data.draw(strategies.spaces)
    item, count = data.draw(strategies.items(space)), data.draw(st.integers(1, 10**5))
    sketch = KINDS[kind](space)
    assert sketch.estimate(sketch.encode({item: count}), [item]).tolist() == [count]


@given(st.data())
def test_count_min_never_underestimates(data: st.DataObject) -> None:
    """The least of the rows is no less than the truth."""
    histogram = data.draw(strategies.histograms(IntKeys(17), 30))
    sketch = KINDS["min"](IntKeys(17))
    estimates = sketch.estimate(sketch.encode(histogram), histogram)
    assert (estimates >= np.array(list(histogram.values()))).all()


def test_a_row_is_unbiased() -> None:
    """Over fresh hashes, a row's mean estimate is the count (seeded; alarm below 10**-6)."""
    histogram = {i: 5 + 7 * (i % 13) for i in range(200)}
    keys = IntKeys(17).encode([0, 12, 10_000]).keys
    rows = []
    for round_ in range(400):
        seeds = Seeds(b"unbiased", round_)
        sketch = CountSketch(IntKeys(17), 5, 20, 10**5, seeds, seeds)
        rows.append(sketch.row_estimates(sketch.encode(histogram), keys))
    samples = np.concatenate(rows)
    error = samples.mean(axis=0) - np.array([5, 89, 0])
    assert (np.abs(error) < 5.5 * samples.std(axis=0) / np.sqrt(len(samples))).all()


def test_hybrid_error_grows_like_the_root_of_the_rounds() -> None:
    """Shared hashes add up their errors round by round; the hybrid's cancel."""
    rounds = 100
    sketch_keys = IntKeys(17).encode(range(9)).keys
    histogram = dict.fromkeys(range(2_000), 20)
    hybrid = HybridSketch(IntKeys(17), 5, 100, 10**5, b"hybrid")
    sums = {r: hybrid.for_round(r).encode(histogram) for r in range(rounds)}
    shared = CountSketch(IntKeys(17), 5, 100, 10**5, Seeds(b"s"), Seeds(b"s"))
    same = shared.estimate(shared.encode(histogram), range(200)) * rounds - 20 * rounds
    fresh = hybrid.estimate(sums, range(200)) - 20 * rounds
    assert fresh.std() < same.std() / 4
    first, other = (hybrid.for_round(r)._places(sketch_keys) for r in (0, 7))
    assert np.array_equal(first, other)


def test_refusals() -> None:
    """Bad sizes, wrapping counts, foreign vectors and no rounds at all are refused."""
    with pytest.raises(PlanningError):
        CountMin(IntKeys(8), 0, 5, 10, ROUND)
    with pytest.raises(PlanningError):
        CountMin(IntKeys(8), 1, 5, 2**61, ROUND)
    sketch = CountMin(IntKeys(8), 1, 5, 10, ROUND)
    with pytest.raises(CountError):
        sketch.encode({1: 11})
    with pytest.raises(VectorError):
        sketch.estimate(CountMin(IntKeys(8), 1, 6, 10, ROUND).encode({1: 1}), [1])
    with pytest.raises(CountError, match="out of bounds"):
        sketch.encode_keys(np.array([[300]], np.uint64), np.array([1]))
    for keys in (np.array([[300]], np.uint64), np.array([3], np.uint64), np.array([[3]])):
        with pytest.raises(CountError):
            sketch.estimate_keys(sketch.encode({1: 1}), keys)
    with pytest.raises(ItemError, match="not as one str"):
        sketch.estimate(sketch.encode({1: 1}), "tea")
    with pytest.raises(PlanningError, match="Seeds"):
        CountSketch(IntKeys(8), 1, 5, 10, ROUND, b"s")  # type: ignore[arg-type]
    with pytest.raises(PlanningError):
        HybridSketch(Utf8Keys(8), 0, 5, 10, b"s")
    with pytest.raises(VectorError):
        HybridSketch(Utf8Keys(8), 1, 5, 10, b"s").estimate({}, ["a"])


@pytest.mark.parametrize("rows", [1, 2, 5, 8])
def test_fast_medians_are_those_of_the_rows(rows: int) -> None:
    """The loop over keys computes the median of the readable row estimates, even rows too."""
    sketch = CountSketch(IntKeys(100), rows, 40, 10**5, Seeds(b"places"), ROUND)
    vector = sketch.encode({i * 2**90: i for i in range(300)})
    keys = sketch.keys.encode([i * 2**90 for i in range(500)]).keys
    expected = sketch.combine(sketch.row_estimates(vector, keys))
    assert np.array_equal(sketch.estimate_keys(vector, keys), expected)
