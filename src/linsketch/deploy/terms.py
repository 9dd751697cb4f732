"""Terms: what the operator of a client accepts before it takes part in a campaign.

The plan, the secure sum with its parameters, and how far the server may go in between. `terms_id`
is the SHA-256 of the canonical JSON; a client pins it, and answers no server with other terms. Who
the other clients are, terms do not say: docs/flower.md.
"""

import hashlib
import json
import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from linsketch.errors import LinsketchError, PlanningError, TaskError
from linsketch.plan import MAX_THRESHOLD, Plan, canonical, checked_object, on_grid
from linsketch.securesum import Parameters, choose_parameters
from linsketch.securesum.helper import Session as HelperSession
from linsketch.securesum.masked import Session as MaskedSession
from linsketch.server import Update, halfway
from linsketch.task import RoundTask, message
from linsketch.validation import instance, one_of, whole_number

VERSION = 1
Protocol = Literal["masked", "helper"]


@dataclass(frozen=True)
class Terms:
    """A campaign over real clients; make them with `Terms.masked` or `Terms.helper`.

    The sampling threshold t of an `adaptive` round goes at most to `largest_t_change` times the
    plan's, and t - 1 down to as small a part: a server cannot switch off what the plan samples.
    With `slots`, t is the server's to choose, and what clients refuse is the plan's: too many
    names, too narrow slices. A stage ends after `stage_seconds`.
    """

    plan: Plan
    protocol: Protocol
    parameters: Parameters | None = None  # of masked
    helper_key: bytes = b""  # the public key of the helper
    stage_seconds: int = 60
    largest_t_change: float = 4.0

    def __post_init__(self) -> None:
        instance(self, "plan", Plan)
        one_of(self, "protocol", get_args(Protocol))
        whole_number(self, "stage_seconds", 1, 86_400)
        change = self.largest_t_change
        if not isinstance(change, int | float) or not 1 <= change <= MAX_THRESHOLD:
            raise PlanningError("Terms: the largest change of t is a factor of 1 or more.")
        object.__setattr__(self, "largest_t_change", float(change))
        if (self.parameters is not None) != (self.protocol == "masked") or (
            len(self.helper_key) != (32 if self.protocol == "helper" else 0)
        ):
            raise PlanningError(
                "Terms: masked has parameters, helper has a public key of 32 bytes."
            )
        if self.parameters and self.parameters.clients != self.plan.users_per_round:
            raise PlanningError(
                f"Terms: parameters for {self.parameters.clients:,} clients do not fit rounds of "
                f"{self.plan.users_per_round:,}."
            )
        if self.least < self.plan.smallest_cohort:
            raise PlanningError("Terms: the secure sum takes fewer clients than the plan.")

    @classmethod
    def masked(
        cls,
        plan: Plan,
        *,
        corrupt: float = 0.2,
        dropout: float = 0.1,
        split_view_safe: bool = False,
        **more: Any,
    ) -> "Terms":
        """Return terms with one server; the choices are those of `choose_parameters`."""
        chosen = choose_parameters(
            plan.users_per_round, corrupt=corrupt, dropout=dropout, split_view_safe=split_view_safe
        )
        least = max(chosen.least, plan.smallest_cohort)
        return cls(plan, "masked", parameters=replace(chosen, least=least), **more)

    @classmethod
    def helper(cls, plan: Plan, helper_key: bytes, **more: Any) -> "Terms":
        """Return terms with a helper that does not collude with the server."""
        return cls(plan, "helper", helper_key=helper_key, **more)

    @property
    def least(self) -> int:
        """The fewest clients of a round."""
        return self.parameters.least if self.parameters else max(self.plan.smallest_cohort, 3)

    @property
    def campaign(self) -> bytes:
        """What ledgers note: whoever takes part does so once, under whatever terms."""
        return bytes.fromhex(self.plan.plan_id)

    def masked_session(self, task: RoundTask, nonce: bytes) -> MaskedSession:
        """Return the session of a round; an attempt at a round has a nonce of its own."""
        if self.parameters is None:
            raise TaskError("The terms are for a secure sum with a helper.")
        ring, context = message(self.plan, task).ring, task.context(self.plan) + nonce
        return MaskedSession(ring, context, self.parameters, self.campaign)

    def helper_session(self, task: RoundTask, nonce: bytes) -> HelperSession:
        """Return the session of a round, with a helper."""
        ring, context = message(self.plan, task).ring, task.context(self.plan) + nonce
        return HelperSession(ring, context, self.helper_key, self.least, self.campaign)

    @property
    def t_range(self) -> tuple[float, float]:
        """Between which thresholds rounds may sample."""
        t, change = self.plan.sampling_threshold, self.largest_t_change
        return on_grid(1 + (t - 1) / change), on_grid(min(t * change, MAX_THRESHOLD))

    def update(self, rule: Update = halfway) -> Update:
        """Return a rule of adaptive sampling that keeps to the terms."""
        low, high = self.t_range
        return lambda t, capacity, keys: min(max(rule(t, capacity, keys), low), high)

    def read_task(self, data: object) -> RoundTask:
        """Run by a client: read a round's task, and refuse what its operator has not accepted."""
        task = RoundTask.from_json(data, self.plan)
        low, high = self.t_range
        if self.plan.method == "adaptive" and not low <= task.sampling_threshold <= high:
            raise TaskError(
                f"The round samples with t = {task.sampling_threshold}; the terms allow {low} to "
                f"{high}."
            )
        return task

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back to equal terms."""
        chosen: dict[str, Any] = {"protocol": self.protocol}
        if self.parameters:
            chosen |= vars(self.parameters)
        else:
            chosen["helper_key"] = self.helper_key.hex()
        return {
            "version": VERSION,
            "plan": self.plan.to_json(),
            "secure_sum": chosen,
            "stage_seconds": self.stage_seconds,
            "largest_t_change": self.largest_t_change,
        }

    @classmethod
    def from_json(cls, data: object) -> "Terms":
        """Read terms, refusing other versions, unknown fields and impossible values."""
        names = {"version", "plan", "secure_sum", "stage_seconds", "largest_t_change"}
        values = checked_object(data, "file of terms", names)
        try:
            chosen = dict(values.pop("secure_sum"))
            protocol, key = chosen.pop("protocol"), bytes.fromhex(chosen.pop("helper_key", ""))
            parameters = Parameters(**chosen) if chosen else None
            plan = Plan.from_json(values.pop("plan"))
            return cls(plan, protocol, parameters, key, **values)
        except LinsketchError:
            raise
        except (TypeError, ValueError, KeyError) as error:
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
