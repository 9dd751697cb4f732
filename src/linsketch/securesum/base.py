"""What a secure sum is, whatever protocol stands behind it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from linsketch.rings import Ring, RingVector


@dataclass(frozen=True)
class Contribution:
    """A vector, and how many users it speaks for: one, or as many as have been added up."""

    vector: RingVector
    users: int = 1


class SecureSum(Protocol):
    """Adds up contributions and shows nobody anything but the sum.

    What it returns counts the users whose vectors are in the sum; those who dropped out are not.
    """

    def __call__(self, ring: Ring, contributions: Iterable[Contribution]) -> Contribution:
        """Return the sum of the vectors and of the users."""
        ...
