"""Plan: the frozen public description of a campaign, all that client and server must agree on.

Nothing in it is secret. `plan_id` is the SHA-256 of its canonical JSON, and every task names it.
"""

import hashlib
import json
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from linsketch.errors import LinsketchError, PlanningError
from linsketch.keys import KeySpace, parse_keys
from linsketch.validation import instance, probability, whole_number

if TYPE_CHECKING:
    from linsketch.methods.base import Method

VERSION = 2
MOST_ROUNDS = 10**6
METHODS: dict[str, type["Method[Any]"]] = {}
"""Every method by its name. A class joins when it is defined (`linsketch.methods.base`)."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Whom a campaign asks, and for how much. Rounds count from 1."""

    rounds: int
    users_per_round: int  # at most
    items_per_user: int  # at most: the contribution bound m
    keys: KeySpace[Any]
    seed: bytes
    failure_probability: float = 0.05
    smallest_cohort: int = 2

    def __post_init__(self) -> None:
        instance(self, "keys", KeySpace)
        instance(self, "seed", bytes)
        if not 1 <= len(self.seed) <= 64:
            raise PlanningError(f"The seed has 1 to 64 bytes, not {len(self.seed)}.")
        whole_number(self, "rounds", 1, MOST_ROUNDS)
        whole_number(self, "users_per_round", 2, 10**9)
        whole_number(self, "items_per_user", 1, 10**9)
        whole_number(self, "smallest_cohort", 2, self.users_per_round)
        probability(self, "failure_probability")
        if self.items_per_round > 2**40:
            raise PlanningError("Users a round times items a user must not exceed 2**40.")

    @property
    def items_per_round(self) -> int:
        """The most items of one round: the paper's mn."""
        return self.users_per_round * self.items_per_user


@dataclass(frozen=True, kw_only=True)
class Brief(Scope):
    """What a planner is given: a threshold or an error, a budget or none, and what is known.

    `mean_items_per_user` is what users have on average; without it, the most.
    """

    label: ClassVar[str] = "Plan"  # in refusals: a brief is nothing that people have to know

    threshold: int | None = None
    error: int | None = None
    budget: int | None = None
    mean_items_per_user: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("threshold", "error", "budget"):
            if getattr(self, name) is not None:
                whole_number(self, name, 1, 10**18)
        mean = self.mean_items_per_user
        if mean is not None and not 0 < mean <= self.items_per_user:
            raise PlanningError(
                f"The mean of items a user lies above 0 and is at most {self.items_per_user}, "
                f"not {mean}."
            )

    @property
    def mean_items_per_round(self) -> float:
        """What a round has of items, as far as is known."""
        mean = self.mean_items_per_user
        return self.users_per_round * (self.items_per_user if mean is None else mean)

    def plan(self, method: "Method[Any]", budget: int, threshold: int | None = None) -> "Plan":
        """Return the plan of this campaign with a method; `threshold` is one that was chosen."""
        shared = {field.name: getattr(self, field.name) for field in fields(Scope)}
        if threshold is None:
            threshold = self.threshold
        return Plan(method=method, budget=budget, threshold=threshold, error=self.error, **shared)


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan(Scope):
    """What a campaign is: make one with `plan_campaign` or `plan_histogram`.

    Plans are equal if their ids are.

    Heavy hitters have a `threshold` (the paper's τ), histograms an `error`. `budget` bounds the
    bytes that a user sends in a round. All that only one method needs is in `method`.
    """

    method: "Method[Any]"
    budget: int  # bytes
    threshold: int | None = None
    error: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if METHODS.get(getattr(self.method, "name", "")) is not type(self.method):
            raise PlanningError(f"Plan: method is an object like Slots(), not {self.method!r}.")
        whole_number(self, "budget", 1, 10**12)
        if (self.threshold is None) == (self.error is None):
            raise PlanningError("Plan: give a threshold (heavy hitters) or an error (histogram).")
        whole_number(self, "error" if self.threshold is None else "threshold", 1, 10**18)
        if self.cutoff > self.rounds * self.items_per_round:
            raise PlanningError(
                f"Plan: no item can reach {self.cutoff:,}: {self.rounds:,} rounds of at most "
                f"{self.users_per_round:,} users with {self.items_per_user:,} items have "
                f"{self.rounds * self.items_per_round:,} in all."
            )
        self.method.check_plan(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and other.plan_id == self.plan_id

    def __hash__(self) -> int:
        return hash(self.plan_id)

    def for_clients(self) -> "Plan":
        """Return the plan with a bound on all that a server could otherwise ask at will."""
        return replace(self, method=self.method.for_clients())

    @property
    def cutoff(self) -> int:
        """The count from which on an item matters: the threshold, or the histogram's error."""
        return self.threshold if self.threshold is not None else self.error or 0

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back to an equal plan."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        method = {self.method.name: self.method.to_json()}
        return {
            **{"version": VERSION, **values},
            **{"keys": self.keys.name, "seed": self.seed.hex(), "method": method},
        }

    @classmethod
    def from_json(cls, data: object) -> "Plan":
        """Read a plan, refusing other versions, unknown fields and impossible values."""
        names = {"version", *(field.name for field in fields(cls))}
        values = checked_object(data, "plan", names, VERSION)
        try:
            values["keys"] = parse_keys(str(values["keys"]))
            values["seed"] = bytes.fromhex(values["seed"])
            values["method"] = _method(values["method"])
            return cls(**values)
        except LinsketchError:
            raise
        except (TypeError, ValueError) as error:
            raise PlanningError(f"This is no plan: {error}.") from None

    @cached_property
    def plan_id(self) -> str:
        """The SHA-256 of the canonical form, in hex."""
        return hashlib.sha256(canonical(self.to_json())).hexdigest()


def _method(data: object) -> "Method[Any]":
    if not isinstance(data, dict) or len(data) != 1:
        raise PlanningError('A plan\'s method is an object with one name, like {"slots": {…}}.')
    ((name, options),) = data.items()
    if not isinstance(options, dict):
        raise PlanningError(f"The options of the method {name!r} are no object.")
    return method_named(name).from_json(options)


def method_named(name: str) -> type["Method[Any]"]:
    """Return the class of a method."""
    try:
        return METHODS[name]
    except KeyError:
        known = ", ".join(sorted(METHODS))
        raise PlanningError(
            f"There is no method {name!r}; there are {known}. One of your own must be imported "
            "first (docs/architecture.md)."
        ) from None


def canonical(data: dict[str, Any]) -> bytes:
    """Return the one way to write a JSON object: sorted, without spaces, in ASCII."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def checked_object(data: object, what: str, names: set[str], version: int) -> dict[str, Any]:
    """Return a JSON object without its version; raise unless version and names are these."""
    if not isinstance(data, dict):
        raise PlanningError(f"A {what} is a JSON object, not {type(data).__name__}.")
    if data.get("version") != version:
        raise PlanningError(
            f"This {what} has version {data.get('version')!r}; this release reads {version}."
        )
    checked_names(data, what, names)
    return {name: value for name, value in data.items() if name != "version"}


def checked_names(data: dict[str, Any], what: str, names: set[str]) -> None:
    """Raise unless an object has exactly these names."""
    if set(data) != names:
        wrong = ", ".join(map(str, sorted(set(data) ^ names)))
        raise PlanningError(f"This is no {what}: missing or unknown: {wrong}.")
