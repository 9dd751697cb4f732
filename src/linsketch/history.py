"""What a server keeps of a campaign: its closed rounds, and what was read in them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from linsketch.errors import RoundFailed, TaskError
from linsketch.plan import Plan
from linsketch.rings import Contribution, RingVector
from linsketch.round import RoundSketch, RoundTask
from linsketch.sketch.peel import Peel, Status

FailedRounds = Literal["scale", "zero"]
"""Rounds that did not decode: scale the others up, or count them as zero (the paper)."""


@dataclass(frozen=True)
class Estimate:
    """An item's count over the campaign."""

    item: Any
    estimate: float
    stderr: float
    rounds: tuple[int, ...]  # in which it was seen; of a sketch, all rounds
    suspect: bool = False  # its slots disagree with each other


@dataclass(frozen=True)
class Reading:
    """What the sum of one group holds."""

    users: int
    # Not in the repr: a log must not hold what single people have.
    peels: tuple[Peel, ...] = field(repr=False)  # one a repetition
    sketch_sum: RingVector | None = field(repr=False)
    slot_sum: RingVector | None = field(repr=False)


@dataclass(frozen=True)
class Round:
    """A closed round: its task and, unless it has no sum, what was read of each group."""

    task: RoundTask
    readings: tuple[Reading, ...] = ()
    wire_bytes: int = 0  # what each user sent, without headers
    down_bytes: int = 0  # what each user was sent: the task
    failure: str = ""  # why there is no sum, if there is none

    @property
    def users(self) -> int:
        """How many users are in the sums."""
        return sum(reading.users for reading in self.readings)

    @property
    def peels(self) -> tuple[Peel, ...]:
        """The tables of all groups."""
        return tuple(peel for reading in self.readings for peel in reading.peels)

    @property
    def status(self) -> str:
        """How far the worst table got: complete, partial, undecodable; or aborted."""
        if self.failure:
            return "aborted"
        order = list(Status)
        worst = max((order.index(peel.status) for peel in self.peels), default=0)
        return order[worst].name.lower()

    @property
    def keys(self) -> int:
        """Keys listed, of the table with the most."""
        return max((len(peel.keys) for peel in self.peels), default=0)

    @property
    def estimated_keys(self) -> float:
        """Keys that the fullest table held, listed or not."""
        return max((peel.cardinality.keys for peel in self.peels), default=0.0)

    @property
    def at_least(self) -> bool:
        """Whether a table was too full to tell more than a lower bound of its keys."""
        return any(peel.cardinality.at_least for peel in self.peels)


class History:
    """The closed rounds of a campaign, in order.

    A method that concludes more from them extends it: `add` takes each round once, so a server
    that resumes adds the same rounds and arrives at the same state.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rounds: list[Round] = []

    @property
    def next_round(self) -> int:
        """The number of the round to open."""
        return len(self.rounds) + 1

    def add(self, closed: Round) -> None:
        """Take a closed round."""
        self.rounds.append(closed)


def read_sums(plan: Plan, task: RoundTask, sums: Sequence[Contribution]) -> Round:
    """Run by the server: list the tables of a round's sums, one a group.

    Raises `RoundFailed` for a sum over fewer users than the plan's smallest cohort, before it is
    read: it would show what few people have.
    """
    sketch = RoundSketch.of(plan, task)
    if not sums:
        raise RoundFailed("There is no sum.")
    users = sum(total.users for total in sums)
    if users > plan.users_per_round:
        raise TaskError(
            f"Round {task.round} sums up {users:,} users; the plan allows {plan.users_per_round:,}."
        )
    readings = []
    for group, total in enumerate(sums):
        if total.users < plan.smallest_cohort:
            raise RoundFailed(
                f"A sum over {total.users:,} users would show what few people have; it takes "
                f"{plan.smallest_cohort:,}."
            )
        parts = sketch.split(total.vector, group)
        peels = tuple(
            _plausible(table.list_entries(part), table.max_count)
            for table, part in zip(sketch.parts.tables, parts.tables, strict=True)
        )
        readings.append(Reading(total.users, peels, parts.sketch, parts.slots))
    ring, down = sketch.ring, len(sketch.context)
    return Round(task, tuple(readings), ring.wire_bytes, down)


def _plausible(peel: Peel, most: int) -> Peel:
    """Flag a list that no honest users add up to: negative counts, or more than all can have."""
    honest = not len(peel.counts) or (peel.counts.min() > 0 and peel.counts.sum() <= most)
    return peel if honest else replace(peel, status=Status.PARTIAL)
