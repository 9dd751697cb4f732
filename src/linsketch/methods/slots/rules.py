"""What to ask next: which items get a slot, how wide it is, and where to look for the unknown.

All rules are pure functions of the evidence, so a server that resumes asks the same.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from linsketch.arrays import Counts, Estimates, Mask, Uint64s
from linsketch.history import Round
from linsketch.methods.slots.evidence import LEARNED, Evidence
from linsketch.methods.slots.tally import spread, window
from linsketch.plan import Plan
from linsketch.sketch.slices import WHOLE
from linsketch.sketch.slots import SlotClass

_SWELL = 1.1  # of the largest mass so far: what the next round may have
_SAMPLED = 2.0  # occurrences of an unknown key, at most, where hardly anything is known


@dataclass(frozen=True)
class SlotRule:
    """Which items get a slot.

    An item at the threshold is expected to be seen `looked * threshold / total mass` times. An
    item that was seen so much less that it would happen to such an item once in a few hundred
    times (`give_up` standard deviations, by Anscombe's root) is given up. An item that has been
    counted up to the threshold is settled, and gets a slot only where there is room. Undecided
    items come first, the likeliest before.
    """

    share: float = 0.75  # of the room, for all slots
    settled_share: float = 0.125
    give_up: float = -2.75

    def choose(
        self, known: Evidence, total: float, room: int, names_from: int, most: int
    ) -> tuple[SlotClass, ...]:
        """Return the classes of the next round; settled items without a slot have 0 bits.

        `total` is the mass of the epoch, with the rounds that are left; `room` is in bits.
        """
        plan, now = known.plan, known.now
        wanted = np.maximum(plan.cutoff - known.before()[0], 0.0)
        bar = now.looked * wanted / max(total, 1.0)
        score = 2 * (np.sqrt(now.kept + 0.375) - np.sqrt(bar + 0.375))
        settled: Mask = now.exact >= wanted
        named = now.kept >= names_from
        bits = self.widths(known)
        keys = known.keys
        undecided = _by(score, keys, named & ~settled & (score > self.give_up))
        taken = undecided[np.cumsum(bits[undecided]) <= self.share * room][:most]
        left = min(self.share * room - bits[taken].sum(), self.settled_share * room)
        done = _by(now.kept, keys, named & settled)[: most - len(taken)]
        counted = np.cumsum(bits[done]) <= left
        rows = np.concatenate([taken, done[counted], done[~counted]])
        width = np.concatenate([bits[taken], bits[done[counted]], np.zeros((~counted).sum(), int)])
        classes: dict[int, list[Any]] = {}
        for each, item in zip(width.tolist(), plan.keys.decode(keys[rows]), strict=True):
            classes.setdefault(each, []).append(item)
        return tuple(SlotClass(each, tuple(classes[each])) for each in sorted(classes))

    def widths(self, known: Evidence) -> Counts:
        """Return the bits that tell a count from what is expected; all of them for suspects.

        They are for a round a little larger than any so far; in a much larger one residues are
        not clear, and not believed.
        """
        most = known.plan.items_per_round.bit_length()
        if known.plan.items_per_user > 1 and known.compared < LEARNED:
            return np.full(len(known.keys), most)  # how people repeat is unknown
        mass = _SWELL * max(known.masses, default=0.0)
        expected = known.now.rates * mass
        variance = spread(expected, known.now.looked, mass, known.dispersion)
        low, high = window(expected, variance)
        bits = np.ceil(np.log2(high - low + 1)).astype(np.int64)
        return np.where(known.suspect, most, np.minimum(bits, most))


def _by(score: Estimates | Counts, keys: Uint64s, chosen: Mask) -> Counts:
    """Return the chosen rows, the largest score first, equal ones in the order of their keys."""
    rows = np.flatnonzero(chosen)
    return rows[np.lexsort((*keys[rows].T[::-1], -score[rows]))]


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


def unknown(
    plan: Plan, known: Evidence, last: Round, classes: tuple[SlotClass, ...], at_threshold: float
) -> tuple[float, float]:
    """Estimate the keys and the occurrences that the next round has outside of its slots.

    The mass outside is what the named items leave over. The last table had `estimated_keys` of
    the last round's unknown mass; its a is taken over.
    """
    mean = known.mean_mass

    def outside(named: tuple[SlotClass, ...]) -> float:
        items = [item for each in named for item in each.items]
        rows = known.index.find(plan.keys.encode(items).keys)
        share = float(known.now.rates[rows].sum())
        return max(1.0 - share, 0.0) * mean

    before, after = max(outside(last.task.slots or ()), 1.0), max(outside(classes), 1.0)
    t, part = last.task.sampling_threshold, last.task.slice
    fraction = part.width / WHOLE if part else 1.0
    shown = max(last.estimated_keys, 1.0) / fraction
    a = max(before / shown - (t - 1), 1.0)
    if t > 2 * at_threshold:  # a coarse sample shows mostly what is frequent
        a = min(a, _SAMPLED)
    return after / a, after
