"""The sum in the clear: for simulations, where nobody is to be kept from anything."""

from collections.abc import Iterable

from linsketch.rings import Contribution, Ring


class ClearSum:
    """Adds vectors as they are. It hides nothing."""

    def __call__(
        self,
        ring: Ring,
        contributions: Iterable[Contribution],
        context: bytes,  # noqa: ARG002  # nothing is bound to anything
    ) -> Contribution:
        """Return the sum of the vectors and of the users."""
        total, users = ring.zeros(), 0
        for contribution in contributions:
            total, users = total + contribution.vector, users + contribution.users
        return Contribution(total, users)
