"""The loop that inserts keys into a table."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import int64, njit, uint64

from linsketch.kernels.integers import (
    ONE,
    add_mod,
    mix,
    multiply_mod,
    prefetch_row,
    reduce_mod,
    scale,
)
from linsketch.kernels.table import CHECK, HALF, LIMBS, WEIGHT, Table, check_of, offset_in_segment

BLOCK = 32  # keys hashed before their cells are touched


@cache
def encoder(k: int, limbs: int, valued: bool) -> Callable[..., None]:
    """Return the loop that inserts keys.

    k, limbs and layout are constants of the compiled loop: unrolled, it is twice as fast.
    """
    fields = LIMBS + limbs + valued

    @njit(cache=True)
    def encode(table: Any, keys: Any, weights: Any, values: Any, t: Table) -> None:
        p = (ONE << t.key_bits) - t.key_delta
        cells = np.empty((BLOCK, k), np.uint64)
        added = np.empty((BLOCK, fields), np.uint64)
        for first in range(0, len(keys), BLOCK):
            block = uint64(min(BLOCK, len(keys) - first))
            # Arithmetic without wide products, which the compiler turns into SIMD.
            for i in range(block):
                digest = t.seed
                for limb in range(limbs):
                    digest = mix(digest ^ keys[uint64(first) + i, limb])
                word = mix(digest ^ t.tweak_2)
                cell = scale(word >> HALF, t.starts) * t.segment_cells
                for way in range(k):
                    cells[i, way] = cell + offset_in_segment(t, digest, way)
                    cell += t.segment_cells
                weight = weights[uint64(first) + i]
                added[i, WEIGHT] = weight
                added[i, CHECK] = weight * check_of(t, word)
                if valued:
                    added[i, fields - 1] = values[uint64(first) + i]
            for i in range(block):
                for way in range(k):
                    prefetch_row(table, int64(cells[i, way]))
                added[i, CHECK] = reduce_mod(added[i, CHECK], t.check_modulus, t.check_reciprocal)
                for limb in range(limbs):
                    added[i, LIMBS + limb] = multiply_mod(
                        added[i, WEIGHT], keys[uint64(first) + i, limb], t.key_bits, t.key_delta
                    )
            for i in range(block):
                for way in range(k):
                    cell = cells[i, way]
                    table[cell, WEIGHT] = add_mod(
                        table[cell, WEIGHT], added[i, WEIGHT], t.weight_modulus
                    )
                    table[cell, CHECK] = add_mod(
                        table[cell, CHECK], added[i, CHECK], t.check_modulus
                    )
                    for field in range(LIMBS, LIMBS + limbs):
                        table[cell, field] = add_mod(table[cell, field], added[i, field], p)
                    if valued:
                        table[cell, fields - 1] = add_mod(
                            table[cell, fields - 1], added[i, fields - 1], t.weight_modulus
                        )

    return encode
