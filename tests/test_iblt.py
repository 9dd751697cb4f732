"""The invertible table against a slow oracle: laws, tiny tables, statistics."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linsketch import IBLT, ROOT, BytesKeys, IntKeys, Seeds, Size, Status, TextKeys, Utf8Keys
from linsketch.errors import CountError, PlanningError, VectorError, WireError
from linsketch.sketch.iblt import Layout
from tests import oracle, strategies


def rows(table: IBLT, histogram: dict[object, int]) -> list[tuple[tuple[int, ...], int]]:
    """Return a histogram as (key, count) for the oracle."""
    keys = table.keys.encode(histogram).keys.tolist()
    return list(zip(map(tuple, keys), histogram.values(), strict=True))


@given(st.data())
def test_encode_agrees_with_the_oracle(data: st.DataObject) -> None:
    """The compiled loop and the plain sums give the same vector, in every layout."""
    table = data.draw(strategies.tables())
    histogram = data.draw(strategies.histograms(table.keys))
    assert table.encode(histogram) == oracle.encode(table, rows(table, histogram))


@given(st.data())
def test_linearity(data: st.DataObject) -> None:
    """Law 1: encode(h1) + encode(h2) = encode(h1 + h2) for the compact layout."""
    table = data.draw(strategies.tables("compact"))
    first, second = (Counter(data.draw(strategies.histograms(table.keys))) for _ in range(2))
    assert table.encode(first) + table.encode(second) == table.encode(first + second)
    assert table.encode(first + second) - table.encode(second) == table.encode(first)


@given(st.data())
def test_linearity_of_insertions(data: st.DataObject) -> None:
    """Law 1 for the paper's layout: summed clients equal values and holders encoded at once."""
    table = data.draw(strategies.tables("paper"))
    clients = [Counter(data.draw(strategies.histograms(table.keys, 4))) for _ in range(3)]
    total = sum(clients, Counter[object]())
    holders = Counter(item for client in clients for item in client)
    keys = table.keys.encode(total).keys
    counts = np.array(list(total.values()), np.int64)
    at_once = table.encode_keys(keys, counts, np.array([holders[x] for x in total], np.int64))
    assert table.ring.sum(map(table.encode, clients)) == at_once


@given(st.data())
def test_exact_or_flagged(data: st.DataObject) -> None:
    """Law 3: a peel is complete exactly when the oracle's hypergraph peels, and then exact."""
    table = data.draw(strategies.tables())
    histogram = data.draw(strategies.histograms(table.keys, 20))
    vector = table.encode(histogram)
    peel = table.list_entries(vector)
    keys = {key for key, _ in rows(table, histogram)}
    assert peel.complete == oracle.peels(table, keys)
    if peel.complete:
        assert peel.histogram == histogram
        assert peel.cells_left == 0
        assert peel.missing == 0
    else:
        assert peel.cells_left > 0
        assert peel.status is (Status.PARTIAL if len(peel.keys) else Status.UNDECODABLE)


@given(st.data())
def test_subtract_and_delete(data: st.DataObject) -> None:
    """Differences list with signed counts, and what was deleted is gone."""
    space = data.draw(strategies.spaces)
    layout: Layout = data.draw(st.sampled_from(["compact", "paper"]))
    table = IBLT(space, Size(4, 4, 60), 10**6, Seeds(b"difference"), layout)
    first, second = (data.draw(strategies.histograms(space, 6)) for _ in range(2))
    peel = table.list_entries(table.encode(first) - table.encode(second))
    signed = Counter(first)
    signed.subtract(second)
    if layout == "compact":
        assert peel.histogram == {item: n for item, n in signed.items() if n}
    elif not first.keys() & second.keys():
        assert peel.histogram == signed
    emptied = table.encode(first)
    for item, count in first.items():
        emptied = table.delete(emptied, item, count)
    assert emptied == table.ring.zeros()


@given(st.data())
def test_lookup(data: st.DataObject) -> None:
    """A look-up answers with the true count or not at all, and mostly does in a sparse table."""
    table = data.draw(strategies.tables())
    histogram = data.draw(strategies.histograms(table.keys))
    vector = table.encode(histogram)
    for item in [*histogram, *data.draw(st.lists(strategies.items(table.keys), max_size=3))]:
        assert table.lookup(vector, item) in (None, histogram.get(item, 0))
    if len(histogram) == 1:
        assert all(table.lookup(vector, item) == n for item, n in histogram.items())


def test_insert() -> None:
    """Inserting is adding a histogram of one item."""
    table = IBLT.sized(Utf8Keys(5), capacity=10, max_count=100, seeds=Seeds(b"s"))
    vector = table.insert(table.insert(table.ring.zeros(), "a"), "a", 4)
    assert vector == table.encode({"a": 5})
    assert table.lookup(vector, "a") == 5


@pytest.mark.parametrize(
    "shape", [(3, 3, 1), (3, 3, 2), (4, 4, 1), (4, 4, 2), (3, 5, 1), (4, 6, 1)]
)
@pytest.mark.parametrize("layout", ["compact", "paper"])
def test_every_tiny_table(shape: tuple[int, int, int], layout: str) -> None:
    """All sets of up to three keys of a small domain decode if and only if the oracle says so."""
    table = IBLT(IntKeys(4), Size(*shape), 30, Seeds(b"tiny"), layout)  # type: ignore[arg-type]
    decoded = expected = wrong = 0
    for n in range(4):
        for keys in combinations(range(16), n):
            histogram = {key: 1 + key % 3 for key in keys}
            peel = table.list_entries(table.encode(histogram))
            decoded += peel.complete
            expected += oracle.peels(table, {(key,) for key in keys})
            wrong += peel.complete and peel.histogram != histogram
    assert decoded == expected
    assert expected >= 1 + 16  # the empty set and all single keys
    assert wrong == 0


def test_the_papers_setting_needs_few_words() -> None:
    """3 characters of 46, counts to 10,000: 3.25 words a key, against 6.1 in the paper's layout."""
    size = Size(3, 3, 434)  # 1.3 cells a key at 1,000 keys
    compact, paper = (
        IBLT(TextKeys(ROOT, 3), size, 10_000, Seeds(b"s"), layout)
        for layout in ("compact", "paper")
    )
    assert [segment.modulus for segment in compact.ring.segments] == [2**14, 509, 2**17 - 1]
    assert compact.ring.wire_words / 1000 < 3.26
    assert 6.1 < paper.ring.wire_words / 1000 < 6.2


def test_false_peels_undo_themselves() -> None:
    """A short check lets false keys pass now and then; the list is exact all the same."""
    rng = np.random.default_rng(5)
    undone = 0
    for seed in range(1500):
        table = IBLT(IntKeys(17), Size(4, 4, 40), 10**4, Seeds(b"%d" % seed))
        keys = rng.choice(2**17, 80, replace=False).astype(np.uint64)[:, None]
        counts = rng.geometric(0.2, 80)
        vector = table.encode_keys(keys, counts)
        peel = table.list_entries(vector)
        if peel.complete:
            assert table.encode_keys(peel.keys, peel.counts) == vector
            truth = dict(zip(keys[:, 0].tolist(), counts.tolist(), strict=True))
            assert peel.histogram == truth
            order = np.argsort(peel.keys[:, 0])
            undone += bool((np.diff(order) > 0).all())  # listed sorted: equal keys were added up
    assert undone > 0


def test_heavy_counts() -> None:
    """Counts far above the table of small inverses list as well."""
    table = IBLT.sized(BytesKeys(9), capacity=100, max_count=2**53, seeds=Seeds(b"heavy"))
    histogram = {b"%d" % i: 3**i for i in range(33)}
    peel = table.list_entries(table.encode(histogram))
    assert peel.histogram == histogram


@settings(max_examples=20)
@given(st.integers(1, 2**54 - 1))
def test_one_key_of_any_count(count: int) -> None:
    """The largest counts survive, up to max_count itself."""
    table = IBLT(IntKeys(61), Size(3, 3, 2), count, Seeds(b"one"))
    assert table.list_entries(table.encode({2**61 - 1: count})).histogram == {2**61 - 1: count}


def test_counts_that_could_wrap_are_refused() -> None:
    """Too large a total, negative, fractional and huge counts: a clear error each."""
    table = IBLT.sized(IntKeys(8), capacity=10, max_count=100, seeds=Seeds(b"s"))
    with pytest.raises(CountError, match="add up to 101"):
        table.encode({1: 60, 2: 41})
    with pytest.raises(CountError, match="is negative"):
        table.encode({1: -1})
    with pytest.raises(CountError, match="is not an int"):
        table.encode({1: 1.5})  # type: ignore[dict-item]
    with pytest.raises(CountError, match="maps items to counts; this is a list"):
        table.encode([1, 2])  # type: ignore[arg-type]
    with pytest.raises(CountError, match="Holders"):
        table.encode_keys(np.array([[1]], np.uint64), np.array([1]), np.array([1]))
    with pytest.raises(CountError, match="63 bits"):
        table.encode({1: 2**63})
    keys = np.array([[1], [2]], np.uint64)
    with pytest.raises(CountError, match="add up to 18,446,744,073,709,551,61"):
        table.encode_keys(keys, np.array([2**63 - 1, 2**63 - 1], np.int64))
    with pytest.raises(CountError, match="shape"):
        table.encode_keys(np.array([1], np.uint64), np.array([1], np.int64))
    with pytest.raises(CountError, match="out of bounds"):
        table.encode_keys(np.array([[256]], np.uint64), np.array([1], np.int64))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8, np.uint64])
def test_counts_of_any_integer_type(dtype: type) -> None:
    """Arrays of every integer type encode alike; others are refused."""
    table = IBLT.sized(IntKeys(8), capacity=10, max_count=100, seeds=Seeds(b"s"))
    keys = IntKeys(8).encode(np.arange(10)).keys
    expected = table.encode_keys(keys, np.ones(10, np.int64))
    assert table.encode_keys(keys, np.ones(10, dtype)) == expected
    assert table.encode_keys(keys[::2], np.ones(10, dtype)[::2]) == table.encode_keys(
        keys[::2].copy(), np.ones(5, np.int64)
    )
    for counts in (np.ones(10), np.ones(10, bool), np.ones((10, 1), np.int64)):
        with pytest.raises(CountError, match="row of integers"):
            table.encode_keys(keys, counts)  # type: ignore[arg-type]


def test_a_key_of_zeros_keeps_its_sign() -> None:
    """Key 0 shows in its check too, whatever the seed: negative counts and wraps are told."""
    for seed in range(3000):
        table = IBLT(IntKeys(17), Size(3, 3, 5), 2**14 - 1, Seeds(b"%d" % seed))
        negative = table.ring.zeros() - table.encode({0: 3})
        assert table.list_entries(negative).histogram == {0: -3}
        assert table.lookup(negative, 0) == -3
        assert not table.list_entries(table.encode({0: 9000}) + table.encode({0: 9000})).complete


def test_the_papers_layout_counts_insertions() -> None:
    """What was inserted is deleted as it was inserted; holders without insertion are refused."""
    table = IBLT(IntKeys(17), Size(3, 3, 9), 10**4, Seeds(b"s"), "paper")
    twice = table.encode({7: 2}) + table.encode({7: 3})
    assert table.list_entries(twice).histogram == {7: 5}
    assert table.lookup(twice, 7) == 5
    assert table.lookup(table.delete(twice, 7, 3), 7) == 2
    assert table.lookup(table.delete(twice, 7, 9), 7) == -4
    half = table.delete(table.encode({7: 5}), 7, 2)
    assert table.lookup(half, 7) is None
    assert not table.list_entries(half).complete
    beyond = table.encode({7: 10_000}) + table.encode({7: 10_000})
    assert table.list_entries(beyond).histogram == {7: 20_000 - 2**14}  # documented: it wraps
    with pytest.raises(CountError, match="holder"):
        table.encode_keys(np.array([[7]], np.uint64), np.array([5]), np.array([0]))


def test_bytes_of_another_table_are_refused() -> None:
    """Another seed, round, key space or max_count with the same ring does not unpack."""
    table = IBLT(Utf8Keys(4), Size(3, 3, 9), 100, Seeds(b"s", 1))
    data = table.pack(table.encode({"a": 1}))
    assert table.unpack(data) == table.encode({"a": 1})
    for other in (
        replace(table, seeds=Seeds(b"t", 1)),
        replace(table, seeds=Seeds(b"s", 2)),
        replace(table, keys=BytesKeys(4)),
        replace(table, max_count=101),
        replace(table, size=Size(3, 9, 3)),
    ):
        assert other.ring == table.ring
        with pytest.raises(WireError, match="another plan"):
            other.unpack(data)


def test_impossible_tables() -> None:
    """Layouts, totals, sizes and seeds that cannot be are refused at planning time."""
    with pytest.raises(PlanningError, match="layout"):
        IBLT(IntKeys(8), Size(3, 3, 1), 5, Seeds(b"s"), "other")  # type: ignore[arg-type]
    with pytest.raises(PlanningError, match="max_count"):
        IBLT(IntKeys(8), Size(3, 3, 1), 2**54, Seeds(b"s"))
    with pytest.raises(PlanningError, match="max_count"):
        IBLT(IntKeys(8), Size(3, 3, 1), 0, Seeds(b"s"))
    with pytest.raises(PlanningError, match="whole number from 1 to"):
        IBLT(IntKeys(8), Size(3, 3, 1), 1e3, Seeds(b"s"))  # type: ignore[arg-type]
    with pytest.raises(PlanningError, match="capacity"):
        IBLT.sized(IntKeys(8), capacity=1.5, max_count=5, seeds=Seeds(b"s"))  # type: ignore[arg-type]
    with pytest.raises(PlanningError, match="keys must be KeySpace"):
        IBLT.sized(None, capacity=1, max_count=5, seeds=Seeds(b"s"))  # type: ignore[arg-type]
    with pytest.raises(PlanningError, match="Seeds"):
        IBLT(IntKeys(8), Size(3, 3, 1), 5, b"s")  # type: ignore[arg-type]
    with pytest.raises(PlanningError, match="k must be"):
        Size(5, 5, 1)
    with pytest.raises(PlanningError, match="segments must be"):
        Size(4, 3, 1)
    with pytest.raises(PlanningError, match="cells must be"):
        Size(3, 3, 0)
    with pytest.raises(PlanningError, match="seed"):
        Seeds(b"")
    with pytest.raises(PlanningError, match="round must be"):
        Seeds(b"s", -1)


def test_a_vector_of_another_table() -> None:
    """Vectors of other rings are refused; those of another seed do not list completely."""
    small, large = (IBLT(IntKeys(8), Size(3, 3, n), 9, Seeds(b"s")) for n in (4, 40))
    with pytest.raises(VectorError, match="another sketch"):
        small.list_entries(large.ring.zeros())
    with pytest.raises(VectorError, match="unpack it first"):
        small.list_entries(b"bytes")  # type: ignore[arg-type]
    other = IBLT(IntKeys(8), Size(3, 3, 40), 9, Seeds(b"other"))
    peel = other.list_entries(large.encode({1: 1, 2: 2, 3: 3}))
    assert not peel.complete
    assert "Keys missing: about" in str(peel)
