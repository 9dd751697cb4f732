"""Campaigns through a real secure sum: which one, how long it will take, what it weighs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any, Literal

from linsketch.errors import PlanningError, RoundFailed
from linsketch.plan import Plan
from linsketch.population.rehearsal import Cohort
from linsketch.rings import Contribution, Ring
from linsketch.round import RoundSketch
from linsketch.securesum import (
    ClearSum,
    HelperSum,
    MaskedSum,
    Parameters,
    SecureSum,
)
from linsketch.server import Server

Summation = Literal["clear", "masked", "helper"]
_TRIAL = 20  # clients of the trial that times are taken from


@dataclass(frozen=True)
class Secure:
    """A way to add up, and the share of users that drop out of each round."""

    summation: Summation = "clear"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.summation == "clear" and self.dropout:
            raise PlanningError("Dropouts are simulated with --secure masked or helper.")
        if not 0 <= self.dropout < 1:
            raise PlanningError(f"The share of dropouts lies in 0 .. 1, not {self.dropout}.")

    @property
    def fact(self) -> dict[str, Any]:
        """What a transcript keeps of it, so that nobody goes on with another."""
        return {"protocol": self.summation, "dropout": self.dropout}

    def start(self, plan: Plan, seed: bytes) -> SecureSum:
        """Return the sum that a campaign runs through."""
        campaign = bytes.fromhex(plan.plan_id)
        if self.summation == "masked":
            return MaskedSum(self.dropout, seed, campaign=campaign)
        if self.summation == "helper":
            return HelperSum(self.dropout, seed, max(plan.smallest_cohort, 3), campaign)
        return ClearSum()

    def expected_seconds(self, plan: Plan, cohorts: Sequence[Cohort], users: int) -> float:
        """Time a few clients of a cohort, and multiply."""
        task = Server(plan).open_round()
        ring = RoundSketch.of(plan, task).ring
        for _ in range(2):  # the first time compiles
            start = perf_counter()
            crowd = list(islice(cohorts[0].contributions(plan, task), _TRIAL))
            encoding = (perf_counter() - start) / len(crowd)
        crowd = [Contribution(ring.zeros())] * _TRIAL
        if self.summation == "helper":
            return (encoding + _seconds(HelperSum(), ring, crowd)) * users
        few = MaskedSum(parameters=Parameters(_TRIAL, _TRIAL - 1, _TRIAL // 2))
        a_neighbour = _seconds(few, ring, crowd) / (_TRIAL - 1)
        try:
            neighbours = MaskedSum(self.dropout).planned(users // len(cohorts)).neighbours
        except RoundFailed:  # too many drop out for any: the rounds will say so
            neighbours = 1
        return (encoding + a_neighbour * neighbours) * users


def _seconds(secure_sum: SecureSum, ring: Ring, crowd: list[Contribution]) -> float:
    """Return the time a client."""
    for context in (b"warm up", b"trial"):
        start = perf_counter()
        secure_sum(ring, crowd, context)
    return (perf_counter() - start) / len(crowd)
