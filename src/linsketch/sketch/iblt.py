"""The invertible Bloom lookup table: a linear sketch whose sum can be listed.

A key goes into k cells, one in each of k neighbouring segments of the table. With k segments in
all this is the standard k-partite table; with more it is the fuse (spatially coupled) table,
which peels at a higher load once there are enough keys. `docs/math.md` has the algebra.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from linsketch import hashing, kernels
from linsketch.arrays import Counts, Uint64s
from linsketch.errors import CountError, PlanningError
from linsketch.hashing import Seeds
from linsketch.keys import KeySpace, distinct_keys
from linsketch.rings import Ring, RingVector, Segment, largest_prime
from linsketch.sketch.base import Sketch
from linsketch.sketch.cardinality import Cardinality, estimate_keys
from linsketch.sketch.peel import Peel, Status
from linsketch.sketch.sizing import Hashing, Size, smallest_size
from linsketch.validation import instance, whole_number

Layout = Literal["compact", "paper"]
CHECK_BITS = {"compact": 9, "paper": 31}
_MIN_KEY_BITS = 8  # from here on the folding of products is exact (docs/math.md)
SPARE_ENTRIES = 512  # of the peel list; more than a batch can add


@dataclass(frozen=True)
class IBLT(Sketch):
    """A table of `size.cells` cells for keys of one space.

    `layout="compact"` keeps (weight, check, key) sums weighted by count, each in a modulus just
    wide enough. `layout="paper"` keeps the paper's four fields; it counts insertions, so encode
    each user's histogram by itself, or say how many holders each item has, and delete what was
    inserted as it was inserted. A sum beyond `max_count` is flagged in the compact layout (its
    keys no longer fit); in the paper's, values wrap unseen.

    >>> from linsketch import IBLT, Seeds, Utf8Keys
    >>> table = IBLT.sized(Utf8Keys(8), capacity=10, max_count=1000, seeds=Seeds(b"any"))
    >>> total = table.encode({"tea": 2, "": 1}) + table.encode({"tea": 40})
    >>> table.list_entries(total).histogram == {"tea": 42, "": 1}
    True
    """

    keys: KeySpace[Any]
    size: Size
    max_count: int
    seeds: Seeds
    layout: Layout = "compact"

    def __post_init__(self) -> None:
        if self.layout not in CHECK_BITS:
            raise PlanningError(f'The layout is "compact" or "paper", not {self.layout!r}.')
        instance(self, "keys", KeySpace)
        instance(self, "size", Size)
        instance(self, "seeds", Seeds)
        # The product weight * check must fit into 64 bits, for residues of the weight too.
        whole_number(self, "max_count", 1, 2 ** (63 - CHECK_BITS[self.layout]) - 1)

    @classmethod
    def sized(
        cls,
        keys: KeySpace[Any],
        *,
        capacity: int,
        max_count: int,
        seeds: Seeds,
        failure_probability: float = 0.01,
        layout: Layout = "compact",
        k: int | None = None,
        hashing: Hashing | None = None,
    ) -> "IBLT":
        """Choose the smallest table that lists `capacity` keys but for the failure probability.

        `max_count` is the largest total count that the sum of all vectors may have.
        """
        size = smallest_size(capacity, failure_probability, k=k, hashing=hashing)
        return cls(keys, size, max_count, seeds, layout)

    @cached_property
    def key_modulus(self) -> int:
        """A prime above every limb and every count, so that no weight is zero in it."""
        least = max(*self.keys.bounds, self.max_count + 1)
        bits = max(least.bit_length() - 1, _MIN_KEY_BITS)
        return next(p for p in map(largest_prime, range(bits, 64)) if p >= least)

    @cached_property
    def ring(self) -> Ring:
        """Weight, check, limbs and (paper) value: one segment each, as long as the table."""
        weight = 1 << self.max_count.bit_length()
        moduli = [weight, largest_prime(CHECK_BITS[self.layout])]
        moduli += [self.key_modulus] * self.keys.limbs
        if self.layout == "paper":
            moduli.append(weight)
        return Ring(tuple(Segment(self.size.cells, modulus) for modulus in moduli))

    @property
    def name(self) -> str:
        """All that makes vectors of two tables fit together."""
        size = self.size
        return (
            f"IBLT/{self.layout}/{self.keys.name}"
            f"/k={size.k},segments={size.segments},cells={size.segment_cells}"
            f"/max={self.max_count}/{self.seeds.name}"
        )

    @cached_property
    def _table(self) -> Any:
        """Everything that the loops need to know."""
        weight, check = (segment.modulus for segment in self.ring.segments[:2])
        key_bits = self.key_modulus.bit_length()
        numbers = (
            self.size.starts,
            self.size.segment_cells,
            weight,
            check,
            (2**64 - 1) // check,
            key_bits,
            2**key_bits - self.key_modulus,
            self.max_count,
            *self.seeds.integers("iblt", 4),
        )
        return kernels.table.Table(*map(np.uint64, numbers))

    def _loop_constants(self) -> tuple[int, int, bool]:
        return self.size.k, self.keys.limbs, self.layout == "paper"

    def _empty(self) -> Uint64s:
        """Return a zero table, a row a cell; three fields are padded to half a cache line."""
        fields = len(self.ring.segments)
        return np.zeros((self.size.cells, 4 if fields == 3 else fields), np.uint64)

    def encode_keys(
        self, keys: Uint64s, counts: Counts, holders: Counts | None = None
    ) -> RingVector:
        """Encode counts of keys; the paper's layout also takes the number of holders of each."""
        counts = self._checked(keys, counts)
        weights = counts
        if self.layout == "compact" and holders is not None:
            raise CountError("Holders are for the paper's layout; the compact one counts none.")
        if self.layout == "paper":
            weights = self._checked(keys, np.ones_like(counts) if holders is None else holders)
            if (weights[counts > 0] == 0).any():
                raise CountError("An item with a count has at least one holder, not 0.")
            weights = np.where(counts > 0, weights, 0)
        table = self._empty()
        encode = kernels.encode.encoder(*self._loop_constants())
        encode(
            table,
            np.ascontiguousarray(keys, np.uint64),
            weights.view(np.uint64),
            counts.view(np.uint64),
            self._table,
        )
        # Columns of the table, not copies: the vector is as fast to make as the table.
        return RingVector(self.ring, tuple(table.T[: len(self.ring.segments)]))

    def insert(self, vector: RingVector, item: Any, count: int = 1) -> RingVector:
        """Return the vector with `count` more of an item."""
        return vector + self.encode({item: count})

    def delete(self, vector: RingVector, item: Any, count: int = 1) -> RingVector:
        """Return the vector with `count` less of an item (paper: less one insertion of `count`)."""
        return vector - self.encode({item: count})

    def positions(self, keys: Uint64s) -> tuple[Uint64s, Uint64s]:
        """Return the cells (a column a way) and the check of each key: the readable reference."""
        seed, *tweaks = self.seeds.integers("iblt", 4)
        digests = hashing.digest(keys, seed)
        halves = [half for tweak in tweaks for half in hashing.halves(digests, tweak)]
        start, check = halves[4:]
        first = hashing.scale(start, self.size.starts)
        cells = [
            (first + np.uint64(way)) * np.uint64(self.size.segment_cells)
            + hashing.scale(halves[way], self.size.segment_cells)
            for way in range(self.size.k)
        ]
        checks = hashing.scale(check, self.ring.segments[1].modulus - 1) + np.uint64(1)
        return np.stack(cells, axis=1), checks

    def lookup(self, vector: RingVector, item: Any) -> int | None:
        """Return an item's count without listing the table, or None if its cells cannot tell.

        They can when one of them is empty or holds this item alone: mostly in a sparse table,
        seldom in one filled to its capacity.
        """
        self._own(vector)
        key = self.keys.encode([item]).keys
        cells, check = self.positions(key)
        moduli = [segment.modulus for segment in self.ring.segments]
        for cell in cells[0].tolist():
            held = [int(array[cell]) for array in vector.arrays]
            if not any(held):
                return 0
            ones = [1, int(check[0]), *key[0].tolist()]
            for weight in (held[0], held[0] - moduli[0]):
                sums = [weight * one % q for one, q in zip(ones, moduli, strict=False)]
                if 0 < abs(weight) <= self.max_count and sums == held[: len(ones)]:
                    if self.layout == "compact":
                        return weight
                    values, weights = np.array(held[-1:], np.uint64), np.array([weight])
                    return int(self._signed_values(values, weights)[0])
        return None

    def list_entries(self, vector: RingVector) -> Peel:
        """List the items of a vector with their counts, as far as that is possible.

        What a complete peel lists encodes back to the very vector (in the paper's layout with
        the right holders). Counts are negative where more was subtracted than added.
        """
        self._own(vector)
        keys, counts, left, tests = self._peel(vector)
        genuine = self.keys.valid(keys) & (np.abs(counts) <= self.max_count)
        rejected = len(keys) - int(genuine.sum())
        exact = left == 0 and rejected == 0
        cardinality = Cardinality(len(keys), 0.0)
        if rejected:
            keys, counts = keys[genuine], counts[genuine]
        if left:
            mass = float(vector.arrays[0].sum(dtype=np.float64)) / self.size.k
            cardinality = estimate_keys(self.size, left, len(keys), mass)
        failure = Status.PARTIAL if len(keys) else Status.UNDECODABLE
        return Peel(
            status=Status.COMPLETE if exact else failure,
            space=self.keys,
            keys=keys,
            counts=counts,
            cells_left=left,
            rejected=rejected,
            cardinality=cardinality,
            false_probability=0.0 if exact else min(1.0, tests * self._false_rate),
        )

    def _peel(self, vector: RingVector) -> tuple[Uint64s, Counts, int, int]:
        """Peel a copy of the table: listed keys and counts, cells left, tests made."""
        table = self._empty()
        for column, array in enumerate(vector.arrays):
            table[:, column] = array
        room = 2 * self.size.cells + SPARE_ENTRIES
        keys = np.empty((room, self.keys.limbs), np.uint64)
        weights = np.empty(room, np.int64)
        values = np.empty(room if self.layout == "paper" else 0, np.uint64)
        ways = np.empty(room, np.uint8)
        bounds = np.array(self.keys.bounds, np.uint64)
        peel = kernels.peel.peeler(*self._loop_constants())
        listed, left, tests, reappeared = peel(
            table, keys, weights, values, ways, bounds, self._table
        )
        keys, counts = keys[:listed], weights[:listed]
        if self.layout == "paper":
            counts = self._signed_values(values[:listed], counts)
        if reappeared:
            keys, counts = _add_up(keys, counts)
        return keys, counts, left, tests

    def _signed_values(self, values: Uint64s, weights: Counts) -> Counts:
        """Read values of the paper's layout as counts; where both signs fit, of the weight's."""
        modulus = self.ring.segments[-1].modulus
        counts = values.view(np.int64)
        below = modulus - counts <= self.max_count
        below &= (weights < 0) | (counts > self.max_count)
        counts[below] -= modulus
        return counts

    @property
    def _false_rate(self) -> float:
        """Probability that a cell which holds several keys passes for one key's.

        That key must agree with the check and hash back to the cell.
        """
        size = self.size
        hash_back = min(size.k, size.starts) / size.starts / size.segment_cells
        return hash_back / (self.ring.segments[1].modulus - 1)


def _add_up(keys: Uint64s, counts: Counts) -> tuple[Uint64s, Counts]:
    """Add up the counts of equal keys and leave out those that cancel."""
    distinct, group = distinct_keys(keys)
    sums = np.zeros(len(distinct), np.int64)
    np.add.at(sums, group, counts)
    return distinct[sums != 0], sums[sums != 0]
