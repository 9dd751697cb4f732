"""Items and keys: injective both ways, clear about what does not fit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linsketch import ROOT, BytesKeys, IntKeys, TextKeys, Utf8Keys
from linsketch.errors import ItemError, PlanningError
from linsketch.keys import KeyIndex, KeySpace
from tests import strategies

LONG: list[KeySpace[Any]] = [
    IntKeys(1024),
    BytesKeys(100),
    Utf8Keys(1024),
    TextKeys(ROOT, 256),
]


@given(st.data())
def test_round_trip(data: st.DataObject) -> None:
    """Every item comes back, and its limbs stay below their bounds."""
    space = data.draw(strategies.spaces | st.sampled_from(LONG))
    items = data.draw(st.lists(strategies.items(space), max_size=10))
    keys = space.encode(items).keys
    assert space.decode(keys) == items
    assert keys.shape == (len(items), space.limbs)
    assert (keys < np.array(space.bounds, np.uint64)).all()
    assert space.valid(keys).all()


@given(st.data())
def test_injective(data: st.DataObject) -> None:
    """Different items have different keys."""
    space = data.draw(strategies.spaces)
    items = data.draw(st.lists(strategies.items(space), unique=True, max_size=20))
    keys = space.encode(items).keys
    assert len({tuple(key) for key in keys.tolist()}) == len(items)


def test_awkward_texts_survive() -> None:
    """The empty string, NULs, blanks, emoji and long addresses come back unchanged."""
    items = ["", "\0", "a\0\0", "  x  ", "trailing ", "🙂", "https://example.org/" + "p" * 80]
    space = Utf8Keys(100)
    assert space.decode(space.encode(items).keys) == items


def test_the_papers_domain() -> None:
    """46 characters at length 3 give d = 97,336, and every one of them a key of its own."""
    space = TextKeys(ROOT, 3)
    assert space.bounds == (97336,)
    everything = np.arange(97336, dtype=np.uint64)[:, None]
    assert np.array_equal(space.encode(space.decode(everything)).keys, everything)


def test_every_short_byte_string() -> None:
    """All strings of up to two bytes have keys of their own, and no other row is valid."""
    space = BytesKeys(2)
    strings = [b""] + [bytes([a]) for a in range(256)]
    strings += [bytes([a, b]) for a in range(256) for b in range(256)]
    keys = space.encode(strings).keys
    assert space.decode(keys) == strings
    everything = np.arange(2**17, dtype=np.uint64)[:, None]
    assert space.valid(everything).sum() == len(strings) == len(np.unique(keys))


@pytest.mark.parametrize(
    ("space", "item", "words"),
    [
        (IntKeys(8), 256, "256 is outside 0 .. 2**8 - 1"),
        (IntKeys(8), -1, "outside"),
        (IntKeys(8), 1.5, "not an integer"),
        (IntKeys(8), True, "not an integer"),
        (TextKeys("abc", 2), "abc", "has 3 characters, not 2"),
        (TextKeys("abc", 2), "ax", "outside the alphabet"),
        (BytesKeys(3), b"abcd", "has 4 bytes; these keys hold 3"),
        (BytesKeys(3), "abc", "is not bytes"),
        (Utf8Keys(3), "🙂", "has 4 bytes; these keys hold 3"),
        (Utf8Keys(9), "\ud800", "lone surrogate"),
        (Utf8Keys(9), None, "is not a text"),
    ],
)
def test_outside_the_domain(space: KeySpace[Any], item: Any, words: str) -> None:
    """The error names the item and the limit."""
    with pytest.raises(ItemError) as error:
        space.encode([item])
    assert words in str(error.value)
    assert repr(item) in str(error.value)


def test_drop_on_request() -> None:
    """By an explicit policy, items outside are dropped and counted."""
    encoded = Utf8Keys(3).encode(["ab", "abcd", "c"], outside="drop")
    assert encoded.kept.tolist() == [True, False, True]
    assert encoded.dropped == 1
    assert Utf8Keys(3).decode(encoded.keys) == ["ab", "c"]


def test_nothing_at_all() -> None:
    """No items give no keys."""
    assert Utf8Keys(3).encode([]).keys.shape == (0, 1)
    assert Utf8Keys(3).decode(np.empty((0, 1), np.uint64)) == []


def test_foreign_keys() -> None:
    """Keys of no item are told apart, and decoding them is an error."""
    broken = BytesKeys(2).encode([b"\xff"]).keys  # no UTF-8
    assert not Utf8Keys(2).valid(broken).any()
    with pytest.raises(ItemError, match="belongs to no item"):
        Utf8Keys(2).decode(broken)
    assert not BytesKeys(2).valid(np.array([[0]], np.uint64)).any()
    for space in (IntKeys(8), TextKeys("ab", 2)):
        with pytest.raises(ItemError, match="belongs to no item"):
            space.decode(np.array([[300]], np.uint64))


def test_numpy_integers_and_unknown_policies() -> None:
    """Sizes may be numpy's integers; a policy that does not exist is refused."""
    assert IntKeys(np.int64(8)) == IntKeys(8)  # type: ignore[arg-type]
    with pytest.raises(ItemError, match="ignore"):
        IntKeys(8).encode([1], outside="ignore")  # type: ignore[arg-type]
    with pytest.raises(ItemError, match="shape"):
        IntKeys(8).decode(np.array([1], np.uint64))


def test_integer_arrays() -> None:
    """Arrays of integers encode like lists, errors and dropping included."""
    space = IntKeys(8)
    for dtype in (np.int64, np.uint8, np.uint64):
        array = np.array([0, 7, 255], dtype)
        assert np.array_equal(space.encode(array).keys, space.encode(array.tolist()).keys)
    mixed = np.array([-1, 5, 256])
    assert space.encode(mixed, outside="drop").keys.tolist() == [[5]]
    assert space.encode(mixed, outside="drop").dropped == 2
    with pytest.raises(ItemError, match="-1"):
        space.encode(mixed)
    with pytest.raises(ItemError, match="ignore"):
        space.encode(array, outside="ignore")  # type: ignore[arg-type]
    large = np.array([0, 7, 2**64 - 1], np.uint64)
    assert IntKeys(64).decode(IntKeys(64).encode(large).keys) == large.tolist()
    assert np.array_equal(IntKeys(64).encode(large).keys, IntKeys(64).encode(large.tolist()).keys)


@pytest.mark.parametrize(
    "make",
    [
        lambda: IntKeys(0),
        lambda: IntKeys(2000),
        lambda: TextKeys("aa", 2),
        lambda: TextKeys("ab", 0),
        lambda: BytesKeys(0),
        lambda: Utf8Keys(5000),
        lambda: Utf8Keys(2.0),  # type: ignore[arg-type]
        lambda: IntKeys(True),
        lambda: TextKeys(["a", "b"], 2),  # type: ignore[arg-type]
    ],
)
def test_impossible_spaces(make: Any) -> None:
    """Spaces that cannot be are refused."""
    with pytest.raises(PlanningError):
        make()


@pytest.mark.parametrize("same_hash", [False, True])
def test_an_index_gives_each_key_one_row(same_hash: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys get rows in the order of their arrival and keep them, also if all hashes are equal."""
    if same_hash:
        alike = lambda keys, _: np.zeros(len(keys), np.uint64)  # noqa: E731
        monkeypatch.setattr("linsketch.hashing.digest", alike)
    rng, space = np.random.default_rng(1), IntKeys(128)
    index, rows = KeyIndex(space.limbs), dict[int, int]()
    for _ in range(20):
        items = [int(item) for item in rng.permutation(60)[: rng.integers(0, 15)]]
        found = index.add(space.encode(items).keys).tolist()
        for item, row in zip(items, found, strict=True):
            assert rows.setdefault(item, row) == row
    assert sorted(rows.values()) == list(range(len(index)))
    everything = index.find(space.encode(range(60)).keys).tolist()
    assert everything == [rows.get(item, -1) for item in range(60)]
