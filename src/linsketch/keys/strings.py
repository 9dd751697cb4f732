"""Strings of bytes, and texts in UTF-8, as keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linsketch.arrays import Mask, Uint64s
from linsketch.keys.base import KeySpace
from linsketch.keys.limbs import bit_bounds, bytes_to_limbs, limbs_to_bytes
from linsketch.validation import whole_number


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
        whole_number(self, "max_bytes", 1, 1024)

    @property
    def name(self) -> str:
        """The space in a word."""
        return f"bytes:{self.max_bytes}"

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """What each limb of a key stays below."""
        return bit_bounds(8 * self.max_bytes + 1)

    def to_json(self, item: bytes) -> str:
        """Return the bytes in hex."""
        return item.hex()

    def from_json(self, value: Any) -> bytes:
        """Read bytes from hex."""
        return bytes.fromhex(value)

    def _reasons(self, items: Sequence[bytes]) -> list[str | None]:
        return [
            (None if len(item) <= self.max_bytes else self._too_long(len(item)))
            if isinstance(item, bytes)
            else "is not bytes"
            for item in items
        ]

    def _too_long(self, length: int) -> str:
        return f"has {length} bytes; these keys hold {self.max_bytes}"

    def _to_keys(self, items: Sequence[bytes]) -> Uint64s:
        lengths = np.fromiter(map(len, items), np.int64, len(items))
        rows = np.zeros((len(items), self.max_bytes + 1), np.uint8)
        rows[np.arange(rows.shape[1]) < lengths[:, None]] = np.frombuffer(b"".join(items), np.uint8)
        rows[np.arange(len(items)), lengths] = 1
        return bytes_to_limbs(rows, self.bounds)

    def _rows(self, keys: Uint64s) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
        """Return the bytes of each key, and where its last one that is not zero lies."""
        rows = limbs_to_bytes(keys, self.bounds, self.max_bytes + 1)
        return rows, self.max_bytes - np.argmax(rows[:, ::-1] != 0, axis=1)

    def _genuine(self, keys: Uint64s) -> Mask:
        rows, ends = self._rows(keys)
        return np.asarray(rows[np.arange(len(rows)), ends] == 1)

    def _to_items(self, keys: Uint64s) -> list[bytes]:
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
        whole_number(self, "max_bytes", 1, 1024)

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

    def _to_keys(self, items: Sequence[str]) -> Uint64s:
        return self._bytes._to_keys([item.encode() for item in items])

    def _genuine(self, keys: Uint64s) -> Mask:
        marked = self._bytes._genuine(keys)
        doubtful = marked & np.any(limbs_to_bytes(keys, self.bounds, self.max_bytes) > 127, axis=1)
        marked[doubtful] = [_is_utf8(item) for item in self._bytes._to_items(keys[doubtful])]
        return marked

    def _to_items(self, keys: Uint64s) -> list[str]:
        return [item.decode() for item in self._bytes._to_items(keys)]


def _is_utf8(item: bytes) -> bool:
    try:
        item.decode()
    except UnicodeDecodeError:
        return False
    return True
