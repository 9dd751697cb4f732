"""The cases of golden.json, and what is recorded of each.

Written once by `python -m tests.golden.cases` with the code of version 0.1.0. It is compared, never
written again: bodies of sums (without the tag that names the plan), tasks (without the plan's id),
lists and estimates. Plans and their ids may change.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from linsketch import (
    ClearSum,
    Contribution,
    IntKeys,
    Plan,
    Population,
    Rehearsal,
    Ring,
    Server,
    Transcript,
    campaign,
    plan_campaign,
    plan_histogram,
    report,
)
from linsketch.population.files import Data, read_data
from linsketch.population.typists import typists
from linsketch.randomness import SimulatedRandomness, user_ids
from linsketch.randomness import cohorts as assigned
from linsketch.securesum import HelperSum, MaskedSum
from tests.campaigns import people

FILE = Path(__file__).with_name("golden.json")
DATA = Path(__file__).parents[2] / "data"
CROWD = people(rounds=5, users=1500, items=300, mean=2.0)
FEW = people(rounds=2, users=60, seed=b"few")


def drifting(rounds: int = 12, users: int = 6000) -> Population:
    """Return people with one item each, whose tastes change after half of the rounds."""
    rng, seed = np.random.default_rng(11), b"drift"
    ids = user_ids([str(user) for user in range(users)], seed)
    round_of_user = assigned(ids, rounds, seed)
    items = np.minimum(rng.zipf(1.3, users) - 1, 399)
    items = np.where(round_of_user > rounds // 2, rng.permutation(400)[items], items)
    everybody, ones = np.arange(users), np.ones(users, np.int64)
    return Population.from_rows(
        IntKeys(16), list(range(400)), items, ids, everybody, ones, rounds, seed
    )


DRIFT = drifting()

HEAVY: dict[str, dict[str, Any]] = {
    "adaptive": {"method": "adaptive", "threshold": 60, "budget": 700},
    "adaptive, binomial": {
        "method": "adaptive",
        "threshold": 60,
        "budget": 500,
        "sampling": "binomial",
    },
    "adaptive, paper": {
        "method": "adaptive",
        "threshold": 60,
        "budget": 1500,
        "layout": "paper",
    },
    "adaptive, no budget": {"method": "adaptive", "threshold": 90},
    "adaptive, no threshold": {"method": "adaptive", "budget": 900},
    "fixed": {"method": "fixed", "threshold": 60, "budget": 800},
    "unsampled": {"method": "unsampled", "threshold": 60},
    "proven": {"method": "proven", "threshold": 400},
    "proven, no threshold": {"method": "proven", "budget": 40_000},
    "count-median": {"method": "count-median", "threshold": 60, "budget": 900},
    "slots": {"method": "slots", "threshold": 60, "budget": 500},
    "slots, small": {"method": "slots", "threshold": 60, "budget": 260},
    "slots, threshold sampling": {
        "method": "slots",
        "threshold": 60,
        "budget": 400,
        "sampling": "threshold",
        "slots_from": 4,
    },
    "slots, no threshold": {"method": "slots", "budget": 600},
}
HISTOGRAMS: dict[str, dict[str, Any]] = {
    "histogram, everything": {"error": 40},
    "histogram, Algorithm 3": {"error": 1_600},
    "histogram, slots": {"error": 200, "method": "slots"},
}


def numbers(population: Population, most: int) -> dict[str, Any]:
    """Return what a planner needs to know of a population."""
    return {
        "rounds": len(population.users_in_round),
        "users_per_round": int(population.users_in_round.max()),
        "items_per_user": most,
        "keys": population.keys,
        "seed": population.seed,
    }


def heavy_plan(population: Population, choices: dict[str, Any], most: int | None = None) -> Plan:
    """Plan a search for heavy hitters."""
    mean = population.occurrences / int(population.users_in_round.sum())
    return plan_campaign(
        **numbers(population, most or population.busiest), mean_items_per_user=mean, **choices
    ).plan


def histogram_plan(population: Population, choices: dict[str, Any]) -> Plan:
    """Plan a histogram."""
    return plan_histogram(**numbers(population, population.busiest), **choices).plan


def body(vector: Any) -> str:
    """Name the packed entries of a vector, without header and tag."""
    return hashlib.sha256(vector.pack_body()).hexdigest()


def task_of(plan: Plan, task: Any) -> dict[str, Any]:
    """Return a task without the plan's id; long lists of names by their hash."""
    data = {name: value for name, value in task.to_json(plan).items() if name != "plan_id"}
    names = json.dumps(data["slots"])
    if len(names) > 1000:
        data["slots"] = [[each["bits"], len(each["items"])] for each in data["slots"]]
        data["names"] = hashlib.sha256(names.encode()).hexdigest()
    return data


def lines(found: list[Any]) -> list[Any]:
    """Return estimates as JSON has them; of a long list, the first hundred and their number."""
    rows = [[e.item, e.estimate, e.stderr, len(e.rounds), e.suspect] for e in found]
    return [len(rows), *rows[:100]]


def answers(server: Server, candidates: list[Any]) -> dict[str, Any]:
    """Return everything that a server can be asked."""
    return {
        "heavy": lines(server.heavy_hitters("scale", candidates)),
        "heavy, zero": lines(server.heavy_hitters("zero", candidates)),
        "histogram": lines(server.histogram("scale", candidates)),
        "failed": server.failed_rounds,
    }


class Recorded:
    """A secure sum that notes the bodies of what it returns."""

    def __init__(self, inner: Any = None) -> None:
        self.inner = inner or ClearSum()
        self.bodies: list[str] = []

    def __call__(
        self, ring: Ring, contributions: Iterable[Contribution], context: bytes
    ) -> Contribution:
        """Add up, and note."""
        total: Contribution = self.inner(ring, contributions, context)
        self.bodies.append(body(total.vector))
        return total


def conducted(
    plan: Plan, population: Any, secure: Any = None, transcript: Any = None
) -> dict[str, Any]:
    """Run a campaign and record it."""
    recorded = Recorded(secure)
    cohorts = population.cohorts(one_by_one=secure is not None)
    server = campaign.run(plan, Rehearsal(cohorts, recorded), transcript=transcript)
    candidates = list(population.item_totals()) if not plan.method.lists else []
    return {
        "sums": recorded.bodies,
        "users": [closed.users for closed in server.rounds],
        "tasks": [task_of(plan, closed.task) for closed in server.rounds],
        **answers(server, candidates),
    }


def alone(plan: Plan, population: Population) -> list[str]:
    """Record the reports of the first user, in the first and the last round."""
    server = campaign.run(plan, Rehearsal(population.cohorts()))
    rows = slice(0, int(population.starts[1]))
    items = population.keys.decode(population.item_keys[population.items[rows]])
    own = dict(zip(items, population.counts[rows].tolist(), strict=True))
    randomness = SimulatedRandomness(population.seed, population.users[:1])
    return [
        body(report(own, plan, closed.task, randomness).vector)
        for closed in (server.rounds[0], server.rounds[-1])
    ]


def interrupted(plan: Plan, population: Population, folder: Path) -> dict[str, Any]:
    """Stop a campaign after each of its rounds, and record what comes out in the end."""
    path = folder / f"{plan.plan_id}.sqlite"
    bodies: list[str] = []

    def stop(_: Any) -> None:
        raise InterruptedError

    with Transcript.create(path, plan) as transcript:
        while transcript.closed < plan.rounds:
            recorded = Recorded()
            try:
                source = Rehearsal(population.cohorts(), recorded)
                campaign.run(plan, source, transcript=transcript, watch=stop)
            except InterruptedError:
                bodies += recorded.bodies
    with Transcript(path) as transcript:
        server = transcript.server()
    return {
        "sums": bodies,
        "users": [closed.users for closed in server.rounds],
        "tasks": [task_of(plan, closed.task) for closed in server.rounds],
        **answers(server, []),
    }


def visits(path: Path) -> None:
    """Write rows for Dask: users with repeats, in Parquet."""
    rng = np.random.default_rng(7)
    many = 6000
    pl.DataFrame(
        {
            "user": [f"user {n}" for n in rng.integers(0, 900, many)],
            "item": [f"naïve {n}" for n in rng.zipf(1.5, many) % 400],
        }
    ).write_parquet(path)


VISITS = {"method": "slots", "threshold": 60, "budget": 1600}
"""The campaign over `visits`, on one machine and on a cluster."""


def visits_data(folder: Path) -> Data:
    """Write the rows of `visits` and read them."""
    visits(folder / "visits.parquet")
    return read_data(folder / "visits.parquet", user="user", item="item")


def file_case(name: str, item: str, rounds: int, most: int | None, **choices: Any) -> Any:
    """Record a campaign over a file of data/."""
    data = read_data(DATA / f"{name}.csv.gz", user="user", item=item)
    population = data.population(rounds, b"1")
    if most is not None:
        population = population.bounded(most)
    return conducted(heavy_plan(population, choices, most), population)


def words_case(**choices: Any) -> Any:
    """Record a campaign over people who type a word each."""
    population = typists(8, 2000, b"golden")
    return conducted(heavy_plan(population, choices), population)


def visits_case(folder: Path) -> Any:
    """Record a campaign over rows in Parquet."""
    population = visits_data(folder).population(4, b"golden")
    return conducted(heavy_plan(population, VISITS), population)


def cases(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return how each case is recorded."""
    found: dict[str, Callable[[], Any]] = {}
    for name, choices in HEAVY.items():
        plan = heavy_plan(CROWD, choices)
        found[name] = partial(conducted, plan, CROWD)
        found[f"{name}: alone"] = partial(alone, plan, CROWD)
        if name != "count-median":
            found[f"{name}: interrupted"] = partial(interrupted, plan, CROWD, folder)
    for name, choices in HISTOGRAMS.items():
        plan = histogram_plan(CROWD, choices)
        found[name] = partial(conducted, plan, CROWD)
        found[f"{name}: alone"] = partial(alone, plan, CROWD)
    for method in ("slots", "adaptive"):
        small = heavy_plan(FEW, {"method": method, "threshold": 10, "budget": 900})
        found[f"{method}: clear"] = partial(conducted, small, FEW)
        found[f"{method}: masked"] = partial(conducted, small, FEW, MaskedSum())
        found[f"{method}: helper"] = partial(conducted, small, FEW, HelperSum())
        found[f"words: {method}"] = partial(words_case, method=method, threshold=40, budget=1500)
    drift = heavy_plan(DRIFT, {"method": "slots", "threshold": 40, "budget": 400})
    found["drift"] = partial(conducted, drift, DRIFT)
    found["drift: interrupted"] = partial(interrupted, drift, DRIFT, folder)
    found["file: visits"] = partial(visits_case, folder)
    found["file: msweb, slots"] = partial(
        file_case, "msweb_visits", "url", 10, None, method="slots", threshold=323, budget=1024
    )
    found["file: msweb, adaptive"] = partial(
        file_case, "msweb_visits", "url", 10, None, method="adaptive", threshold=323, budget=4096
    )
    found["file: kosarak, slots"] = partial(
        file_case, "kosarak_part", "item", 10, 92, method="slots", threshold=393, budget=4096
    )
    return found


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        result = {name: case() for name, case in cases(Path(folder)).items()}
    text = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in result.items())
    FILE.write_text("{\n" + text + "\n}\n", encoding="utf-8")
