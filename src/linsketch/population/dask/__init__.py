"""Campaigns over a partitioned data set, on the workers of a Dask cluster.

Law: the sums of all rounds are those of one machine, byte for byte, however the rows are
partitioned and whichever worker holds them. Every decision is a keyed function of (seed, round,
repetition, user, item) and sums are linear, so it is enough that all rows of a user lie in one
piece: then equal rows are merged before they are sampled, and the bound sees all of a user's items.
"""

from collections.abc import Callable
from typing import Any

from linsketch.campaign import Progress, run
from linsketch.plan import Plan
from linsketch.population.dask.connection import connected
from linsketch.population.dask.partitions import Partitions, read_parquet
from linsketch.population.dask.pieces import Pieces
from linsketch.population.rehearsal import Rehearsal
from linsketch.records.transcript import Transcript
from linsketch.server import Server

__all__ = ["Partitions", "Pieces", "campaign", "connected", "read_parquet"]


def campaign(
    frame: Any,
    plan: Plan,
    *,
    user: str,
    item: str,
    count: str | None = None,
    transcript: Transcript | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> Server:
    """Run a campaign over a Dask data frame, on the cluster of the current client.

    Users fall into rounds by the plan's seed and keep to its bound on items. All else is as in
    `linsketch.campaign.run`.
    """
    rows = Partitions(frame, user, item, count, plan.keys.name)
    people = rows.population(plan.rounds, plan.seed).bounded(plan.items_per_user)
    return run(plan, Rehearsal(people.cohorts()), transcript=transcript, watch=watch)
