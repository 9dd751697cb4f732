"""Small plans and populations for tests."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linsketch import IntKeys, Plan, Population, Rehearsal, Server, campaign, plan_campaign
from linsketch.history import Round
from linsketch.methods.slots import Evidence
from linsketch.randomness import user_ids

KEYS = IntKeys(20)


def people(
    rounds: int = 3,
    users: int = 60,
    seed: bytes = b"people",
    items: int = 40,
    mean: float = 3.0,
    most: int = 10**9,
) -> Population:
    """Return users with zipf-like items; counts above 1 occur."""
    rng = np.random.default_rng([1, *seed])
    rows = rng.poisson(mean, users) + 1
    user_of_row = np.repeat(np.arange(users), rows)
    item_of_row = np.minimum(rng.zipf(1.4, len(user_of_row)) - 1, items - 1)
    return Population.from_rows(
        KEYS,
        [int(item) for item in 7919 * np.arange(items) % (1 << 20)],
        item_of_row,
        user_ids([f"user {number}" for number in range(users)], seed),
        user_of_row,
        rng.integers(1, 3, len(user_of_row)),
        rounds,
        seed,
    ).bounded(most)


def plan_for(population: Population, most: int | None = None, **choices: Any) -> Plan:
    """Plan a campaign over a population."""
    settings: dict[str, Any] = {"method": "adaptive", "threshold": 20, "seed": b"plan", **choices}
    most = most or population.busiest
    return plan_campaign(
        rounds=len(population.users_in_round),
        users_per_round=int(population.users_in_round.max()),
        items_per_user=most,
        mean_items_per_user=float(np.minimum(population.totals, most).mean()),
        keys=population.keys,
        **settings,
    ).plan


def conduct(population: Population, **choices: Any) -> Server:
    """Run a campaign over a population."""
    return campaign.run(plan_for(population, **choices), Rehearsal(population.cohorts()))


def method_of(plan: Plan) -> Any:
    """Return a plan's method, for tests that know which one it is."""
    return plan.method


def with_options(plan: Plan, **options: Any) -> Plan:
    """Return a plan whose method has other options."""
    return replace(plan, method=replace(method_of(plan), **options))


def evidence(plan: Plan, rounds: Sequence[Round]) -> Evidence:
    """Return what closed rounds say with slots."""
    history = plan.method.history(plan)
    assert isinstance(history, Evidence)
    for closed in rounds:
        history.add(closed)
    return history


def truth(population: Population) -> dict[Any, int]:
    """Return the true counts."""
    return population.item_totals()


def sampled_plan(population: Population, t: float, **choices: Any) -> Plan:
    """Return a plan of fixed sampling with this very t and room for everything."""
    plan = plan_for(population, method="fixed", budget=100_000, **choices)
    return with_options(plan, sampling_threshold=t)
