"""Long numbers as limbs of nearly equal width, vectorised both ways."""

import numpy as np
from numpy.typing import NDArray

from linsketch.arrays import Uint64s

MAX_LIMB_BITS = 61


def bit_bounds(bits: int) -> tuple[int, ...]:
    """Split a number of `bits` bits into limbs of nearly equal width."""
    limbs = -(-bits // MAX_LIMB_BITS)
    width = -(-bits // limbs)
    return (1 << width,) * (limbs - 1) + (1 << bits - width * (limbs - 1),)


def bytes_to_limbs(rows: NDArray[np.uint8], bounds: tuple[int, ...]) -> Uint64s:
    """Cut rows of little-endian bytes into limbs of the bounds' width."""
    width = bounds[0].bit_length() - 1
    padded = np.zeros((len(rows), 8 * (-(-rows.shape[1] // 8) + 1)), np.uint8)
    padded[:, : rows.shape[1]] = rows
    pieces = padded.view("<u8")
    keys = np.empty((len(rows), len(bounds)), np.uint64)
    for limb, bound in enumerate(bounds):
        word, shift = divmod(limb * width, 64)
        keys[:, limb] = pieces[:, word] >> np.uint64(shift)
        if shift:
            keys[:, limb] |= pieces[:, word + 1] << np.uint64(64 - shift)
        keys[:, limb] &= np.uint64(bound - 1)
    return keys


def limbs_to_bytes(keys: Uint64s, bounds: tuple[int, ...], length: int) -> NDArray[np.uint8]:
    """Undo `bytes_to_limbs`."""
    width = bounds[0].bit_length() - 1
    pieces = np.zeros((len(keys), width * len(bounds) // 64 + 2), "<u8")
    for limb in range(len(bounds)):
        word, shift = divmod(limb * width, 64)
        pieces[:, word] |= keys[:, limb] << np.uint64(shift)
        if shift:
            pieces[:, word + 1] |= keys[:, limb] >> np.uint64(64 - shift)
    return pieces.view(np.uint8)[:, :length]
