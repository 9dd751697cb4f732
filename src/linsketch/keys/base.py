"""What every key space does."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from linsketch.arrays import Counts, Mask, Uint64s
from linsketch.errors import ItemError

_CHUNK = 1 << 16  # keys checked at once, to bound the memory

Item = TypeVar("Item")
Outside = Literal["raise", "drop"]


class Encoded(NamedTuple):
    """Keys of the items that were kept, one row an item."""

    keys: Uint64s
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
    def most(self) -> int:
        """No more different keys than this exist."""
        return math.prod(self.bounds)

    @property
    def limbs(self) -> int:
        """Ring elements in a key."""
        return len(self.bounds)

    def to_json(self, item: Item) -> Any:
        """Return an item as JSON has it."""
        return item

    def from_json(self, value: Any) -> Any:
        """Return the item of what JSON has; `encode` refuses what is none."""
        return value

    def encode(self, items: Iterable[Item], outside: Outside = "raise") -> Encoded:
        """Turn items into keys; an item outside the domain is an error, or dropped on request."""
        if outside not in ("raise", "drop"):
            raise ItemError(f'Items outside the domain "raise" or "drop", not {outside!r}.')
        if isinstance(items, str | bytes):
            raise ItemError(f"Items come as a list or the like, not as one {type(items).__name__}.")
        given = list(items)
        reasons = self._reasons(given)
        kept = np.array([reason is None for reason in reasons], bool)
        if not kept.all():
            if outside != "drop":
                first = int(np.argmin(kept))
                raise ItemError(
                    f"The item {_short(given[first])} {reasons[first]}. Mend the item or the "
                    'keys, or drop such items: keys.encode(items, outside="drop") counts them.'
                )
            given = [item for item, keep in zip(given, kept, strict=True) if keep]
        if not given:
            return Encoded(np.empty((0, self.limbs), np.uint64), kept)
        return Encoded(self._to_keys(given), kept)

    def decode(self, keys: Uint64s) -> list[Item]:
        """Turn keys, a row each, back into items."""
        if keys.ndim != 2 or keys.shape[1] != self.limbs or keys.dtype != np.uint64:
            raise ItemError(
                f"Keys are uint64 of shape (n, {self.limbs}), not {keys.dtype} of {keys.shape}."
            )
        valid = self.valid(keys)
        if not valid.all():
            raise ItemError(f"Key {keys[np.argmin(valid)].tolist()} belongs to no item.")
        return self._to_items(keys) if len(keys) else []

    def valid(self, keys: Uint64s) -> Mask:
        """Tell which keys belong to an item; false peels and hostile tables hold others."""
        inside: Mask = np.all(keys < np.array(self.bounds, np.uint64), axis=1)
        for first in range(0, len(keys), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            inside[chunk] &= self._genuine(keys[chunk])
        return inside

    def _genuine(self, keys: Uint64s) -> Mask:
        """Tell which keys of limbs below their bounds belong to an item: all, unless overridden."""
        return np.ones(len(keys), bool)

    @abstractmethod
    def _reasons(self, items: Sequence[Item]) -> list[str | None]:
        """Say for each item why it lies outside the domain, None where it does not."""

    @abstractmethod
    def _to_keys(self, items: Sequence[Item]) -> Uint64s: ...

    @abstractmethod
    def _to_items(self, keys: Uint64s) -> list[Item]: ...


def distinct_keys(keys: Uint64s) -> tuple[Uint64s, Counts]:
    """Return the distinct rows, sorted, and which of them each row is."""
    order = np.lexsort(keys.T[::-1])
    ordered = keys[order]
    new = np.ones(len(keys), bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    group = np.empty(len(keys), np.int64)
    group[order] = np.cumsum(new) - 1
    return ordered[new], group


def _short(item: object) -> str:
    text = repr(item)
    return text if len(text) <= 60 else f"{text[:40]}... ({len(text)} characters)"
