"""The population of section 7: words cut to three characters, drawn anew in every round.

The words are not StackOverflow's, which the paper used: those of a file given, else wordfreq's.
"""

import gzip
import hashlib
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from linsketch import ROOT, Seeds, TextKeys
from linsketch.arrays import Counts, Words
from linsketch.randomness import simulated_states

KEYS = TextKeys(ROOT, 3)
DOMAIN: Words = np.arange(KEYS.most, dtype=np.uint64)[:, None]
ROUNDS = 100  # the most that any figure asks for


@dataclass(frozen=True)
class Distribution:
    """Items (their numbers in the domain) and how likely each is."""

    name: str
    items: Words
    cumulative: np.ndarray

    @classmethod
    def read(cls, path: Path | None) -> "Distribution":
        """Read `word<TAB>count` lines, or take the packaged word list."""
        if path is None:
            from wordfreq import get_frequency_dict

            pairs = list(get_frequency_dict("en", "large").items())
            name = "wordfreq's English words"
        else:
            opened = gzip.open if path.suffix == ".gz" else open
            with opened(path, "rt", encoding="utf-8") as file:
                lines = [line.rstrip("\n").rsplit("\t", 1) for line in file]
            pairs = [(word, float(count)) for word, count in lines]
            name = f"the words of {path.name}"
        weights: defaultdict[str, float] = defaultdict(float)
        allowed = set(ROOT)
        for word, weight in pairs:
            if len(word) >= 3 and allowed.issuperset(word[:3]):
                weights[word[:3]] += weight
        texts = sorted(weights)
        cumulative = np.cumsum([weights[text] for text in texts])
        return cls(name, KEYS.encode(texts).keys[:, 0], cumulative / cumulative[-1])

    @property
    def digest(self) -> str:
        """Name the distribution in a few letters."""
        data = self.items.tobytes() + self.cumulative.tobytes()
        return hashlib.sha256(data).hexdigest()[:12]


@dataclass(frozen=True)
class Round:
    """The rows of one round: what each user has, how often, and the state that it samples with."""

    keys: Words
    counts: Counts
    states: Words

    @property
    def histogram(self) -> Counts:
        """The true counts, over the whole domain."""
        weights = np.bincount(self.keys, self.counts, minlength=len(DOMAIN))
        return weights.astype(np.int64)


@lru_cache(maxsize=4)
def draw(
    distribution_file: str, mean: int, run: int, items_per_user: int = 1, changes_after: int = 0
) -> list[Round]:
    """Draw all rounds of one run: M_r from a normal with standard deviation M / 10, iid items.

    After `changes_after` rounds, if any, the words change places: what was frequent is rare.
    """
    distribution = load(distribution_file)
    rounds = []
    for number in range(1, ROUNDS + 1):
        seeds = Seeds(f"section 7/{mean}/{run}/{items_per_user}".encode(), number)
        rng = np.random.Generator(np.random.Philox(key=seeds.words("draw", 2)))
        many = max(items_per_user, round(rng.normal(mean, mean / 10)))
        places = np.searchsorted(distribution.cumulative, rng.random(many), side="right")
        places = np.minimum(places, len(distribution.items) - 1)
        if changes_after and number > changes_after:
            places = np.random.default_rng([run, 1]).permutation(len(distribution.items))[places]
        keys = distribution.items[places]
        users = np.arange(many) // items_per_user
        pairs, counts = np.unique(users * len(DOMAIN) + keys.astype(np.int64), return_counts=True)
        owners, keys = np.divmod(pairs.astype(np.uint64), np.uint64(len(DOMAIN)))
        states = simulated_states(seeds, owners, keys[:, None])
        rounds.append(Round(keys, counts, states))
    return rounds


@lru_cache(maxsize=2)
def load(distribution_file: str) -> Distribution:
    """Read a distribution once; an empty name is the packaged one."""
    return Distribution.read(Path(distribution_file) if distribution_file else None)
