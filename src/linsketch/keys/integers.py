"""Integers as keys."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linsketch.arrays import Mask, Uint64s
from linsketch.keys.base import Encoded, KeySpace, Outside
from linsketch.keys.limbs import bit_bounds, bytes_to_limbs, limbs_to_bytes
from linsketch.validation import whole_number


@dataclass(frozen=True)
class IntKeys(KeySpace[int]):
    """Integers from 0 to 2**bits - 1.

    >>> space = IntKeys(32)
    >>> space.decode(space.encode([0, 7, 2**32 - 1]).keys)
    [0, 7, 4294967295]
    """

    bits: int

    def __post_init__(self) -> None:
        whole_number(self, "bits", 1, 1024)

    @property
    def name(self) -> str:
        """The space in a word."""
        return f"int:{self.bits}"

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """What each limb of a key stays below."""
        return bit_bounds(self.bits)

    def encode(self, items: Iterable[int], outside: Outside = "raise") -> Encoded:
        """Turn integers into keys; arrays go without a Python loop, for keys of up to 64 bits."""
        if isinstance(items, np.ndarray) and items.dtype.kind in "iu" and self.bits <= 64:
            kept: Mask = (items >= 0) & (items < 1 << self.bits)
            if items.ndim == 1 and (outside == "drop" or (outside == "raise" and kept.all())):
                return Encoded(self._split(items[kept].astype("<u8")), kept)
        return super().encode(items, outside)

    def _split(self, numbers: Uint64s) -> Uint64s:
        return bytes_to_limbs(numbers.view(np.uint8).reshape(-1, 8), self.bounds)

    def _reasons(self, items: Sequence[int]) -> list[str | None]:
        limit = 1 << self.bits
        return [
            (None if 0 <= item < limit else f"is outside 0 .. 2**{self.bits} - 1")
            if isinstance(item, int | np.integer) and not isinstance(item, bool)
            else "is not an integer"
            for item in items
        ]

    def _to_keys(self, items: Sequence[int]) -> Uint64s:
        if self.bits <= 64:
            return self._split(np.array(items, "<u8"))
        length = -(-self.bits // 8)
        flat = b"".join(int(item).to_bytes(length, "little") for item in items)
        return bytes_to_limbs(np.frombuffer(flat, np.uint8).reshape(-1, length), self.bounds)

    def _to_items(self, keys: Uint64s) -> list[int]:
        if self.bits <= 64:
            rows = np.ascontiguousarray(limbs_to_bytes(keys, self.bounds, 8))
            return list(rows.view("<u8")[:, 0].tolist())
        rows = limbs_to_bytes(keys, self.bounds, -(-self.bits // 8))
        return [int.from_bytes(row, "little") for row in map(bytes, rows)]
