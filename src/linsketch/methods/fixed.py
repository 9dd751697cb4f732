"""Section 7's fixed sampling: one t for all rounds."""

from dataclasses import dataclass

from linsketch.methods.practical import Practical
from linsketch.sampling import on_grid


@dataclass(frozen=True, kw_only=True)
class Fixed(Practical):
    """The same t in every round: at most half of the threshold."""

    name = "fixed"

    def first_t(self, filling: float, threshold: int) -> float:
        """Return t: an item at the threshold is seen with probability 1 - e**-2 or more."""
        return on_grid(max(1.0, min(filling, threshold / 2)))
