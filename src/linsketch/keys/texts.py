"""Texts of a fixed length over an alphabet as keys, like those of the paper's experiments."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from linsketch.arrays import Uint64s
from linsketch.errors import PlanningError
from linsketch.keys.base import KeySpace
from linsketch.keys.limbs import MAX_LIMB_BITS
from linsketch.validation import instance, whole_number

ROOT = "abcdefghijklmnopqrstuvwxyz0123456789'@#-;*:./_"
"""The 46 characters of the paper's experiments (section 7)."""


@dataclass(frozen=True)
class TextKeys(KeySpace[str]):
    """Texts of exactly `length` characters of an alphabet.

    >>> space = TextKeys(ROOT, 3)
    >>> space.bounds
    (97336,)
    >>> space.decode(space.encode(["the", "c++"], outside="drop").keys)
    ['the']
    """

    alphabet: str
    length: int
    _codes: NDArray[np.uint32] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        instance(self, "alphabet", str)
        if len(set(self.alphabet)) != len(self.alphabet) or len(self.alphabet) < 2:
            raise PlanningError("An alphabet needs two or more characters, all different.")
        whole_number(self, "length", 1, 256)
        codes = np.array([ord(character) for character in self.alphabet], np.uint32)
        object.__setattr__(self, "_codes", codes)

    @cached_property
    def _widths(self) -> tuple[int, ...]:
        """Characters in each limb."""
        most = next(n for n in range(64, 0, -1) if len(self.alphabet) ** n <= 1 << MAX_LIMB_BITS)
        limbs = -(-self.length // most)
        width = -(-self.length // limbs)
        return (width,) * (limbs - 1) + (self.length - width * (limbs - 1),)

    @property
    def name(self) -> str:
        """The space in a word."""
        return f"text:{self.length}:{self.alphabet}"

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """What each limb of a key stays below."""
        return tuple(len(self.alphabet) ** width for width in self._widths)

    def _reasons(self, items: Sequence[str]) -> list[str | None]:
        allowed = set(self.alphabet)

        def reason(item: object) -> str | None:
            if not isinstance(item, str):
                return "is not a text"
            if len(item) != self.length:
                return f"has {len(item)} characters, not {self.length}"
            return None if allowed.issuperset(item) else "has characters outside the alphabet"

        return [reason(item) for item in items]

    def _to_keys(self, items: Sequence[str]) -> Uint64s:
        codes = np.frombuffer("".join(items).encode("utf-32-le"), "<u4").reshape(-1, self.length)
        order = np.argsort(self._codes)
        digits = order[np.searchsorted(self._codes, codes, sorter=order)].astype(np.uint64)
        keys = np.zeros((len(items), self.limbs), np.uint64)
        first = 0
        for limb, width in enumerate(self._widths):
            for digit in digits[:, first : first + width].T:
                keys[:, limb] = keys[:, limb] * np.uint64(len(self.alphabet)) + digit
            first += width
        return keys

    def _to_items(self, keys: Uint64s) -> list[str]:
        codes = np.empty((len(keys), self.length), "<u4")
        first = 0
        for limb, width in enumerate(self._widths):
            rest = keys[:, limb]
            for position in range(first + width - 1, first - 1, -1):
                rest, digit = np.divmod(rest, np.uint64(len(self.alphabet)))
                codes[:, position] = self._codes[digit]
            first += width
        text = codes.tobytes().decode("utf-32-le")
        return [text[i : i + self.length] for i in range(0, len(text), self.length)]
