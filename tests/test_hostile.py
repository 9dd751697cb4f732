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


def in_some_cells(table: IBLT, item: object, count: int, ways: list[int]) -> RingVector:
    """Put an item into only some of its cells."""
    whole = table.encode({item: count})
    cells = table.positions(table.keys.encode([item]).keys)[0][0, ways].astype(np.int64)
    arrays = [np.zeros_like(array) for array in whole.arrays]
    for array, source in zip(arrays, whole.arrays, strict=True):
        array[cells] = source[cells]
    return table.ring.vector(arrays)


@settings(max_examples=200)
@given(st.data())
def test_any_table_ends(data: st.DataObject) -> None:
    """Random entries and items in some of their cells never hang; what is complete is true."""
    table = data.draw(strategies.tables())
    if data.draw(st.booleans()):
        vector = random_vector(table, np.random.default_rng(data.draw(st.integers(0, 99))))
    else:
        vector = table.encode(data.draw(strategies.histograms(table.keys)))
    for item in data.draw(st.lists(strategies.items(table.keys), max_size=4)):
        ways = data.draw(st.lists(st.integers(0, table.size.k - 1), unique=True))
        part = in_some_cells(table, item, data.draw(st.integers(1, 9)), ways)
        vector = vector + part if data.draw(st.booleans()) else vector - part
    peel = table.list_entries(vector)
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
    """A client that leaves out some cells of an item is flagged."""
    table = IBLT(IntKeys(17), Size(3, 3, 50), 10**4, Seeds(b"partial"))
    honest = table.encode(dict.fromkeys(range(60), 5))
    for ways in ([0], [1], [2], [0, 1], [0, 2], [1, 2]):
        peel = table.list_entries(honest + in_some_cells(table, 99_999, 3, ways))
        assert not peel.complete
        assert peel.cells_left > 0


@pytest.mark.parametrize("size", [Size(3, 3, 1), Size(4, 4, 7), Size(4, 9, 5)])
def test_an_item_that_comes_back_for_ever(size: Size) -> None:
    """In one of its cells only, an item is taken out and put back until the list is full."""
    table = IBLT(IntKeys(17), size, 200, Seeds(b"cycle"))
    vector = in_some_cells(table, 5, 1, [0])
    _, _, left, tests = table._peel(vector)
    assert left > 0
    assert tests > 2 * size.cells + 100  # it did go round, and
    assert tests <= 3 * size.cells + 2 * (size.k - 1) * (2 * size.cells + 512)  # it stopped
    assert not table.list_entries(vector).complete


def test_invalid_text_is_flagged() -> None:
    """A key that is no UTF-8 is left out of the list, and the peel is not called complete."""
    texts = IBLT(Utf8Keys(4), Size(3, 3, 20), 100, Seeds(b"s"))
    raw = IBLT(BytesKeys(4), Size(3, 3, 20), 100, Seeds(b"s"))
    assert texts.ring == raw.ring
    peel = texts.list_entries(raw.encode({b"good": 2, b"\xff\xfe": 1}))
    assert peel.histogram == {"good": 2}
    assert not peel.complete
    assert peel.rejected == peel.missing == 1
    assert "no item of utf8:4 or no count: 1." in str(peel)


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
