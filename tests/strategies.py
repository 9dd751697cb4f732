"""Hypothesis strategies: key spaces, items of them, histograms, rings and tables."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from linsketch import (
    IBLT,
    ROOT,
    BytesKeys,
    IntKeys,
    Ring,
    RingVector,
    Seeds,
    Segment,
    Size,
    TextKeys,
    Utf8Keys,
)
from linsketch.keys import KeySpace

MODULI = (2, 3, 251, 256, 509, 2**16, 65521, 2**31 - 1, 2**61 - 1, 2**62 - 57, 2**63)

spaces: st.SearchStrategy[KeySpace[Any]] = st.one_of(
    st.builds(IntKeys, st.sampled_from([1, 8, 17, 60, 61, 62, 64, 128])),
    st.builds(TextKeys, st.sampled_from(["ab", ROOT, "åé🙂z"]), st.sampled_from([1, 3, 22])),
    st.builds(BytesKeys, st.sampled_from([1, 7, 8, 20])),
    st.builds(Utf8Keys, st.sampled_from([4, 20])),
)
"""Keys of one to three limbs: each number of limbs compiles loops of its own."""


def items(space: KeySpace[Any]) -> st.SearchStrategy[Any]:
    """Draw items of a space."""
    if isinstance(space, IntKeys):
        return st.integers(0, 2**space.bits - 1)
    if isinstance(space, TextKeys):
        return st.text(
            st.sampled_from(space.alphabet), min_size=space.length, max_size=space.length
        )
    if isinstance(space, BytesKeys):
        return st.binary(max_size=space.max_bytes)
    assert isinstance(space, Utf8Keys)
    ascii_text = st.text(st.characters(codec="ascii"), max_size=space.max_bytes)
    return ascii_text | st.text(st.characters(codec="utf-8"), max_size=space.max_bytes // 4)


def histograms(space: KeySpace[Any], most: int = 8) -> st.SearchStrategy[dict[Any, int]]:
    """Draw small histograms over a space."""
    return st.dictionaries(items(space), st.integers(1, 1000), max_size=most)


sizes = st.builds(
    lambda k, extra, cells: Size(k, k + extra, cells),
    st.sampled_from([3, 4]),
    st.sampled_from([0, 0, 2, 9]),
    st.integers(1, 30),
)


@st.composite
def tables(draw: st.DrawFn, layout: str | None = None) -> IBLT:
    """Draw tables of every layout, size and key space."""
    return IBLT(
        draw(spaces),
        draw(sizes),
        draw(st.sampled_from([10**5, 2**31])),
        Seeds(draw(st.binary(min_size=1, max_size=4)), draw(st.none() | st.integers(0, 5))),
        draw(st.sampled_from(["compact", "paper"])) if layout is None else layout,  # type: ignore[arg-type]
    )


rings = st.lists(
    st.builds(Segment, st.integers(1, 20), st.sampled_from(MODULI)), min_size=1, max_size=4
).map(lambda segments: Ring(tuple(segments)))


def vectors(ring: Ring) -> st.SearchStrategy[RingVector]:
    """Draw elements of a ring."""
    return st.tuples(
        *(
            st.lists(st.integers(0, s.modulus - 1), min_size=s.length, max_size=s.length)
            for s in ring.segments
        )
    ).map(lambda lists: ring.vector([np.array(entries, np.uint64) for entries in lists]))
