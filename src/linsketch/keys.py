"""Items and keys: injective maps between what a user has and rows of ring elements (limbs).

Law: `space.decode(space.encode(items).keys) == items` for every item of the domain. A limb lies
below its bound, and a bound never exceeds 2**61, so that a prime of at most 62 bits holds it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from linsketch.arrays import Mask, Words
from linsketch.errors import ItemError, PlanningError

MAX_LIMB_BITS = 61
_CHUNK = 1 << 16  # keys checked at once, to bound the memory
ROOT = "abcdefghijklmnopqrstuvwxyz0123456789'@#-;*:./_"
"""The 46 characters of the paper's experiments (section 7)."""

Item = TypeVar("Item")
Outside = Literal["raise", "drop"]


class Encoded(NamedTuple):
    """Keys of the items that were kept, one row an item."""

    keys: Words
    kept: Mask  # one entry for each item given

    @property
    def dropped(self) -> int:
        """How many items lay outside the domain."""
        return int(len(self.kept) - self.kept.sum())


class KeySpace(ABC, Generic[Item]):
    """A domain of items, each with a key of `len(bounds)` limbs."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The space in a word, like utf8:20."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[int, ...]:
        """What each limb of a key stays below."""

    @property
    def limbs(self) -> int:
        """Ring elements in a key."""
        return len(self.bounds)

    def encode(self, items: Iterable[Item], outside: Outside = "raise") -> Encoded:
        """Turn items into keys; an item outside the domain is an error, or dropped on request."""
        given = list(items)
        reasons = self._reasons(given)
        kept = np.array([reason is None for reason in reasons], bool)
        if not kept.all():
            if outside != "drop":
                first = int(np.argmin(kept))
                raise ItemError(
                    f"The item {_short(given[first])} {reasons[first]}. Take larger keys, or drop "
                    'such items: keys.encode(items, outside="drop") says how many.'
                )
            given = [item for item, keep in zip(given, kept, strict=True) if keep]
        if not given:
            return Encoded(np.empty((0, self.limbs), np.uint64), kept)
        return Encoded(self._to_keys(given), kept)

    def decode(self, keys: Words) -> list[Item]:
        """Turn keys back into items."""
        valid = self.valid(keys)
        if not valid.all():
            raise ItemError(f"Key {keys[np.argmin(valid)].tolist()} belongs to no item.")
        return self._to_items(keys) if len(keys) else []

    def valid(self, keys: Words) -> Mask:
        """Tell which keys belong to an item; false peels and hostile tables hold others."""
        inside: Mask = np.all(keys < np.array(self.bounds, np.uint64), axis=1)
        for first in range(0, len(keys), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            inside[chunk] &= self._genuine(keys[chunk])
        return inside

    def _genuine(self, keys: Words) -> Mask:
        """Tell which keys of limbs below their bounds belong to an item: all, unless overridden."""
        return np.ones(len(keys), bool)

    @abstractmethod
    def _reasons(self, items: Sequence[Item]) -> list[str | None]:
        """Say for each item why it lies outside the domain, None where it does not."""

    @abstractmethod
    def _to_keys(self, items: Sequence[Item]) -> Words: ...

    @abstractmethod
    def _to_items(self, keys: Words) -> list[Item]: ...


def _short(item: object) -> str:
    text = repr(item)
    return text if len(text) <= 60 else f"{text[:40]}... ({len(text)} characters)"


def _bit_bounds(bits: int) -> tuple[int, ...]:
    """Split a number of `bits` bits into limbs of nearly equal width."""
    limbs = -(-bits // MAX_LIMB_BITS)
    width = -(-bits // limbs)
    return (1 << width,) * (limbs - 1) + (1 << bits - width * (limbs - 1),)


def _bytes_to_limbs(rows: NDArray[np.uint8], bounds: tuple[int, ...]) -> Words:
    """Cut rows of little-endian bytes into limbs of the bounds' width."""
    width = bounds[0].bit_length() - 1
    padded = np.zeros((len(rows), 8 * (-(-rows.shape[1] // 8) + 1)), np.uint8)
    padded[:, : rows.shape[1]] = rows
    words = padded.view("<u8")
    keys = np.empty((len(rows), len(bounds)), np.uint64)
    for limb, bound in enumerate(bounds):
        word, shift = divmod(limb * width, 64)
        keys[:, limb] = words[:, word] >> np.uint64(shift)
        if shift:
            keys[:, limb] |= words[:, word + 1] << np.uint64(64 - shift)
        keys[:, limb] &= np.uint64(bound - 1)
    return keys


def _limbs_to_bytes(keys: Words, bounds: tuple[int, ...], length: int) -> NDArray[np.uint8]:
    """Undo `_bytes_to_limbs`."""
    width = bounds[0].bit_length() - 1
    words = np.zeros((len(keys), width * len(bounds) // 64 + 2), "<u8")
    for limb in range(len(bounds)):
        word, shift = divmod(limb * width, 64)
        words[:, word] |= keys[:, limb] << np.uint64(shift)
        if shift:
            words[:, word + 1] |= keys[:, limb] >> np.uint64(64 - shift)
    return words.view(np.uint8)[:, :length]


@dataclass(frozen=True)
class IntKeys(KeySpace[int]):
    """Integers from 0 to 2**bits - 1.

    >>> space = IntKeys(32)
    >>> space.decode(space.encode([0, 7, 2**32 - 1]).keys)
    [0, 7, 4294967295]
    """

    bits: int

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 1024:
            raise PlanningError(f"IntKeys take 1 to 1024 bits, not {self.bits}.")

    @property
    def name(self) -> str:
        """The space in a word."""
        return f"int:{self.bits}"

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """What each limb of a key stays below."""
        return _bit_bounds(self.bits)

    def encode(self, items: Iterable[int], outside: Outside = "raise") -> Encoded:
        """Turn integers into keys; arrays of at most 64 bits go without a Python loop."""
        if isinstance(items, np.ndarray) and items.dtype.kind in "iu" and self.limbs == 1:
            kept: Mask = (items >= 0) & (items < 1 << self.bits)
            if items.ndim == 1 and (kept.all() or outside == "drop"):
                return Encoded(items[kept].astype(np.uint64)[:, None], kept)
        return super().encode(items, outside)

    def _reasons(self, items: Sequence[int]) -> list[str | None]:
        limit = 1 << self.bits
        return [
            (None if 0 <= item < limit else f"is outside 0 .. 2**{self.bits} - 1")
            if isinstance(item, int | np.integer) and not isinstance(item, bool)
            else "is not an integer"
            for item in items
        ]

    def _to_keys(self, items: Sequence[int]) -> Words:
        if self.limbs == 1:
            return np.array(items, np.uint64)[:, None]
        length = -(-self.bits // 8)
        flat = b"".join(int(item).to_bytes(length, "little") for item in items)
        return _bytes_to_limbs(np.frombuffer(flat, np.uint8).reshape(-1, length), self.bounds)

    def _to_items(self, keys: Words) -> list[int]:
        if self.limbs == 1:
            return list(keys[:, 0].tolist())
        rows = _limbs_to_bytes(keys, self.bounds, -(-self.bits // 8))
        return [int.from_bytes(row, "little") for row in map(bytes, rows)]


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
        if len(set(self.alphabet)) != len(self.alphabet) or len(self.alphabet) < 2:
            raise PlanningError("An alphabet needs two or more characters, all different.")
        if not 1 <= self.length <= 256:
            raise PlanningError(f"TextKeys take 1 to 256 characters, not {self.length}.")
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

    def _to_keys(self, items: Sequence[str]) -> Words:
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

    def _to_items(self, keys: Words) -> list[str]:
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


@dataclass(frozen=True)
class BytesKeys(KeySpace[bytes]):
    r"""Byte strings of at most `max_bytes` bytes, the empty one and NULs included.

    The key is the string, a 1 bit to mark its end, and zeros: one bit more than the string.

    >>> space = BytesKeys(4)
    >>> space.decode(space.encode([b"", b"a\0\0"]).keys)
    [b'', b'a\x00\x00']
    """

    max_bytes: int

    def __post_init__(self) -> None:
        if not 1 <= self.max_bytes <= 1024:
            raise PlanningError(f"Keys take 1 to 1024 bytes, not {self.max_bytes}.")

    @property
    def name(self) -> str:
        """The space in a word."""
        return f"bytes:{self.max_bytes}"

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """What each limb of a key stays below."""
        return _bit_bounds(8 * self.max_bytes + 1)

    def _reasons(self, items: Sequence[bytes]) -> list[str | None]:
        return [
            (None if len(item) <= self.max_bytes else self._too_long(len(item)))
            if isinstance(item, bytes)
            else "is not bytes"
            for item in items
        ]

    def _too_long(self, length: int) -> str:
        return f"has {length} bytes; these keys hold {self.max_bytes}"

    def _to_keys(self, items: Sequence[bytes]) -> Words:
        lengths = np.fromiter(map(len, items), np.int64, len(items))
        rows = np.zeros((len(items), self.max_bytes + 1), np.uint8)
        rows[np.arange(rows.shape[1]) < lengths[:, None]] = np.frombuffer(b"".join(items), np.uint8)
        rows[np.arange(len(items)), lengths] = 1
        return _bytes_to_limbs(rows, self.bounds)

    def _rows(self, keys: Words) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
        """Return the bytes of each key, and where its last one that is not zero lies."""
        rows = _limbs_to_bytes(keys, self.bounds, self.max_bytes + 1)
        return rows, self.max_bytes - np.argmax(rows[:, ::-1] != 0, axis=1)

    def _genuine(self, keys: Words) -> Mask:
        rows, ends = self._rows(keys)
        return np.asarray(rows[np.arange(len(rows)), ends] == 1)

    def _to_items(self, keys: Words) -> list[bytes]:
        rows, ends = self._rows(keys)
        flat, width = rows.tobytes(), rows.shape[1]
        return [flat[i * width : i * width + end] for i, end in enumerate(ends.tolist())]


@dataclass(frozen=True)
class Utf8Keys(KeySpace[str]):
    """Texts whose UTF-8 form has at most `max_bytes` bytes.

    >>> space = Utf8Keys(8)
    >>> space.decode(space.encode(["", "naïve ", "🙂"]).keys)
    ['', 'naïve ', '🙂']
    """

    max_bytes: int

    def __post_init__(self) -> None:
        BytesKeys(self.max_bytes)

    @property
    def name(self) -> str:
        """The space in a word."""
        return f"utf8:{self.max_bytes}"

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """What each limb of a key stays below."""
        return self._bytes.bounds

    @cached_property
    def _bytes(self) -> BytesKeys:
        return BytesKeys(self.max_bytes)

    def _reasons(self, items: Sequence[str]) -> list[str | None]:
        def reason(item: object) -> str | None:
            if not isinstance(item, str):
                return "is not a text"
            try:
                length = len(item.encode())
            except UnicodeEncodeError:
                return "has half a character (a lone surrogate), which UTF-8 cannot hold"
            return None if length <= self.max_bytes else self._bytes._too_long(length)

        return [reason(item) for item in items]

    def _to_keys(self, items: Sequence[str]) -> Words:
        return self._bytes._to_keys([item.encode() for item in items])

    def _genuine(self, keys: Words) -> Mask:
        marked = self._bytes._genuine(keys)
        doubtful = marked & (self._bytes._rows(keys)[0] > 127).any(axis=1)
        marked[doubtful] = [_is_utf8(item) for item in self._bytes._to_items(keys[doubtful])]
        return marked

    def _to_items(self, keys: Words) -> list[str]:
        return [item.decode() for item in self._bytes._to_items(keys)]


def _is_utf8(item: bytes) -> bool:
    try:
        item.decode()
    except UnicodeDecodeError:
        return False
    return True
