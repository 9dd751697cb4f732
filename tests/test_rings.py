"""Vectors over segments of Z_q: a group, and exact bytes."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linsketch import Ring, Segment
from linsketch.errors import PlanningError, VectorError, WireError
from linsketch.rings import HEADER_BYTES, is_prime, largest_prime
from tests import strategies

MUST_FAIL = json.loads((Path(__file__).parent / "vectors/wire.json").read_text(encoding="utf-8"))[
    "must_fail"
]


@given(st.data())
def test_group_laws(data: st.DataObject) -> None:
    """Addition is associative and commutative, with zero and negatives."""
    ring = data.draw(strategies.rings)
    a, b, c = (data.draw(strategies.vectors(ring)) for _ in range(3))
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + ring.zeros() == a
    assert a + -a == ring.zeros()
    assert a - b == a + -b
    assert ring.sum([a, b, c]) == sum([a, b, c]) == a + b + c


@given(st.data())
def test_addition_is_that_of_integers(data: st.DataObject) -> None:
    """Entries add up like integers modulo q."""
    ring = data.draw(strategies.rings)
    a, b = (data.draw(strategies.vectors(ring)) for _ in range(2))
    for segment, x, y, z in zip(ring.segments, a.arrays, b.arrays, (a + b).arrays, strict=True):
        expected = [(i + j) % segment.modulus for i, j in zip(x.tolist(), y.tolist(), strict=True)]
        assert z.tolist() == expected


@given(st.data(), st.binary(max_size=4))
def test_wire_round_trip(data: st.DataObject, context: bytes) -> None:
    """Packing is exact in content and size."""
    ring = data.draw(strategies.rings)
    vector = data.draw(strategies.vectors(ring))
    message = vector.pack(context)
    assert ring.unpack(message, context) == vector
    assert len(message) == ring.wire_bytes + HEADER_BYTES
    assert ring.wire_bits == sum(s.length * (s.modulus - 1).bit_length() for s in ring.segments)
    assert ring.wire_words == -(-ring.wire_bits // 16)


@given(st.data())
def test_any_damage_is_noticed(data: st.DataObject) -> None:
    """A message with any byte changed, cut off or added is refused."""
    ring = data.draw(strategies.rings)
    message = bytearray(data.draw(strategies.vectors(ring)).pack())
    how = data.draw(st.sampled_from(["change", "cut", "add"]))
    if how == "change":
        at = data.draw(st.integers(0, len(message) - 1))
        message[at] ^= data.draw(st.integers(1, 255))
    elif how == "cut":
        del message[data.draw(st.integers(0, len(message) - 1)) :]
    else:
        message += data.draw(st.binary(min_size=1, max_size=3))
    with pytest.raises(WireError):
        ring.unpack(bytes(message))


@pytest.mark.parametrize(("message", "words"), [case[1:] for case in MUST_FAIL["bad"]])
def test_must_fail(message: str, words: str) -> None:
    """Each committed bad message is refused for its own reason."""
    ring = Ring(tuple(Segment(*segment) for segment in MUST_FAIL["segments"]))
    ring.unpack(bytes.fromhex(MUST_FAIL["good"]), bytes.fromhex(MUST_FAIL["context"]))
    with pytest.raises(WireError, match=words):
        ring.unpack(bytes.fromhex(message), bytes.fromhex(MUST_FAIL["context"]))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([0.5, 1, 2]), "not integers"),
        (np.array([np.nan, 1, 2]), "not integers"),
        (np.array([0, 1]), "shape"),
        (np.array([0, 1, 5]), "outside 0 .. 4"),
        (np.array([0, 1, -1]), "outside"),
    ],
)
def test_foreign_arrays(array: np.ndarray, words: str) -> None:
    """Arrays that are no vector of the ring are refused."""
    with pytest.raises(VectorError, match=words):
        Ring((Segment(3, 5),)).vector([array])


def test_not_even_bytes() -> None:
    """Other types than bytes do not unpack; views of bytes do."""
    ring = Ring((Segment(3, 5),))
    with pytest.raises(WireError, match="Bytes are wanted, not str"):
        ring.unpack("text")  # type: ignore[arg-type]
    assert ring.unpack(memoryview(ring.zeros().pack())) == ring.zeros()  # type: ignore[arg-type]


def test_other_rings_do_not_mix() -> None:
    """Vectors of different rings do not add up."""
    with pytest.raises(VectorError, match="different rings"):
        Ring((Segment(3, 5),)).zeros() + Ring((Segment(3, 7),)).zeros()
    with pytest.raises(VectorError, match="2 arrays"):
        Ring((Segment(1, 5),)).vector([np.array([1]), np.array([1])])


@pytest.mark.parametrize(("length", "modulus"), [(0, 5), (1, 1), (1, 6), (1, 2**64), (1, 561)])
def test_impossible_segments(length: int, modulus: int) -> None:
    """A modulus is a prime or a power of two, up to 2**63."""
    with pytest.raises(PlanningError):
        Segment(length, modulus)


def test_a_ring_has_segments() -> None:
    """The empty ring is refused."""
    with pytest.raises(PlanningError):
        Ring(())


def test_primes() -> None:
    """Primality agrees with trial division, and the famous primes are found."""
    for n in range(2000):
        assert is_prime(n) == (n > 1 and all(n % i for i in range(2, n)))
    assert [largest_prime(bits) for bits in (8, 9, 17, 31, 61, 62)] == [
        251, 509, 2**17 - 1, 2**31 - 1, 2**61 - 1, 2**62 - 57,
    ]  # fmt: skip
