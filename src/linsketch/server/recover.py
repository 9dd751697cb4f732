"""What the server reads out of one round's sum."""

from dataclasses import dataclass, replace

from linsketch.errors import RoundFailed, TaskError
from linsketch.plan import Plan
from linsketch.rings import RingVector
from linsketch.sketch.peel import Peel, Status
from linsketch.task import RoundTask, check_task, message


@dataclass(frozen=True)
class Round:
    """A closed round: its task, how many users the sum has, and what came out of it."""

    task: RoundTask
    users: int
    peels: tuple[Peel, ...]  # one a repetition
    sketch_sum: RingVector | None
    slot_sum: RingVector | None
    wire_bytes: int  # what each user sent, without headers
    wire_words: int
    down_bytes: int  # what each user was sent: the task
    failure: str = ""  # why there is no sum, if there is none

    @property
    def status(self) -> str:
        """How far the worst repetition got: complete, partial, undecodable; or aborted."""
        if self.failure:
            return "aborted"
        order = list(Status)
        worst = max((order.index(peel.status) for peel in self.peels), default=0)
        return order[worst].name.lower()

    @property
    def keys(self) -> int:
        """Keys listed, of the repetition with the most."""
        return max((len(peel.keys) for peel in self.peels), default=0)

    @property
    def estimated_keys(self) -> float:
        """Keys that the fullest table held, listed or not."""
        return max((peel.cardinality.keys for peel in self.peels), default=0.0)

    @property
    def at_least(self) -> bool:
        """Whether a table was too full to tell more than a lower bound of its keys."""
        return any(peel.cardinality.at_least for peel in self.peels)


def _plausible(peel: Peel, most: int) -> Peel:
    """Flag a list that no honest users add up to: negative counts, or more than all can have."""
    honest = not len(peel.counts) or (peel.counts.min() > 0 and peel.counts.sum() <= most)
    return peel if honest else replace(peel, status=Status.PARTIAL)


def recover(plan: Plan, task: RoundTask, vector: RingVector, users: int) -> Round:
    """Run by the server: list the tables of a round's sum.

    A sum over fewer users than the plan's smallest cohort is refused unread: it would show what
    few people have.
    """
    check_task(plan, task)
    if users < plan.smallest_cohort:
        raise RoundFailed(
            f"A sum over {users:,} users would show what few people have; it takes "
            f"{plan.smallest_cohort:,}."
        )
    if users > plan.users_per_round:
        raise TaskError(
            f"Round {task.round} sums up {users:,} users; the plan allows {plan.users_per_round:,}."
        )
    parts = message(plan, task)
    sums = parts.split(vector)
    peels = tuple(
        _plausible(table.list_entries(total), table.max_count)
        for table, total in zip(parts.tables, sums, strict=False)
    )
    return Round(
        task=task,
        users=users,
        peels=peels,
        sketch_sum=sums[len(parts.tables)] if parts.sketch else None,
        slot_sum=sums[-1] if parts.slots else None,
        wire_bytes=parts.ring.wire_bytes,
        wire_words=parts.ring.wire_words,
        down_bytes=len(task.context(plan)),
    )
