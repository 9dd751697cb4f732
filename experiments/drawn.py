"""The population of section 7: words cut to three characters, drawn anew in every round.

The words are not StackOverflow's, which the paper used, but those of data/words.tsv.gz.
"""

import gzip
import hashlib
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from linsketch import ROOT, Contribution, Plan, RoundTask, Seeds, TextKeys
from linsketch.arrays import Counts, Uint64s
from linsketch.randomness import RowChoice, simulated_states
from linsketch.round import RoundSketch

KEYS = TextKeys(ROOT, 3)
DOMAIN: Uint64s = np.arange(KEYS.most, dtype=np.uint64)[:, None]
ROUNDS = 100  # the most that any figure has


@dataclass(frozen=True)
class Distribution:
    """Items (their numbers in the domain) and how likely each is."""

    name: str
    items: Uint64s
    cumulative: NDArray[np.float64]

    @classmethod
    def read(cls, path: Path) -> "Distribution":
        """Read `text<TAB>count` lines; texts that the domain has no item for are left out."""
        opened = gzip.open if path.suffix == ".gz" else open
        weights: defaultdict[str, float] = defaultdict(float)
        allowed = set(ROOT)
        with opened(path, "rt", encoding="utf-8") as file:
            for line in file:
                text, count = line.rstrip("\n").rsplit("\t", 1)
                if len(text) >= 3 and allowed.issuperset(text[:3]):
                    weights[text[:3]] += float(count)
        texts = sorted(weights)
        cumulative = np.cumsum([weights[text] for text in texts])
        items = KEYS.encode(texts).keys[:, 0]
        return cls(f"the words of {path.name}", items, cumulative / cumulative[-1])

    @property
    def digest(self) -> str:
        """Name the distribution in a few letters."""
        data = self.items.tobytes() + self.cumulative.tobytes()
        return hashlib.sha256(data).hexdigest()[:12]


@dataclass(frozen=True, eq=False)
class Drawn:
    """The users of one round: rows of an item, its count and the state that it is sampled with."""

    keys: Uint64s  # distinct
    item_of_row: NDArray[np.integer]  # its number in keys
    counts: Counts
    states: Uint64s
    users: int

    def histogram(self) -> Counts:
        """Return the true counts, over the whole domain."""
        sums = np.zeros(len(DOMAIN), np.int64)
        sums[self.keys[:, 0]] = np.bincount(self.item_of_row, self.counts)
        return sums

    def contribution(self, plan: Plan, task: RoundTask) -> Contribution:
        """Return the sum of what all users send."""
        sketch = RoundSketch.of(plan, task)
        vector = sketch.encode(self.keys, self.counts, self, item_of_row=self.item_of_row)
        return Contribution(vector, self.users)

    def for_bound(self) -> Uint64s:
        """Return no states: nobody has more than the plan allows."""
        return np.empty(0, np.uint64)

    def for_sampling(self, round_: int, repetition: int, keys: Uint64s, rows: RowChoice) -> Uint64s:  # noqa: ARG002  # drawn once
        """Return the states of some rows, the same for every method."""
        return self.states[rows]


@lru_cache(maxsize=4)
def draw(
    file: str, mean: int, run: int, items_per_user: int = 1, changes_after: int = 0
) -> list[Drawn]:
    """Draw all rounds of one run: M_r from a normal with standard deviation M / 10, iid items.

    After `changes_after` rounds, if any, the words change places: what was frequent is rare.
    """
    distribution = load(file)
    rounds = []
    for number in range(1, ROUNDS + 1):
        seeds = Seeds(f"section 7/{mean}/{run}/{items_per_user}".encode(), number)
        rng = np.random.Generator(np.random.Philox(key=seeds.integers("draw", 2)))
        many = max(items_per_user, round(rng.normal(mean, mean / 10)))
        places = np.searchsorted(distribution.cumulative, rng.random(many), side="right")
        places = np.minimum(places, len(distribution.items) - 1)
        if changes_after and number > changes_after:
            places = np.random.default_rng([run, 1]).permutation(len(distribution.items))[places]
        items = distribution.items[places].astype(np.int64)
        users = np.arange(many) // items_per_user
        pairs, counts = np.unique(users * len(DOMAIN) + items, return_counts=True)
        owners, items = np.divmod(pairs, len(DOMAIN))
        states = simulated_states(seeds, owners, DOMAIN[items])
        distinct, item_of_row = np.unique(items, return_inverse=True)
        rounds.append(Drawn(DOMAIN[distinct], item_of_row, counts, states, int(users[-1]) + 1))
    return rounds


@lru_cache(maxsize=2)
def load(file: str) -> Distribution:
    """Read a distribution once."""
    return Distribution.read(Path(file))
