"""What every sketch is: a linear map from histograms to vectors of a ring.

Law (linearity): encode(h1) + encode(h2) == encode(h1 + h2), entry by entry. The paper's IBLT
layout counts insertions and keeps the law for multisets of insertions.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from linsketch.arrays import Counts, Uint64s
from linsketch.errors import CountError, VectorError
from linsketch.keys import KeySpace
from linsketch.rings import Ring, RingVector


class Sketch(ABC):
    """A frozen description of a sketch; vectors are values of their own.

    `max_count` is the largest total count that all vectors added up may have. One encode is
    checked against it; that the sum keeps to it is for the plan to see to, since nobody who adds
    vectors can tell. Beyond it counters wrap.
    """

    keys: KeySpace[Any]
    max_count: int

    @property
    @abstractmethod
    def ring(self) -> Ring:
        """The ring of this sketch's vectors; it knows their size on the wire."""

    @property
    @abstractmethod
    def name(self) -> str:
        """All that makes vectors of two sketches fit together, in one line (docs/wire.md)."""

    def pack(self, vector: RingVector) -> bytes:
        """Write a vector for the wire, bound to this very sketch: its keys, sizes and seeds."""
        self._own(vector)
        return vector.pack(self.name.encode())

    def unpack(self, data: bytes) -> RingVector:
        """Read a vector that a peer packed for this very sketch, or say why it cannot be."""
        return self.ring.unpack(data, self.name.encode())

    @abstractmethod
    def encode_keys(self, keys: Uint64s, counts: Counts) -> RingVector:
        """Encode counts of keys, as arrays; a key may come more than once.

        Keys come from `self.keys.encode(items)`, which can also drop items outside the domain.
        """

    def encode(self, histogram: Mapping[Any, int]) -> RingVector:
        """Encode a histogram, {item: count}."""
        if not isinstance(histogram, Mapping):
            raise CountError(
                f"A histogram maps items to counts; this is a {type(histogram).__name__}. "
                "For single items take collections.Counter(items)."
            )
        keys = self.keys.encode(histogram.keys()).keys
        return self.encode_keys(keys, integer_counts(histogram.values()))

    def _checked(self, keys: Uint64s, counts: Counts) -> Counts:
        """Return counts as int64; refuse what is no such, no keys, or could wrap the modulus."""
        counts = np.asarray(counts)
        if counts.ndim != 1 or counts.dtype.kind not in "iu":
            raise CountError(
                f"Counts must be a row of integers, not {counts.dtype} of shape {counts.shape}."
            )
        self._checked_keys(keys)
        if len(keys) != len(counts):
            raise CountError(f"{len(keys)} keys do not go with {len(counts)} counts.")
        if not len(counts):
            return counts.astype(np.int64)
        if counts.min() < 0:
            raise CountError(
                f"The count {counts.min()} is negative. Encode {-counts.min()} and subtract."
            )
        wraps = int(counts.max()) * len(counts) >= 1 << 63
        total = int(counts.sum(dtype=object if wraps else np.int64))
        if total > self.max_count:
            raise CountError(
                f"The counts add up to {total:,}, more than the {self.max_count:,} this sketch is "
                "planned for. Plan it with a larger max_count."
            )
        return np.ascontiguousarray(counts, np.int64)

    def _checked_keys(self, keys: Uint64s) -> None:
        """Refuse what `self.keys.encode` would not have made."""
        shape = (len(keys), self.keys.limbs)
        if not isinstance(keys, np.ndarray) or keys.dtype != np.uint64 or keys.shape != shape:
            raise CountError(f"Keys are an array of uint64 of shape {shape}: encode items first.")
        if (keys >= np.array(self.keys.bounds, np.uint64)).any():
            raise CountError("A limb of some key is out of bounds: were these keys encoded here?")

    def _own(self, vector: RingVector) -> None:
        if not isinstance(vector, RingVector):
            raise VectorError(f"A vector is wanted, not {type(vector).__name__}: unpack it first?")
        if vector.ring != self.ring:
            raise VectorError(
                "The vector belongs to another sketch: not the same sizes and moduli."
            )


def integer_counts(counts: Iterable[int]) -> Counts:
    """Turn counts into an array, refusing fractions and what does not fit into 63 bits."""
    values = list(counts)
    for value in values:
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise CountError(f"The count {value!r} is not an int.")
        if abs(value) >= 1 << 63:
            raise CountError(f"The count {value} does not fit into 63 bits.")
    return np.array(values, np.int64)
