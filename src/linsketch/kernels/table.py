"""What the loops over an invertible Bloom lookup table share.

A table is a C-contiguous uint64 array with one row a cell: weight, check, the key's limbs and,
in the paper's layout, value (a row may be padded). Inserting a key with weight w adds
(w, w * check, w * limb ..., value) to one cell in each of k neighbouring segments. The compact
layout is the one where the weight is the value; the paper's counts insertions as weight.
docs/math.md has the laws and proofs.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, uint64

from linsketch.kernels.integers import LOW_32, mix, scale

WEIGHT, CHECK, LIMBS = 0, 1, 2
HALF = uint64(32)


class Table(NamedTuple):
    """What the loops need to know of a table, all of it uint64."""

    starts: np.uint64  # segments in which a key's first cell may lie
    segment_cells: np.uint64
    weight_modulus: np.uint64  # also of the value in the paper's layout
    check_modulus: np.uint64
    check_reciprocal: np.uint64  # (2**64 - 1) // check_modulus
    key_bits: np.uint64  # the key modulus is 2**key_bits - key_delta
    key_delta: np.uint64
    max_weight: np.uint64
    seed: np.uint64
    tweak_0: np.uint64
    tweak_1: np.uint64
    tweak_2: np.uint64


@njit(inline="always")
def offset_in_segment(t: Table, digest: int, way: int) -> int:
    """Return where in its segment a key's cell number `way` lies."""
    word = mix(digest ^ (t.tweak_0 if way < 2 else t.tweak_1))
    return scale(word & LOW_32 if way & 1 else word >> HALF, t.segment_cells)


@njit(inline="always")
def check_of(t: Table, word: int) -> int:
    """Return the check, 1 .. check_modulus - 1, from the low half of a key's last word.

    Never 0, or a key of zeros would leave a trace in the weight alone.
    """
    return scale(word & LOW_32, t.check_modulus - uint64(1)) + uint64(1)
