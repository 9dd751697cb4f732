"""A round: what the server asks of its users, and what goes where in their vectors."""

from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linsketch import kernels
from linsketch.arrays import Counts, Mask, Uint64s
from linsketch.errors import TaskError, VectorError
from linsketch.plan import MOST_ROUNDS, Plan, canonical, checked_object
from linsketch.randomness import Randomness
from linsketch.rings import Ring, RingVector
from linsketch.sampling import Sampling, checked_threshold, largest_total, sampled
from linsketch.sketch.base import Sketch
from linsketch.sketch.countsketch import CountSketch
from linsketch.sketch.iblt import IBLT
from linsketch.sketch.sizing import Size
from linsketch.sketch.slices import Slice, slice_places
from linsketch.sketch.slots import SlotClass, SlotSketch
from linsketch.validation import whole_number

VERSION = 1


@dataclass(frozen=True)
class TableShape:
    """The table of a round: its size, the counts its ring holds, the keys it is sized for."""

    size: Size
    max_count: int
    capacity: int

    def __post_init__(self) -> None:
        whole_number(self, "max_count", 1, 2**62)
        whole_number(self, "capacity", 1, self.size.cells)


@dataclass(frozen=True)
class RoundTask:
    """Public: everything that a user needs besides the plan.

    `table` is None where nothing is listed, `slots` where no item is named, `slice` where all
    keys are looked for.
    """

    plan_id: str
    round: int
    sampling_threshold: float
    table: TableShape | None = None
    slots: tuple[SlotClass, ...] | None = None
    slice: Slice | None = None

    def __post_init__(self) -> None:
        whole_number(self, "round", 1, MOST_ROUNDS)
        object.__setattr__(self, "sampling_threshold", checked_threshold(self.sampling_threshold))

    @property
    def named(self) -> int:
        """How many items the task names."""
        return sum(len(each.items) for each in self.slots or ())

    def to_json(self, plan: Plan) -> dict[str, Any]:
        """Return a JSON object, with the moduli for clients in other languages."""
        return deepcopy(RoundSketch.of(plan, self).task_json)

    @classmethod
    def from_json(cls, data: object, plan: Plan) -> "RoundTask":
        """Read a task of this plan; raise if it differs in any way from what it says."""
        names = {"plan_id", "round", "sampling_threshold", "table", "slots", "slice"}
        values = checked_object(data, "task", {"version", *names}, VERSION)
        table, slots, slice_ = values["table"], values["slots"], values["slice"]
        try:
            if table is not None:
                segments = table["segments"]
                size = Size(table["k"], segments, table["cells"] // segments)
                table = TableShape(size, table["max_count"], table["capacity"])
            if slots is not None:
                slots = tuple(
                    SlotClass(each["bits"], tuple(map(plan.keys.from_json, each["items"])))
                    for each in slots
                )
            if slice_ is not None:
                slice_ = Slice(**slice_)
            t = values["sampling_threshold"]
            task = cls(values["plan_id"], values["round"], t, table, slots, slice_)
            given = canonical({**values, "version": VERSION, "sampling_threshold": float(t)})
            same = given == RoundSketch.of(plan, task).context
        except TaskError:
            raise
        except (TypeError, ValueError, KeyError, ZeroDivisionError) as error:
            raise TaskError(f"This is no task: {error}") from None
        if not same:
            raise TaskError("This is no task of the plan: it contradicts itself.")
        return task


@dataclass(frozen=True)
class Parts:
    """What a method puts into the vectors of a round."""

    tables: tuple[IBLT, ...] = ()  # of sampled counts, one a repetition
    sketch: CountSketch | None = None  # of all counts
    slots: SlotSketch | None = None  # of all counts of named items, which the tables leave out
    sampling: Sampling = "threshold"


class PartSums(NamedTuple):
    """The vector of a round, cut into those of its parts."""

    tables: tuple[RingVector, ...]
    sketch: RingVector | None
    slots: RingVector | None


class RoundSketch:
    """The layout of a round's vectors, for clients, crowds and servers: `RoundSketch.of`.

    It exists only for a task that the plan allows, so a client that has one may encode. Groups
    have the same layout; there is one, number 0.

    Law: the sum of the users' vectors is the vector of the crowd, to the bit.
    """

    def __init__(self, plan: Plan, task: RoundTask) -> None:
        self.plan, self.task = plan, task
        if task.plan_id != plan.plan_id:
            raise TaskError(f"The task is for plan {task.plan_id}, not for {plan.plan_id}.")
        if task.round > plan.rounds:
            raise TaskError(f"Round {task.round!r} is not one of the plan's {plan.rounds} rounds.")
        plan.method.check(plan, task)
        self.parts = plan.method.parts(plan, task)
        self._check_sizes()

    @classmethod
    def of(cls, plan: Plan, task: RoundTask) -> "RoundSketch":
        """Return the layout, built once for a plan and a task; refuse a task beyond the plan."""
        return _built(plan, task)

    def _check_sizes(self) -> None:
        task, most = self.task, self.plan.items_per_round
        largest = largest_total(most, task.sampling_threshold, self.parts.sampling)
        # The last digit of a root may differ between platforms.
        if task.table and task.table.max_count < largest * (1 - 1e-9):
            raise TaskError(
                f"The table holds counts up to {task.table.max_count:,}; a round may have "
                f"{largest:,} of them."
            )
        if self.ring.wire_bytes > self.plan.budget:
            raise TaskError(
                f"The task asks for {self.ring.wire_bytes:,} bytes; the plan's budget is "
                f"{self.plan.budget:,}."
            )

    @property
    def _sketches(self) -> tuple[Sketch, ...]:
        """The parts in the order in which they stand in a vector."""
        parts = self.parts
        others = (part for part in (parts.sketch, parts.slots) if part)
        return (*parts.tables, *others)

    @cached_property
    def ring(self) -> Ring:
        """The segments of the parts, one after the other."""
        return Ring(tuple(segment for part in self._sketches for segment in part.ring.segments))

    @cached_property
    def task_json(self) -> dict[str, Any]:
        """The task as a JSON object, to be read only: it is shared."""
        task, table = self.task, None
        if task.table:
            size = task.table.size
            table = {
                "layout": self.parts.tables[0].layout,
                "k": size.k,
                "hashing": size.hashing,
                "segments": size.segments,
                "cells": size.cells,
                "max_count": task.table.max_count,
                "moduli": [segment.modulus for segment in self.parts.tables[0].ring.segments],
                "capacity": task.table.capacity,
            }
        slots = None
        if task.slots is not None:
            slots = [
                {"bits": each.bits, "items": [self.plan.keys.to_json(item) for item in each.items]}
                for each in task.slots
            ]
        return {
            "version": VERSION,
            "plan_id": task.plan_id,
            "round": task.round,
            "sampling_threshold": task.sampling_threshold,
            "table": table,
            "slots": slots,
            "slice": asdict(task.slice) if task.slice else None,
        }

    @cached_property
    def context(self) -> bytes:
        """What the bytes of the round's vectors are bound to: the task's canonical JSON."""
        return canonical(self.task_json)

    def encode(
        self,
        keys: Uint64s,
        counts: Counts,
        randomness: Randomness,
        *,
        item_of_row: NDArray[np.integer] | None = None,
        group: int = 0,
    ) -> RingVector:
        """Sample and encode the bounded histogram of a user, or those of a crowd.

        A user has one row a key. In a crowd, row i is of the key `item_of_row[i]`, `keys` are
        distinct, and `randomness` knows whose row it is.
        """
        self._check_group(group)
        task, parts = self.task, self.parts
        of_row: Any = slice(None) if item_of_row is None else item_of_row
        row_keys, chosen, places = keys[of_row], slice(None), np.empty(0, np.int64)
        if parts.slots:
            places = parts.slots.places(keys)[of_row]
            chosen = self._in_slice(keys)[of_row] & (places < 0)
        elif task.slice:
            chosen = self._in_slice(keys)[of_row]
        vectors = []
        for repetition, table in enumerate(parts.tables):
            states = randomness.for_sampling(task.round, repetition, row_keys[chosen], chosen)
            values = sampled(counts[chosen], task.sampling_threshold, parts.sampling, states)
            if item_of_row is None:
                vectors.append(table.encode_keys(row_keys[chosen], values))
            else:
                own, sums, holders = _summed(keys, item_of_row[chosen], values)
                paper = {"holders": holders} if table.layout == "paper" else {}
                vectors.append(table.encode_keys(own, sums, **paper))
        if parts.sketch:
            own, sums = row_keys, counts
            if item_of_row is not None:
                own, sums, _ = _summed(keys, item_of_row, counts)
            vectors.append(parts.sketch.encode_keys(own, sums))
        if parts.slots:
            vectors.append(parts.slots.encode_places(places, counts))
        return RingVector(self.ring, tuple(array for vector in vectors for array in vector.arrays))

    def _in_slice(self, keys: Uint64s) -> Mask:
        if self.task.slice is None:
            return np.ones(len(keys), bool)
        return self.task.slice.holds(slice_places(self.plan.seed, keys))

    def split(self, vector: RingVector, group: int = 0) -> PartSums:
        """Cut a vector, or the sum of a group's, into those of the parts."""
        self._check_group(group)
        if vector.ring != self.ring:
            raise VectorError("The vector belongs to another round: not the same sizes and moduli.")
        vectors, first = [], 0
        for part in self._sketches:
            last = first + len(part.ring.segments)
            vectors.append(RingVector(part.ring, vector.arrays[first:last]))
            first = last
        tables = tuple(vectors[: len(self.parts.tables)])
        sketch = vectors[len(tables)] if self.parts.sketch else None
        return PartSums(tables, sketch, vectors[-1] if self.parts.slots else None)

    def _check_group(self, group: int) -> None:
        if group:
            raise TaskError(f"The round has one group, number 0; there is no group {group}.")


@lru_cache(maxsize=64)
def _built(plan: Plan, task: RoundTask) -> RoundSketch:
    return RoundSketch(plan, task)


def _summed(
    keys: Uint64s, item_of_row: NDArray[np.integer], values: Counts
) -> tuple[Uint64s, Counts, Counts]:
    """Add up a crowd's values by item; return the keys that have some, sums, and holders."""
    sums, holders = np.zeros((2, len(keys)), np.int64)
    kernels.rows.by_item(item_of_row, values, sums, holders)
    some = sums > 0
    return keys[some], sums[some], holders[some]
