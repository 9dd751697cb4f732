"""Plan: the frozen public description of a campaign, all that client and server must agree on.

Nothing in it is secret. `plan_id` is the SHA-256 of its canonical JSON, and every task names it.
"""

import hashlib
import json
import math
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Real
from typing import Any, Literal, get_args

from linsketch.errors import LinsketchError, PlanningError
from linsketch.keys import KeySpace, parse_keys
from linsketch.sketch.iblt import Layout
from linsketch.validation import instance, one_of, probability, whole_number

VERSION = 1
Method = Literal["adaptive", "slots", "fixed", "unsampled", "proven", "count-median"]
Sampling = Literal["threshold", "binomial"]
GRID = 1 << 16
MOST_ROUNDS = 10**6
MAX_THRESHOLD = 1 << 32
_TAIL = 40 * math.log(2)  # a round's total exceeds what the ring holds with probability 2**-40


@dataclass(frozen=True)
class Plan:
    """What a campaign is: make one with `linsketch.planner.plan_campaign`.

    Heavy hitters have a `threshold` (the paper's τ), histograms an `error`. `budget` bounds the
    bytes that a user sends in a round: the tables of all repetitions and the counters of the
    sketch. `sampling_threshold` (t) is that of the first round, and of every round unless the
    method is adaptive. Rounds count from 1.
    """

    method: Method
    rounds: int
    users_per_round: int  # at most
    items_per_user: int  # at most: the contribution bound m
    keys: KeySpace[Any]
    budget: int  # bytes
    sampling_threshold: float
    seed: bytes
    threshold: int | None = None
    error: int | None = None
    failure_probability: float = 0.05
    table_failure_probability: float = 0.01
    repetitions: int = 1
    sketch_rows: int = 0
    sketch_width: int = 0
    layout: Layout = "compact"
    sampling: Sampling = "threshold"
    smallest_cohort: int = 2
    slots_from: int = 2  # occurrences seen before the server may name an item to clients
    most_slots: int = 10_000  # items named in a round
    smallest_slice: int = 1 << 20  # of 2**32

    def __post_init__(self) -> None:
        one_of(self, "method", get_args(Method))
        one_of(self, "layout", get_args(Layout))
        one_of(self, "sampling", get_args(Sampling))
        instance(self, "keys", KeySpace)
        instance(self, "seed", bytes)
        if not 1 <= len(self.seed) <= 64:
            raise PlanningError(f"Plan: the seed has 1 to 64 bytes, not {len(self.seed)}.")
        whole_number(self, "rounds", 1, MOST_ROUNDS)
        whole_number(self, "users_per_round", 2, 10**9)
        whole_number(self, "items_per_user", 1, 10**9)
        whole_number(self, "budget", 1, 10**12)
        whole_number(self, "repetitions", 0, 1000)
        whole_number(self, "sketch_rows", 0, 1000)
        whole_number(self, "sketch_width", 0, 2**32 - 1)
        whole_number(self, "smallest_cohort", 2, self.users_per_round)
        whole_number(self, "slots_from", 1, 10**18)
        whole_number(self, "most_slots", 0, 10**9)
        whole_number(self, "smallest_slice", 1, 1 << 32)
        probability(self, "failure_probability")
        probability(self, "table_failure_probability")
        object.__setattr__(self, "sampling_threshold", checked_threshold(self.sampling_threshold))
        if (self.threshold is None) == (self.error is None):
            raise PlanningError("Plan: give a threshold (heavy hitters) or an error (histogram).")
        whole_number(self, "error" if self.threshold is None else "threshold", 1, 10**18)
        if self.method == "slots" and self.repetitions != 1:
            raise PlanningError("Plan: slots go with one table, not with repetitions.")
        if self.items_per_round > 2**40:
            raise PlanningError("Plan: users a round times items a user must not exceed 2**40.")
        if self.cut > self.rounds * self.items_per_round:
            raise PlanningError(
                f"Plan: no item can reach {self.cut:,}: {self.rounds:,} rounds of at most "
                f"{self.users_per_round:,} users with {self.items_per_user:,} items have "
                f"{self.rounds * self.items_per_round:,} in all."
            )

    @property
    def cut(self) -> int:
        """The count from which on an item matters: the threshold, or the histogram's error."""
        return self.threshold if self.threshold is not None else self.error or 0

    @property
    def interactive(self) -> bool:
        """Whether a round's task depends on the rounds before."""
        return self.method in ("adaptive", "slots")

    @property
    def items_per_round(self) -> int:
        """The most items of one round: the paper's mn."""
        return self.users_per_round * self.items_per_user

    @property
    def largest_sampling_threshold(self) -> float:
        """Where adaptive sampling stops: a round keeps about one item."""
        return float(min(self.items_per_round, MAX_THRESHOLD))

    def largest_total(self, t: float) -> int:
        """Return what a round's sampled counts stay within, but for a probability of 2**-40."""
        return largest_total(self.items_per_round, t, self.sampling)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back to an equal plan."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"version": VERSION, **values, "keys": self.keys.name, "seed": self.seed.hex()}

    @classmethod
    def from_json(cls, data: object) -> "Plan":
        """Read a plan, refusing other versions, unknown fields and impossible values."""
        values = checked_object(data, "plan", {"version", *(field.name for field in fields(cls))})
        try:
            values["keys"] = parse_keys(str(values["keys"]))
            values["seed"] = bytes.fromhex(values["seed"])
            return cls(**values)
        except LinsketchError:
            raise
        except (TypeError, ValueError) as error:
            raise PlanningError(f"This is no plan: {error}.") from None

    @cached_property
    def plan_id(self) -> str:
        """The SHA-256 of the canonical form, in hex."""
        return hashlib.sha256(canonical(self.to_json())).hexdigest()


def largest_total(items: int, t: float, sampling: Sampling) -> int:
    """Return what the sampled counts of so many items stay within, but for 2**-40.

    At t = 1 nothing is sampled, and the items are the bound. Else Bernstein's inequality, or the
    largest possible total where that is less (docs/math.md).
    """
    if t == 1:
        return items
    mean, variance, step = (
        (items / t, items / t * (1 - 1 / t), 1)
        if sampling == "binomial"
        else (items, items * (t - 0.75), math.ceil(t))
    )
    linear = step * _TAIL / 3
    excess = linear + math.sqrt(linear * linear + 2 * variance * _TAIL)
    return min(items * step, math.ceil(mean + excess))


def sampling_variance(t: float, sampling: Sampling) -> float:
    """Return the variance of a sampled count of 1; threshold sampling rounds t to an integer."""
    fraction = t % 1 if sampling == "threshold" else 0.0
    return t - 1 + fraction * (1 - fraction) / t


def on_grid(t: float) -> float:
    """Round a sampling threshold to the nearest multiple of 2**-16."""
    if not isinstance(t, Real) or not 1 <= t <= MAX_THRESHOLD:
        raise PlanningError(f"The sampling threshold must lie in 1 .. 2**32, not {t!r}.")
    return round(t * GRID) / GRID


def checked_threshold(t: float) -> float:
    """Return t as a float; refuse one that is none of the grid's."""
    if isinstance(t, bool):
        raise PlanningError(f"The sampling threshold is a number, not {t}.")
    return grid_units(t) / GRID


def grid_units(t: float) -> int:
    """Return t * 2**16, an integer; refuse a t that is none of the grid's."""
    if on_grid(t) != t:
        raise PlanningError(f"{t} is no multiple of 2**-16: pass it through on_grid first.")
    return int(t * GRID)


def canonical(data: dict[str, Any]) -> bytes:
    """Return the one way to write a JSON object: sorted, without spaces, in ASCII."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def checked_object(data: object, what: str, names: set[str]) -> dict[str, Any]:
    """Return a JSON object without its version; refuse other versions and other names."""
    if not isinstance(data, dict):
        raise PlanningError(f"A {what} is a JSON object, not {type(data).__name__}.")
    if data.get("version") != VERSION:
        raise PlanningError(
            f"This {what} has version {data.get('version')!r}; this release reads {VERSION}."
        )
    if set(data) != names:
        wrong = ", ".join(map(str, sorted(set(data) ^ names)))
        raise PlanningError(f"This is no {what}: missing or unknown: {wrong}.")
    return {name: value for name, value in data.items() if name != "version"}
