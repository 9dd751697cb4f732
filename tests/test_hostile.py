"""Tables that no honest client made: the peel ends, and says so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linsketch import IBLT, BytesKeys, IntKeys, RingVector, Seeds, Size, Utf8Keys
from tests import strategies


def random_vector(table: IBLT, rng: np.random.Generator) -> RingVector:
    """Draw all entries of a table at random."""
    return table.ring.vector(
        rng.integers(0, segment.modulus, segment.length, dtype=np.uint64)
        for segment in table.ring.segments
    )


def changed(vector: RingVector, segment: int, entry: int, by: int) -> RingVector:
    """Add to one entry of a vector."""
    arrays = [array.copy() for array in vector.arrays]
    modulus = vector.ring.segments[segment].modulus
    arrays[segment][entry] = (int(arrays[segment][entry]) + by) % modulus
    return vector.ring.vector(arrays)


@settings(max_examples=200)
@given(strategies.tables(), st.integers(0, 2**32))
def test_random_tables_end(table: IBLT, seed: int) -> None:
    """Random entries never hang or crash, and all that is listed encodes as listed."""
    vector = random_vector(table, np.random.default_rng(seed))
    peel = table.list_entries(vector)
    assert len(peel.keys) <= 2 * table.size.cells + 512
    if peel.complete and table.layout == "compact":
        positive = peel.counts > 0
        total = table.encode_keys(peel.keys[positive], peel.counts[positive])
        total -= table.encode_keys(peel.keys[~positive], -peel.counts[~positive])
        assert total == vector


@pytest.mark.parametrize("layout", ["compact", "paper"])
@pytest.mark.parametrize("field", [0, 1, 2, 3])
def test_one_cell_flipped(layout: str, field: int) -> None:
    """A single changed entry is flagged, and the keys elsewhere are still right."""
    table = IBLT(IntKeys(100), Size(3, 3, 100), 10**6, Seeds(b"flip"), layout)  # type: ignore[arg-type]
    histogram = {i * i: i for i in range(1, 100)}
    vector = changed(table.encode(histogram), field, 7, 1)
    peel = table.list_entries(vector)
    assert not peel.complete
    right = sum(histogram.get(item) == count for item, count in peel.histogram.items())
    assert right >= 50


def test_an_item_in_only_some_of_its_cells() -> None:
    """A client that puts an item into one cell of three is flagged; it cannot loop the peel."""
    table = IBLT(IntKeys(17), Size(3, 3, 50), 10**4, Seeds(b"partial"))
    honest = table.encode(dict.fromkeys(range(60), 5))
    whole = table.encode({99_999: 3})
    cell = int(table.positions(table.keys.encode([99_999]).keys)[0][0, 0])
    arrays = [np.zeros_like(array) for array in whole.arrays]
    for array, source in zip(arrays, whole.arrays, strict=True):
        array[cell] = source[cell]
    peel = table.list_entries(honest + table.ring.vector(arrays))
    assert not peel.complete
    assert peel.cells_left > 0


def test_a_cycle_of_false_entries() -> None:
    """Entries that put each other back forever stop when the peel list is full."""
    table = IBLT(IntKeys(8), Size(3, 3, 1), 200, Seeds(b"cycle"))
    rng = np.random.default_rng(1)
    longest = max(len(table.list_entries(random_vector(table, rng)).keys) for _ in range(3000))
    assert longest <= 2 * table.size.cells + 512


def test_invalid_text_is_flagged() -> None:
    """A key that is no UTF-8 is left out of the list, and the peel is not called complete."""
    texts = IBLT(Utf8Keys(4), Size(3, 3, 20), 100, Seeds(b"s"))
    raw = IBLT(BytesKeys(4), Size(3, 3, 20), 100, Seeds(b"s"))
    assert texts.ring == raw.ring
    peel = texts.list_entries(raw.encode({b"good": 2, b"\xff\xfe": 1}))
    assert peel.histogram == {"good": 2}
    assert not peel.complete


def test_counts_beyond_the_plan_are_flagged() -> None:
    """Two vectors that together exceed max_count do not decode to something else unnoticed."""
    table = IBLT(IntKeys(8), Size(3, 3, 10), 100, Seeds(b"s"))
    peel = table.list_entries(table.encode({7: 100}) + table.encode({7: 20}))
    assert not peel.complete


@pytest.mark.parametrize("load", [1.5, 3, 10])
def test_overfull_tables_end(load: float) -> None:
    """Far too many keys: undecodable or partial, never complete, with a size estimate."""
    table = IBLT(IntKeys(60), Size(3, 3, 200), 10**7, Seeds(b"full"))
    keys = np.arange(int(load * 600), dtype=np.uint64)[:, None]
    peel = table.list_entries(table.encode_keys(keys, np.full(len(keys), 7, np.int64)))
    assert not peel.complete
    assert peel.missing > 0
