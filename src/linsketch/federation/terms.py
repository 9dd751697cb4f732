"""Terms: what the operator of a client accepts before it takes part in a campaign.

The plan, the secure sum with its parameters, and how long a stage of a round may take. `terms_id`
is the SHA-256 of the canonical JSON; a client pins it, and answers no server with other terms. Who
the other clients are, terms do not say: docs/flower.md.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from linsketch.errors import LinsketchError, PlanningError
from linsketch.plan import Plan, canonical, checked_names, checked_object
from linsketch.round import RoundSketch, RoundTask
from linsketch.securesum import Parameters, choose_parameters
from linsketch.securesum.helper import HelperSession
from linsketch.securesum.masked import MaskedSession
from linsketch.validation import instance, whole_number

VERSION = 2


@dataclass(frozen=True)
class MaskedTerms:
    """One server: clients mask their vectors for each other."""

    name: ClassVar[str] = "masked"
    to_copy: ClassVar[dict[str, str]] = {}  # what operators copy from the terms
    parameters: Parameters

    @property
    def hidden_from(self) -> str:
        """Say from whom a client's vector is hidden."""
        p = self.parameters
        return (
            f"a server that fewer than {p.threshold:,} of a client's {p.neighbours:,} neighbours "
            "collude with"
        )

    def check(self, plan: Plan) -> None:
        """Raise unless the parameters fit the plan."""
        if self.parameters.clients != plan.users_per_round:
            raise PlanningError(
                f"Terms: parameters for {self.parameters.clients:,} clients do not fit rounds of "
                f"{plan.users_per_round:,}."
            )
        if self.least(plan) < plan.smallest_cohort:
            raise PlanningError("Terms: the secure sum takes fewer clients than the plan.")

    def least(self, plan: Plan) -> int:  # noqa: ARG002  # see HelperTerms
        """Return how many clients a sum takes."""
        return self.parameters.least

    def session(self, terms: "Terms", task: RoundTask, nonce: bytes) -> MaskedSession:
        """Return the session of a round; an attempt at a round has a nonce of its own."""
        sketch = RoundSketch.of(terms.plan, task)
        return MaskedSession(sketch.ring, sketch.context + nonce, self.parameters, terms.campaign)

    def to_json(self) -> dict[str, Any]:
        """Return the parameters."""
        return asdict(self.parameters)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "MaskedTerms":
        """Read the parameters."""
        return cls(Parameters(**data))


@dataclass(frozen=True)
class HelperTerms:
    """Two servers that do not collude; the second, the helper, has a public key."""

    name: ClassVar[str] = "helper"
    hidden_from: ClassVar[str] = "a server that the helper does not collude with"
    key: bytes

    @property
    def to_copy(self) -> dict[str, str]:
        """What operators copy from the terms."""
        return {"helper's key": self.key.hex()}

    def check(self, plan: Plan) -> None:  # noqa: ARG002  # see MaskedTerms
        """Raise unless the key can be one."""
        if not isinstance(self.key, bytes) or len(self.key) != 32:
            raise PlanningError("Terms: the helper has a public key of 32 bytes.")

    def least(self, plan: Plan) -> int:
        """Return how many clients a sum takes."""
        return max(plan.smallest_cohort, 3)

    def session(self, terms: "Terms", task: RoundTask, nonce: bytes) -> HelperSession:
        """Return the session of a round; an attempt at a round has a nonce of its own."""
        sketch = RoundSketch.of(terms.plan, task)
        context = sketch.context + nonce
        return HelperSession(sketch.ring, context, self.key, terms.least, terms.campaign)

    def to_json(self) -> dict[str, Any]:
        """Return the key."""
        return {"key": self.key.hex()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "HelperTerms":
        """Read the key."""
        checked_names(data, "helper's part of the terms", {"key"})
        return cls(bytes.fromhex(data["key"]))


SumTerms = MaskedTerms | HelperTerms


@dataclass(frozen=True)
class Terms:
    """A campaign over real clients; make them with `Terms.masked` or `Terms.helper`.

    What a server may ask in a round is the plan's to say: its method refuses all else. A stage
    ends after `stage_seconds`.
    """

    plan: Plan
    secure_sum: SumTerms
    stage_seconds: int = 60

    def __post_init__(self) -> None:
        instance(self, "plan", Plan)
        if not isinstance(self.secure_sum, SumTerms):
            raise PlanningError("Terms: the secure sum is MaskedTerms(...) or HelperTerms(...).")
        whole_number(self, "stage_seconds", 1, 86_400)
        if self.plan != self.plan.for_clients():
            raise PlanningError(
                "Terms: the plan leaves open what clients must be able to refuse (how far t may "
                "go). Take plan.for_clients()."
            )
        self.secure_sum.check(self.plan)

    @classmethod
    def masked(
        cls,
        plan: Plan,
        *,
        corrupt: float = 0.2,
        dropout: float = 0.1,
        split_view_safe: bool = False,
        stage_seconds: int = 60,
    ) -> "Terms":
        """Return terms with one server; the choices are those of `choose_parameters`."""
        chosen = choose_parameters(
            plan.users_per_round, corrupt=corrupt, dropout=dropout, split_view_safe=split_view_safe
        )
        least = max(chosen.least, plan.smallest_cohort)
        return cls(plan, MaskedTerms(replace(chosen, least=least)), stage_seconds)

    @classmethod
    def helper(cls, plan: Plan, key: bytes, *, stage_seconds: int = 60) -> "Terms":
        """Return terms with a helper that does not collude with the server."""
        return cls(plan, HelperTerms(key), stage_seconds)

    @property
    def least(self) -> int:
        """How many clients a sum takes."""
        return self.secure_sum.least(self.plan)

    @property
    def campaign(self) -> bytes:
        """What ledgers note: a client takes part once, under whatever terms."""
        return bytes.fromhex(self.plan.plan_id)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back to equal terms."""
        return {
            "version": VERSION,
            "plan": self.plan.to_json(),
            "secure_sum": {self.secure_sum.name: self.secure_sum.to_json()},
            "stage_seconds": self.stage_seconds,
        }

    @classmethod
    def from_json(cls, data: object) -> "Terms":
        """Read terms, refusing other versions, unknown fields and impossible values."""
        if isinstance(data, dict) and "secure_sum" not in data and {"plan", "method"} & set(data):
            raise PlanningError("This is a plan: `linsketch new-app --plan` makes terms of it.")
        names = {"version", "plan", "secure_sum", "stage_seconds"}
        values = checked_object(data, "file of terms", names, VERSION)
        try:
            ((name, chosen),) = values["secure_sum"].items()
            kinds = {kind.name: kind for kind in (MaskedTerms, HelperTerms)}
            plan = Plan.from_json(values["plan"])
            return cls(plan, kinds[name].from_json(dict(chosen)), values["stage_seconds"])
        except LinsketchError:
            raise
        except (AttributeError, TypeError, ValueError, KeyError) as error:
            raise PlanningError(f"These are no terms: {error}.") from None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Terms":
        """Read a file of terms."""
        try:
            return cls.from_json(json.loads(Path(path).read_text(encoding="utf-8")))
        except OSError as error:
            raise PlanningError(f"Cannot read the terms {path}: {error.strerror}.") from None
        except (UnicodeDecodeError, json.JSONDecodeError):
            raise PlanningError(f"{path} is no JSON.") from None

    @cached_property
    def terms_id(self) -> str:
        """The SHA-256 of the canonical form, in hex."""
        return hashlib.sha256(canonical(self.to_json())).hexdigest()
