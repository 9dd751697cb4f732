"""What to ask next: who gets a slot, how wide it is, and where to look for the unknown.

Both rules are pure functions of the closed rounds, so a server that resumes asks the same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsketch.arrays import Counts, Estimates, Mask
from linsketch.keys import distinct_keys
from linsketch.plan import Plan, on_grid
from linsketch.planner.tables import fitting_table
from linsketch.server.recover import Round
from linsketch.server.slots.evidence import LEARNED, Evidence, evidence, spread, window
from linsketch.sketch.slots import SlotClass
from linsketch.task import RoundTask, Slice, sketch_bits

_WHOLE = 1 << 32
_SWELL = 1.1  # of the largest mass so far: what the next round may have
_SAMPLED = 2.0  # occurrences of an unknown key, at most, where hardly anything is known


@dataclass(frozen=True)
class SlotRule:
    """Which items get a slot.

    An item at the threshold is expected to be seen `looked * threshold / total mass` times. Who
    was seen so much less that it would happen to such an item once in a few hundred times
    (`give_up` standard deviations, by Anscombe's root) is given up; who has been counted up to
    the threshold is settled, and gets a slot only where there is room. Undecided items come
    first, the likeliest before.
    """

    share: float = 0.75  # of the budget, for all slots
    settled_share: float = 0.125
    give_up: float = -2.75

    def choose(self, plan: Plan, known: Evidence, total: float) -> tuple[SlotClass, ...]:
        """Return the classes of the next round; settled items without a slot have 0 bits.

        `total` is the mass of the epoch, with the rounds that are left.
        """
        wanted = np.maximum(plan.cut - known.before()[0], 0.0)
        bar = known.now.looked * wanted / max(total, 1.0)
        score = 2 * (np.sqrt(known.now.kept + 0.375) - np.sqrt(bar + 0.375))
        settled: Mask = known.now.exact >= wanted
        named = known.now.kept >= plan.slots_from
        bits = self.widths(plan, known)
        room = 8 * plan.budget - sketch_bits(plan) - plan.items_per_round.bit_length()
        undecided = _by(score, named & ~settled & (score > self.give_up))
        taken = undecided[np.cumsum(bits[undecided]) <= self.share * room][: plan.most_slots]
        left = min(self.share * room - bits[taken].sum(), self.settled_share * room)
        done = _by(known.now.kept, named & settled)[: plan.most_slots - len(taken)]
        counted = np.cumsum(bits[done]) <= left
        rows = np.concatenate([taken, done[counted], done[~counted]])
        width = np.concatenate([bits[taken], bits[done[counted]], np.zeros((~counted).sum(), int)])
        items = plan.keys.decode(known.keys[rows])
        classes: dict[int, list[Any]] = {}
        for each, item in zip(width.tolist(), items, strict=True):
            classes.setdefault(each, []).append(item)
        return tuple(SlotClass(each, tuple(classes[each])) for each in sorted(classes))

    def widths(self, plan: Plan, known: Evidence) -> Counts:
        """Return the bits that tell a count from what is expected; all of them for suspects.

        They are for a round a little larger than any so far; in a much larger one residues are
        not clear, and not believed.
        """
        most = plan.items_per_round.bit_length()
        if plan.items_per_user > 1 and known.compared < LEARNED:  # how people repeat is unknown
            return np.full(len(known.keys), most)
        mass = _SWELL * float(known.masses.max(initial=0.0))
        expected = known.now.rates * mass
        variance = spread(expected, known.now.looked, mass, known.dispersion)
        low, high = window(expected, variance)
        bits = np.ceil(np.log2(high - low + 1)).astype(np.int64)
        return np.where(known.suspect, most, np.minimum(bits, most))


def _by(score: Estimates | Counts, chosen: Mask) -> Counts:
    rows = np.flatnonzero(chosen)
    return rows[np.argsort(-score[rows], kind="stable")]


@dataclass(frozen=True)
class DiscoveryRule:
    """Where to look for the unknown: a slice of the keys, sampled with t.

    Of all t the one that shows an item at the threshold at least twice for the least room; then
    as wide a slice as the table has room for. If that is all keys, t falls until the table is
    full. Unknown occurrences over unknown keys, a, give the keys at t: occurrences / (t - 1 + a).
    """

    fill: float = 0.8  # of the capacity

    def choose(
        self, capacity: float, keys: float, occurrences: float, at_threshold: float
    ) -> tuple[float, float]:
        """Return (part of the keys, t), given what a round has of unknown keys."""
        a = max(occurrences / max(keys, 1.0), 1.0)
        ts = np.concatenate([[1.0], np.geomspace(1.02, max(4 * at_threshold, 4.0), 200)])
        shown = at_threshold / ts
        twice = 1 - np.exp(-shown) * (1 + shown)
        t = float(ts[np.argmax(twice * (ts - 1 + a))])
        room = self.fill * capacity
        needed = occurrences / (t - 1 + a)
        if needed > room:
            return room / needed, t
        return 1.0, max(1.0, occurrences / max(room, 1.0) + 1 - a)


def next_slots_task(
    plan: Plan,
    rounds: Sequence[Round],
    slot_rule: SlotRule | None = None,
    discovery_rule: DiscoveryRule | None = None,
) -> RoundTask:
    """Run by the server: open the next round."""
    slot_rule, discovery_rule = slot_rule or SlotRule(), discovery_rule or DiscoveryRule()
    number = len(rounds) + 1
    summed = [closed for closed in rounds if closed.slot_sum is not None]
    total_bits = plan.items_per_round.bit_length()
    known = evidence(plan, summed)
    mean = known.mean_mass
    if not mean:  # nothing is known: all keys, sampled as the plan expects
        t = plan.sampling_threshold
        return RoundTask(plan.plan_id, number, t, fitting_table(plan, t, total_bits))
    total = float(known.masses.sum()) + mean * (plan.rounds - len(rounds))
    classes = slot_rule.choose(plan, known, total)
    taken = total_bits + sum(each.bits * len(each.items) for each in classes)
    at_threshold = plan.cut * mean / total
    keys, occurrences = _unknown(plan, known, summed[-1], classes, at_threshold)
    t = 1.0
    for _ in range(3):  # the counts' width depends on t, and the capacity on that
        table = fitting_table(plan, t, taken)
        part, t = discovery_rule.choose(table.capacity, keys, occurrences, at_threshold)
        t = on_grid(min(t, plan.largest_sampling_threshold))
    table = fitting_table(plan, t, taken)
    width = min(max(math.ceil(part * _WHOLE), plan.smallest_slice), _WHOLE)
    looked = [r.task.slice.width for r in summed if r.task.slice and r.peels[0].complete]
    slice_ = Slice(sum(looked) % _WHOLE, width) if width < _WHOLE else None
    return RoundTask(plan.plan_id, number, t, table, classes, slice_)


def _unknown(
    plan: Plan,
    known: Evidence,
    last: Round,
    classes: tuple[SlotClass, ...],
    at_threshold: float,
) -> tuple[float, float]:
    """Estimate the keys and the occurrences that the next round has outside of its slots.

    The mass outside is what the named items leave over. The last table had `estimated_keys` of
    the last round's unknown mass; its a is taken over.
    """
    mean = known.mean_mass

    def outside(named: tuple[SlotClass, ...]) -> float:
        items = [item for each in named for item in each.items]
        keys = plan.keys.encode(items).keys
        _, group = distinct_keys(np.concatenate([known.keys, keys]))  # named keys are known
        share = float(known.now.rates[group[len(known.keys) :]].sum())
        return max(1.0 - share, 0.0) * mean

    before, after = max(outside(last.task.slots), 1.0), max(outside(classes), 1.0)
    t, part = last.task.sampling_threshold, last.task.slice
    fraction = part.width / _WHOLE if part else 1.0
    shown = max(last.estimated_keys, 1.0) / fraction
    a = max(before / shown - (t - 1), 1.0)
    if t > 2 * at_threshold:  # a coarse sample shows mostly what is frequent
        a = min(a, _SAMPLED)
    return after / a, after
