"""The result of listing a table: a value that says how far it got."""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from html import escape
from typing import Any

from linsketch import markup
from linsketch.arrays import Counts, Uint64s
from linsketch.keys import KeySpace
from linsketch.sketch.cardinality import Cardinality

_SHOWN = 20  # items in a notebook


class Status(Enum):
    """How far a peel got; the value is a sentence for people."""

    COMPLETE = "Every key was listed; the counts are exact."
    PARTIAL = (
        "Some keys are missing: the table was too full, or made with another plan, or its counts "
        "exceed max_count."
    )
    UNDECODABLE = (
        "No item could be listed: the table was far too full, or made with another plan, or its "
        "counts exceed max_count."
    )


@dataclass(frozen=True, eq=False)
class Peel:
    """The entries of a table, and what is left in it."""

    status: Status
    space: KeySpace[Any]
    keys: Uint64s
    counts: Counts
    cells_left: int
    rejected: int  # keys that came out but belong to no item, or with impossible counts
    cardinality: Cardinality  # of the whole table, listed keys included
    false_probability: float  # that any listed key is false; 0 if complete

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return self.status is Status.COMPLETE

    @property
    def missing(self) -> float:
        """Estimated number of keys that were not listed."""
        return max(self.cardinality.keys - len(self.keys), 0.0)

    @cached_property
    def items(self) -> list[Any]:
        """The listed items, in the order of `counts`."""
        return self.space.decode(self.keys)

    @cached_property
    def histogram(self) -> dict[Any, int]:
        """The listed items with their counts."""
        return dict(zip(self.items, self.counts.tolist(), strict=True))

    def __str__(self) -> str:
        """Say in one line how it went."""
        text = f"Keys listed: {len(self.keys):,}; cells left: {self.cells_left:,}. "
        text += self.status.value
        if not self.complete:
            least = "at least " if self.cardinality.at_least else "about "
            text += f" Keys missing: {least}{self.missing:,.0f}."
            text += f" Any listed key false: probability {self.false_probability:.1g}."
        if self.rejected:
            text += f" Rejected, as no item of {self.space.name} or no count: {self.rejected:,}."
        return text

    def _repr_html_(self) -> str:
        pairs = sorted(self.histogram.items(), key=lambda pair: -abs(pair[1]))
        rows = [(item, f"{count:,}") for item, count in pairs[:_SHOWN]]
        more = max(len(pairs) - _SHOWN, 0)
        return f"<p>{escape(str(self))}</p>{markup.table(('item', 'count'), rows, more)}"
