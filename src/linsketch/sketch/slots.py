"""Slots: one counter for each item that is known by name, and one for everything.

A slot of b bits holds a count modulo 2**b. A server that knows the count to within 2**b
beforehand can resolve it (`linsketch.methods.slots`). Items of a class of 0 bits are named but not
counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linsketch.arrays import Counts, Uint64s
from linsketch.errors import PlanningError
from linsketch.keys import KeyIndex, KeySpace, distinct_keys
from linsketch.rings import Ring, RingVector, Segment
from linsketch.sketch.base import Sketch
from linsketch.validation import whole_number


@dataclass(frozen=True)
class SlotClass:
    """Items whose slots have the same width."""

    bits: int
    items: tuple[Any, ...]

    def __post_init__(self) -> None:
        whole_number(self, "bits", 0, 62)


@dataclass(frozen=True)
class SlotSketch(Sketch):
    """The slots of a round. Its first segment is the total of all counts, named or not."""

    keys: KeySpace[Any]
    max_count: int
    classes: tuple[SlotClass, ...]

    def __post_init__(self) -> None:
        whole_number(self, "max_count", 1, 2**62)
        if len(distinct_keys(self.named)[0]) < len(self.named):
            raise PlanningError("An item has two slots.")

    @property
    def name(self) -> str:
        """All that makes vectors of two of them fit together."""
        widths = ",".join(f"{each.bits}x{len(each.items)}" for each in self.classes)
        return f"slots;keys={self.keys.name};max={self.max_count};widths={widths}"

    @cached_property
    def ring(self) -> Ring:
        """One entry for the total, then the classes' slots."""
        total = Segment(1, 1 << self.max_count.bit_length())
        counted = [each for each in self.classes if each.bits and each.items]
        return Ring((total, *(Segment(len(each.items), 1 << each.bits) for each in counted)))

    @cached_property
    def named(self) -> Uint64s:
        """The keys of all named items, class by class."""
        return self.keys.encode([item for each in self.classes for item in each.items]).keys

    @cached_property
    def _index(self) -> KeyIndex:
        index = KeyIndex(self.keys.limbs)
        index.add(self.named)
        return index

    def places(self, keys: Uint64s) -> Counts:
        """Return the place of each key among the named ones, -1 if it is not one of them."""
        return self._index.find(keys)

    def encode_keys(self, keys: Uint64s, counts: Counts) -> RingVector:
        """Count the named keys, and everything."""
        counts = self._checked(keys, counts)
        return self.encode_places(self.places(keys), counts)

    def encode_places(self, places: Counts, counts: Counts) -> RingVector:
        """Count by place."""
        own = places >= 0
        sums = np.bincount(places[own], counts[own], minlength=len(self.named)).astype(np.int64)
        arrays = [np.array([counts.sum()], np.uint64)]
        arrays += [part.astype(np.uint64) for part in self.split(sums)]
        return RingVector(
            self.ring,
            tuple(
                array % np.uint64(segment.modulus)
                for array, segment in zip(arrays, self.ring.segments, strict=True)
            ),
        )

    def split(self, values: Counts) -> list[Counts]:
        """Cut values of all named items into those of the classes that are counted."""
        ends = np.cumsum([len(each.items) for each in self.classes])
        parts: Sequence[Counts] = np.split(values, ends[:-1]) if len(ends) else []
        return [
            part for each, part in zip(self.classes, parts, strict=True) if each.bits and each.items
        ]
