"""RoundTask: what the server asks of the users of one round, and the message it asks for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from linsketch import hashing
from linsketch.arrays import Mask, Words
from linsketch.errors import TaskError, VectorError
from linsketch.hashing import Seeds
from linsketch.keys import BytesKeys
from linsketch.plan import MOST_ROUNDS, VERSION, Plan, canonical, checked_object, checked_threshold
from linsketch.rings import Ring, RingVector
from linsketch.sketch.base import Sketch
from linsketch.sketch.countsketch import CountSketch
from linsketch.sketch.hybrid import HybridSketch
from linsketch.sketch.iblt import IBLT
from linsketch.sketch.sizing import Size
from linsketch.sketch.slots import SlotClass, Slots
from linsketch.validation import whole_number


@dataclass(frozen=True)
class Table:
    """The table of a round: its shape, the counts its ring holds, the keys it is sized for."""

    size: Size
    max_count: int
    capacity: int

    def __post_init__(self) -> None:
        whole_number(self, "max_count", 1, 2**62)
        whole_number(self, "capacity", 1, self.size.cells)


@dataclass(frozen=True)
class Slice:
    """The keys whose hash, of 32 bits, lies in start .. start + width - 1, modulo 2**32."""

    start: int
    width: int

    def __post_init__(self) -> None:
        whole_number(self, "start", 0, (1 << 32) - 1)
        whole_number(self, "width", 1, 1 << 32)


@dataclass(frozen=True)
class RoundTask:
    """Public: everything that a user needs besides the plan. `table` is None for count-median."""

    plan_id: str
    round: int
    sampling_threshold: float
    table: Table | None
    slots: tuple[SlotClass, ...] = ()
    slice: Slice | None = None  # None: all keys

    def __post_init__(self) -> None:
        whole_number(self, "round", 1, MOST_ROUNDS)
        object.__setattr__(self, "sampling_threshold", checked_threshold(self.sampling_threshold))

    def to_json(self, plan: Plan) -> dict[str, Any]:
        """Return a JSON object, with the moduli for clients in other languages."""
        table = None
        if self.table:
            size = self.table.size
            table = {
                "layout": plan.layout,
                "k": size.k,
                "hashing": size.hashing,
                "segments": size.segments,
                "cells": size.cells,
                "max_count": self.table.max_count,
                "moduli": [s.modulus for s in message(plan, self).tables[0].ring.segments],
                "capacity": self.table.capacity,
            }
        return {
            "version": VERSION,
            "plan_id": self.plan_id,
            "round": self.round,
            "sampling_threshold": self.sampling_threshold,
            "table": table,
            "slots": [
                {"bits": each.bits, "items": [_shown(item) for item in each.items]}
                for each in self.slots
            ]
            if plan.method == "slots"
            else None,
            "slice": vars(self.slice) if self.slice else None,
        }

    @classmethod
    def from_json(cls, data: object, plan: Plan) -> "RoundTask":
        """Read a task of this plan; one that differs in any way from what it says is refused."""
        names = {"plan_id", "round", "sampling_threshold", "table", "slots", "slice"}
        values = checked_object(data, "task", {"version", *names})
        table = values["table"]
        try:
            if table is not None:
                segments = table["segments"]
                size = Size(table["k"], segments, table["cells"] // segments)
                table = Table(size, table["max_count"], table["capacity"])
            slots = tuple(
                SlotClass(each["bits"], tuple(_as_item(plan, item) for item in each["items"]))
                for each in values["slots"] or ()
            )
            part = Slice(**values["slice"]) if values["slice"] is not None else None
            t = values["sampling_threshold"]
            task = cls(values["plan_id"], values["round"], t, table, slots, part)
            check_task(plan, task)
            same = task.to_json(plan) == data
        except TaskError:
            raise
        except (TypeError, ValueError, KeyError, ZeroDivisionError) as error:
            raise TaskError(f"This is no task: {error}") from None
        if not same:
            raise TaskError("This is no task of the plan: it contradicts itself.")
        return task

    def context(self, plan: Plan) -> bytes:
        """Return what the bytes of the round's vectors are bound to."""
        return canonical(self.to_json(plan))


def check_task(plan: Plan, task: RoundTask) -> None:
    """Refuse a task that does not fit the plan: a client does so before it encodes anything."""
    if task.plan_id != plan.plan_id:
        raise TaskError(f"The task is for plan {task.plan_id}, not for {plan.plan_id}.")
    if task.round > plan.rounds:
        raise TaskError(f"Round {task.round!r} is not one of the plan's {plan.rounds} rounds.")
    t = task.sampling_threshold
    if not plan.interactive and t != plan.sampling_threshold:
        raise TaskError(f"The plan samples with t = {plan.sampling_threshold}, the task with {t}.")
    if (task.table is None) != (plan.repetitions == 0):
        raise TaskError("The task has a table where the plan has none, or none where it has one.")
    _check_slots(plan, task)
    # The last digit of a root may differ between platforms.
    if task.table and task.table.max_count < plan.largest_total(t) * (1 - 1e-9):
        raise TaskError(
            f"The table holds counts up to {task.table.max_count:,}; a round may have "
            f"{plan.largest_total(t):,} of them."
        )
    needed = message(plan, task).ring.wire_bytes
    if needed > plan.budget:
        raise TaskError(
            f"The task asks for {needed:,} bytes; the plan's budget is {plan.budget:,}."
        )


def _check_slots(plan: Plan, task: RoundTask) -> None:
    """Refuse names and slices beyond the plan's: with them a server could aim at single keys."""
    if plan.method != "slots":
        if task.slots or task.slice:
            raise TaskError("The task has slots or a slice where the plan has none.")
        return
    named = sum(len(each.items) for each in task.slots)
    if named > plan.most_slots:
        raise TaskError(f"The task names {named:,} items; the plan allows {plan.most_slots:,}.")
    if task.slice and task.slice.width < plan.smallest_slice:
        raise TaskError(
            f"The slice has {task.slice.width:,} of 2**32 keys; the plan allows no less than "
            f"{plan.smallest_slice:,}."
        )


@dataclass(frozen=True)
class Message:
    """What one user sends in a round: a table a repetition, the sketch and the slots if any."""

    tables: tuple[IBLT, ...]
    sketch: CountSketch | None
    slots: Slots | None = None

    @property
    def _parts(self) -> tuple[Sketch, ...]:
        return (
            *self.tables,
            *([self.sketch] if self.sketch else []),
            *([self.slots] if self.slots else []),
        )

    @cached_property
    def ring(self) -> Ring:
        """The parts' segments, one after the other."""
        return Ring(tuple(segment for part in self._parts for segment in part.ring.segments))

    def join(self, vectors: Sequence[RingVector]) -> RingVector:
        """Make one vector of the parts'."""
        return RingVector(self.ring, tuple(array for vector in vectors for array in vector.arrays))

    def split(self, vector: RingVector) -> tuple[RingVector, ...]:
        """Undo `join`; sums split into the sums of the parts."""
        if vector.ring != self.ring:
            raise VectorError("The vector belongs to another round: not the same sizes and moduli.")
        vectors, first = [], 0
        for part in self._parts:
            last = first + len(part.ring.segments)
            vectors.append(RingVector(part.ring, vector.arrays[first:last]))
            first = last
        return tuple(vectors)


def message(plan: Plan, task: RoundTask) -> Message:
    """Return the message of a round: hashes fresh in every round and repetition."""
    tables: tuple[IBLT, ...] = ()
    if task.table:
        tables = tuple(
            IBLT(
                plan.keys,
                task.table.size,
                task.table.max_count,
                Seeds(plan.seed, task.round, repetition),
                plan.layout,
            )
            for repetition in range(plan.repetitions)
        )
    sketch = round_sketch(plan, task.round) if plan.sketch_rows else None
    named = None
    if plan.method == "slots":
        named = Slots(plan.keys, plan.items_per_round, task.slots)
    return Message(tables, sketch, named)


def in_slice(plan: Plan, part: Slice | None, keys: Words) -> Mask:
    """Tell which keys lie in a slice: by a hash that is the same in all rounds."""
    return within(part, slice_places(plan, keys))


def slice_places(plan: Plan, keys: Words) -> Words:
    """Return where keys lie on the circle that slices are cut from."""
    (seed,) = Seeds(plan.seed).words("slices", 1)
    places: Words = hashing.digest(keys, seed) >> np.uint64(32)
    return places


def within(part: Slice | None, places: Words) -> Mask:
    """Tell which places lie in a slice."""
    if part is None:
        return np.ones(len(places), bool)
    inside: Mask = (places - np.uint64(part.start)) % np.uint64(1 << 32) < np.uint64(part.width)
    return inside


def _shown(item: Any) -> Any:
    return item.hex() if isinstance(item, bytes) else item


def _as_item(plan: Plan, value: Any) -> Any:
    if isinstance(plan.keys, BytesKeys):
        return bytes.fromhex(value)
    return value


def hybrid_sketch(plan: Plan) -> HybridSketch:
    """Return the sketch of Algorithm 3."""
    return HybridSketch(
        plan.keys, plan.sketch_rows, plan.sketch_width, plan.items_per_round, plan.seed
    )


def round_sketch(plan: Plan, round_: int) -> CountSketch:
    """Return the count sketch of a round: all hashes fresh (count-median), or Algorithm 3's."""
    hybrid = hybrid_sketch(plan).for_round(round_)
    if plan.method == "count-median":
        return replace(hybrid, locations=hybrid.signs)
    return hybrid


def sketch_bits(plan: Plan) -> int:
    """Return the size of a round's sketch on the wire; 0 if the plan has none."""
    return round_sketch(plan, 1).ring.wire_bits if plan.sketch_rows else 0
