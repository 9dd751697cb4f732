"""What a campaign asks of its data, on one machine (`Data`, `Population`) or on a cluster."""

from collections.abc import Sequence
from typing import Any, Protocol

from linsketch.arrays import Counts
from linsketch.keys import KeySpace
from linsketch.population.rehearsal import Cohort


class People(Protocol):
    """Users, split into rounds."""

    @property
    def keys(self) -> KeySpace[Any]:
        """The space that holds all items."""
        ...

    @property
    def seed(self) -> bytes:
        """Rounds and samples follow from it."""
        ...

    @property
    def users_in_round(self) -> Counts:
        """How many users each round has."""
        ...

    @property
    def busiest(self) -> int:
        """How many items the user with the most has."""
        ...

    @property
    def occurrences(self) -> int:
        """How many items all users have together."""
        ...

    @property
    def fingerprint(self) -> str:
        """A name of the data, whatever the order of its rows and the machines that hold them."""
        ...

    def bounded(self, items_per_user: int) -> "People":
        """Return the users, none of whom has more than so many items."""
        ...

    def item_totals(self) -> dict[Any, int]:
        """Return the true count of each item, in the order of their keys."""
        ...

    def cohorts(self, *, one_by_one: bool = False) -> Sequence[Cohort]:
        """Return the cohorts of all rounds; a secure sum takes their users one by one."""
        ...


class Rows(Protocol):
    """Rows of who-has-what."""

    def population(self, rounds: int, seed: bytes) -> People:
        """Split the users into rounds."""
        ...

    def item_totals(self) -> dict[Any, int]:
        """Add up the counts of each item: the truth, apart from users, bounds and sketches."""
        ...
