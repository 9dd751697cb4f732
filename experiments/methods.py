"""What section 7 compares, and what it leaves out: the package's methods, and a few more.

To add one, derive a method here (docs/architecture.md) and add a line below. Everything is
encoded and read back as in a campaign: nothing is modelled.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiments.drawn import DOMAIN, KEYS, Drawn
from linsketch import CountSketch, Method, Plan, Seeds, Server
from linsketch.arrays import Estimates
from linsketch.history import FailedRounds
from linsketch.methods import Adaptive, CountMedian, Fixed, Slots
from linsketch.methods.count_median import Medians
from linsketch.methods.listing import ListedSums
from linsketch.methods.practical import Practical
from linsketch.methods.slots import Evidence
from linsketch.methods.tables import threshold_of
from linsketch.plan import Brief, Scope
from linsketch.round import TableShape
from linsketch.sampling import largest_total
from linsketch.sketch.iblt import Layout
from linsketch.sketch.sizing import smallest_size

HASHES = Seeds(b"section 7")
FIXED = (1.0, 1.25, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
ROWS = (5, 7, 9, 11)
WORD = 2  # bytes
WORDS_A_KEY = 8  # "at most", as the paper's figures count


@dataclass(frozen=True, kw_only=True)
class SharedHashes(CountMedian):
    """Count-median as the paper drew it: the errors of an item are the same in every round."""

    name = "count-median-shared"

    def sketch(self, scope: Scope, round_: int) -> CountSketch:  # noqa: ARG002  # the same in all
        """Return the sketch of all rounds."""
        hashes, most = Seeds(scope.seed), scope.items_per_round
        return CountSketch(scope.keys, self.rows, self.width, most, hashes, hashes)


@dataclass(frozen=True, kw_only=True)
class PaperCount(Practical):
    """Tables counted as the paper counts: 8 words a key, whatever they weigh on the wire.

    The plan's budget is what they weigh.
    """

    layout: Layout = "paper"
    capacity: int = 0  # chosen by the planner

    def plan(self, brief: Brief) -> Plan:
        """Choose the capacity that the budget pays for, and t."""
        threshold, budget = threshold_of(self, brief), brief.budget
        if budget is None:
            budget = self.free_budget(brief, threshold or 0)
        method = replace(self, capacity=budget // (WORD * WORDS_A_KEY))
        needed = method.table_bytes(brief, method.capacity, method.largest_t(brief))
        return super(PaperCount, method).plan(replace(brief, budget=needed))

    def fitting_table(
        self,
        scope: Scope,
        budget: int,  # noqa: ARG002  # it has been spent
        t: float,
        taken: int = 0,  # noqa: ARG002  # by nothing
    ) -> TableShape:
        """Return the table of the capacity."""
        size = smallest_size(self.capacity, self.table_failure_probability)
        most = largest_total(scope.items_per_round, t, self.sampling)
        return TableShape(size, most, self.capacity)


@dataclass(frozen=True, kw_only=True)
class PaperFixed(PaperCount, Fixed):
    """Section 7's rule for t."""

    name = "paper-fixed"


@dataclass(frozen=True, kw_only=True)
class PaperAdaptive(PaperCount, Adaptive):
    """Algorithm 4."""

    name = "paper-adaptive"


@dataclass(frozen=True, kw_only=True)
class PaperConstant(PaperCount):
    """A t that is given, `sampling_threshold`; 1 is unsampled."""

    name = "paper-constant"

    def first_t(self, filling: float, threshold: int) -> float:  # noqa: ARG002  # it is given
        """Return what was given."""
        return self.sampling_threshold


@dataclass(frozen=True)
class Entry:
    """A method under the name of its curve; the best of several with one name is drawn."""

    name: str
    method: Method[Any]
    per_threshold: bool = False  # whether its rounds depend on the threshold
    failed: FailedRounds = "zero"

    def plan(
        self, rounds: int, mean: int, words: int, threshold: int, items_per_user: int = 1
    ) -> Plan:
        """Return the plan; a round has up to half as many items more than on average."""
        brief = Brief(
            rounds=rounds,
            users_per_round=-(-(3 * mean // 2) // items_per_user),
            items_per_user=items_per_user,
            mean_items_per_user=items_per_user * 2 / 3,
            keys=KEYS,
            seed=HASHES.seed,
            threshold=threshold or 1,
            budget=WORD * words,
        )
        if isinstance(self.method, CountMedian):  # a counter is a word, even if it weighs less
            method = replace(self.method, width=words // self.method.rows)
            return brief.plan(method, WORD * words)
        return self.method.plan(brief)

    def run(
        self, plan: Plan, rounds: Sequence[Drawn], at: Collection[int]
    ) -> Iterator[tuple[int, Estimates]]:
        """Run rounds, and yield (round, estimates of the whole domain) after some of them."""
        server = Server(plan)
        for data in rounds:
            task = server.open_round()
            server.close_round(task, [data.contribution(plan, task)])
            if task.round in at:
                yield task.round, estimates(server, self.failed)


def estimates(server: Server, failed: FailedRounds) -> Estimates:
    """Estimate the count of every item of the domain."""
    history, total = server.history, np.zeros(len(DOMAIN))
    if isinstance(history, Medians):
        return history.totals(DOMAIN)
    if isinstance(history, ListedSums | Evidence):
        found = history.listed(failed)
        total[found.keys[:, 0]] = found.estimates
        return total
    lines = server.histogram(failed, KEYS.decode(DOMAIN))  # any other method: slower
    keys = KEYS.encode(line.item for line in lines).keys[:, 0]
    total[keys] = [line.estimate for line in lines]
    return total


ENTRIES = [
    *(Entry("count-median, shared hashes", SharedHashes(rows=rows)) for rows in ROWS),
    *(Entry("count-median, fresh hashes", CountMedian(rows=rows)) for rows in ROWS),
    Entry("IBLT, unsampled", PaperConstant()),
    Entry("IBLT, fixed sampling", PaperFixed(), per_threshold=True),
    Entry("IBLT, adaptive", PaperAdaptive()),
    *(Entry("IBLT, best fixed t", PaperConstant(sampling_threshold=t)) for t in FIXED),
    Entry("IBLT, adaptive, true size", Adaptive(layout="paper")),
    Entry("compact, fixed sampling", Fixed(), per_threshold=True),
    Entry("compact, adaptive", Adaptive()),
    Entry("compact, adaptive, binomial", Adaptive(sampling="binomial")),
    Entry("slots and slices", Slots(sampling="binomial"), per_threshold=True, failed="scale"),
]
