"""The methods of section 7, and those that it leaves out. To add one, add a class and a line below.

A method yields, round after round, its estimate of every count of the domain so far. All of them
encode real vectors and read them back: nothing is modelled.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from experiments.words import DOMAIN, KEYS, Round
from linsketch import IBLT, CountSketch, Plan, RoundTask, Seeds, Server, Size, plan_campaign
from linsketch.arrays import Counts, Estimates
from linsketch.client.report import sampled
from linsketch.client.subsample import binomial_sample, threshold_sample
from linsketch.errors import PlanningError
from linsketch.plan import Sampling, largest_total, on_grid
from linsketch.planner.tables import cell_bits
from linsketch.rings import RingVector
from linsketch.server.tuning import halfway
from linsketch.sketch.countsketch import HashedKeys
from linsketch.sketch.iblt import Layout
from linsketch.sketch.sizing import smallest_size
from linsketch.task import in_slice, message

HASHES = Seeds(b"section 7")
FIXED = (1.0, 1.25, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
ROWS = (5, 7, 9, 11)


class Method(Protocol):
    """What a figure needs of a method."""

    @property
    def name(self) -> str:
        """The curve that it belongs to; the best of several methods with one name is drawn."""
        ...

    @property
    def per_threshold(self) -> bool:
        """Whether its sampling depends on the threshold."""
        ...

    def run(
        self, rounds: Sequence[Round], mean: int, words: int, threshold: int
    ) -> Iterator[Estimates]:
        """Yield the estimates after each round, with `words` words a user."""
        ...


def seeds(round_: int) -> Seeds:
    """Return fresh hashes for a round."""
    return Seeds(HASHES.seed, round_)


@lru_cache(maxsize=128)
def hashed_domain(hashes: Seeds) -> HashedKeys:
    """Hash the domain once for all sizes, runs and numbers of rows."""
    return CountSketch(KEYS, max(ROWS), 1, 1, hashes, hashes).hash_keys(DOMAIN)


@dataclass(frozen=True)
class CountMedian:
    """A count sketch of `rows` rows; words are counters of 16 bits."""

    rows: int
    fresh: bool
    per_threshold: bool = False

    @property
    def name(self) -> str:
        """The curve."""
        return f"count-median, {'fresh' if self.fresh else 'shared'} hashes"

    def run(
        self,
        rounds: Sequence[Round],
        mean: int,
        words: int,
        threshold: int,  # noqa: ARG002
    ) -> Iterator[Estimates]:
        """Add up the medians of the rounds."""
        total = np.zeros(len(DOMAIN))
        for number, data in enumerate(rounds, 1):
            hashes = seeds(number) if self.fresh else HASHES
            sketch = CountSketch(
                KEYS, self.rows, max(words // self.rows, 1), 2 * mean, hashes, hashes
            )
            histogram = data.histogram
            some = histogram > 0
            vector = sketch.encode_keys(DOMAIN[some], histogram[some])
            total += sketch.estimate_hashed(vector, hashed_domain(hashes))
            yield total


@dataclass(frozen=True)
class Table:
    """An IBLT: its layout, how its words are counted, and its sampling.

    `words_per_key` counts so many words for a key of capacity, as the paper does; None counts
    what the table weighs on the wire. `t` fixes the sampling threshold; "fixed" is section 7's
    rule for it, "adaptive" Algorithm 4, "unsampled" 1.
    """

    name: str
    layout: Layout
    words_per_key: float | None
    t: float | str
    sampling: Sampling = "threshold"

    @property
    def per_threshold(self) -> bool:
        """Whether its sampling depends on the threshold."""
        return self.t == "fixed"

    def table(self, mean: int, words: int, t: float) -> tuple[Size, int, int] | None:
        """Return (size, capacity, largest total) of the table that the words pay for."""
        most = largest_total(3 * mean // 2, t, self.sampling)
        if self.words_per_key:
            capacity = int(words / self.words_per_key)
            return (smallest_size(capacity), capacity, most) if capacity else None
        cells = 16 * words // cell_bits(KEYS, most, self.layout)
        low, high = 0, 2 * mean
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if smallest_size(middle).cells <= cells else (low, middle)
        return (smallest_size(low), low, most) if low else None

    def run(
        self, rounds: Sequence[Round], mean: int, words: int, threshold: int
    ) -> Iterator[Estimates]:
        """Sample, encode, add up what decodes; adapt t if asked to."""
        total, t = np.zeros(len(DOMAIN)), self._first_t(mean, words, threshold)
        for number, data in enumerate(rounds, 1):
            shape = self.table(mean, words, t)
            if shape is not None:
                size, capacity, most = shape
                table = IBLT(KEYS, size, most, seeds(number), self.layout)
                peel = table.list_entries(table.encode_keys(*self._sampled(data, t)))
                if peel.complete:
                    scale = t if self.sampling == "binomial" else 1.0
                    total[peel.keys[:, 0]] += scale * peel.counts
                if self.t == "adaptive":
                    t = on_grid(max(1.0, halfway(t, capacity, peel.cardinality.keys)))
            yield total

    def _first_t(self, mean: int, words: int, threshold: int) -> float:
        if isinstance(self.t, float):
            return self.t
        shape = self.table(mean, words, 1.0)
        if self.t == "unsampled" or shape is None:
            return 1.0
        filling = max(1.0, mean / shape[1])  # t0 = M / capacity; M_max = M
        return on_grid(filling if self.t == "adaptive" else max(1.0, min(filling, threshold / 2)))

    def _sampled(self, data: Round, t: float) -> tuple[np.ndarray, Counts, Counts | None]:
        """Return keys, sums of the samples and, for the paper's layout, holders."""
        sample = threshold_sample if self.sampling == "threshold" else binomial_sample
        values = data.counts if t == 1 else sample(data.counts, t, data.states)
        kept = values > 0
        sums = np.bincount(data.keys[kept], values[kept], minlength=len(DOMAIN)).astype(np.int64)
        some = sums > 0
        holders = None
        if self.layout == "paper":
            holders = np.bincount(data.keys[kept], minlength=len(DOMAIN))[some]
        return DOMAIN[some], sums[some], holders


@dataclass(frozen=True)
class SlotsAndSlices:
    """The campaign's own method: a server that names what it knows and looks for the rest."""

    name: str = "slots and slices"
    per_threshold: bool = True

    def plan(self, rounds: int, mean: int, words: int, threshold: int) -> Plan:
        """Return the plan; a round has up to half as many users more than on average."""
        return plan_campaign(
            rounds=rounds,
            users_per_round=3 * mean // 2,
            items_per_user=1,
            mean_items_per_user=2 / 3,
            keys=KEYS,
            seed=HASHES.seed,
            threshold=threshold,
            budget=2 * words,
            method="slots",
            sampling="binomial",
        ).plan

    def run(
        self, rounds: Sequence[Round], mean: int, words: int, threshold: int
    ) -> Iterator[Estimates]:
        """Open rounds, encode, close them; estimate all that was seen."""
        try:
            plan = self.plan(len(rounds), mean, words, threshold)
        except PlanningError:  # no table fits
            yield from (np.zeros(len(DOMAIN)) for _ in rounds)
            return
        server = Server(plan)
        for data in rounds:
            task = server.open_round()
            server.close_round(task, self._sum(plan, task, data), len(data.keys))
            found = server.listed()
            total = np.zeros(len(DOMAIN))
            total[found.keys[:, 0]] = found.estimates
            yield total

    def _sum(self, plan: Plan, task: RoundTask, data: Round) -> RingVector:
        parts = message(plan, task)
        slots = parts.slots
        assert slots is not None  # noqa: S101  # the plan has slots
        keys = data.keys[:, None]
        wanted = in_slice(plan, task.slice, keys) & (slots.places(keys) < 0)
        values = sampled(data.counts, plan, task, data.states)[wanted]
        sums = np.bincount(data.keys[wanted], values, minlength=len(DOMAIN)).astype(np.int64)
        some = sums > 0
        table = parts.tables[0].encode_keys(DOMAIN[some], sums[some])
        return parts.join([table, slots.encode_keys(keys, data.counts)])


PAPER_WORDS = 8.0  # a key, "at most", as the paper's figures count
METHODS: list[Method] = [
    *(CountMedian(rows, fresh) for fresh in (False, True) for rows in ROWS),
    Table("IBLT, unsampled", "paper", PAPER_WORDS, "unsampled"),
    Table("IBLT, fixed sampling", "paper", PAPER_WORDS, "fixed"),
    Table("IBLT, adaptive", "paper", PAPER_WORDS, "adaptive"),
    *(Table("IBLT, best fixed t", "paper", PAPER_WORDS, t) for t in FIXED),
    Table("IBLT, adaptive, true size", "paper", None, "adaptive"),
    Table("compact, fixed sampling", "compact", None, "fixed"),
    Table("compact, adaptive", "compact", None, "adaptive"),
    Table("compact, adaptive, binomial", "compact", None, "adaptive", "binomial"),
    SlotsAndSlices(),
]
