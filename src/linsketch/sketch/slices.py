"""Slices: parts of all keys, cut from a circle of 2**32 places by a hash."""

from dataclasses import dataclass

import numpy as np

from linsketch import hashing
from linsketch.arrays import Mask, Uint64s
from linsketch.hashing import Seeds
from linsketch.validation import whole_number

WHOLE = 1 << 32


@dataclass(frozen=True)
class Slice:
    """The keys whose place on the circle is start .. start + width - 1, modulo 2**32."""

    start: int
    width: int

    def __post_init__(self) -> None:
        whole_number(self, "start", 0, WHOLE - 1)
        whole_number(self, "width", 1, WHOLE)

    def holds(self, places: Uint64s) -> Mask:
        """Tell which places lie in the slice."""
        inside: Mask = (places - np.uint64(self.start)) % np.uint64(WHOLE) < np.uint64(self.width)
        return inside


def slice_places(seed: bytes, keys: Uint64s) -> Uint64s:
    """Return where keys lie on the circle: by a hash that is the same in all rounds."""
    (tweak,) = Seeds(seed).integers("slices", 1)
    places: Uint64s = hashing.digest(keys, tweak) >> np.uint64(32)
    return places
