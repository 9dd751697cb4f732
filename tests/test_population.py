"""Simulated users: the bound, the cohorts, and the law that simulation equals reports."""

from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linsketch import Clients, IntKeys, Population, Rehearsal, Server, campaign, report
from linsketch.errors import CountError, TaskError
from linsketch.hashing import Seeds, digest_bytes
from linsketch.methods import Proven
from linsketch.plan import Plan
from linsketch.randomness import SimulatedRandomness, cohorts, system_states, user_ids
from linsketch.round import RoundSketch
from linsketch.sampling import bounded
from tests.campaigns import KEYS, people, plan_for, sampled_plan


def histograms(population: Population, round_: int) -> list[tuple[Any, dict[Any, int]]]:
    """Return the word and the histogram of each user of a round, one by one."""
    items = population.keys.decode(population.item_keys)
    users = range(*population.first_users[round_ - 1 : round_ + 1].tolist())
    return [
        (
            population.users[user : user + 1],
            {
                items[population.items[row]]: int(population.counts[row])
                for row in range(*population.starts[user : user + 2].tolist())
            },
        )
        for user in users
    ]


PLANS = {
    "threshold": lambda p: sampled_plan(p, 2.5, most=4),
    "binomial": lambda p: sampled_plan(p, 2.5, most=4, sampling="binomial"),
    "paper layout": lambda p: sampled_plan(p, 3.0, most=4, layout="paper"),
    "unsampled": lambda p: plan_for(p, most=4, method="unsampled"),
    "proven": lambda p: plan_for(p, most=4, method="proven", failure_probability=0.4),
    "count-median": lambda p: plan_for(p, most=4, method="count-median"),
    "with a sketch": lambda p: replace(
        plan_for(p, most=4, method="fixed", budget=100_000),
        method=Proven(sampling_threshold=2.5, repetitions=2, sketch_rows=3, sketch_width=11),
        error=20,
        threshold=None,
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_one_encode_equals_a_report_of_each_user(name: str) -> None:
    """Simulation by linearity gives the very bytes that the users' own reports add up to."""
    population = people(users=30)
    plan: Plan = PLANS[name](population)
    task = Server(plan).open_round()
    reports = [
        report(own, plan, task, SimulatedRandomness(population.seed, word))
        for word, own in histograms(population, 1)
    ]
    (together,) = population.bounded(4).cohorts()[0].contributions(plan, task)
    ring = RoundSketch.of(plan, task).ring
    assert ring.sum(each.vector for each in reports).pack() == together.vector.pack()
    assert together.users == len(reports)
    beyond = sum(each.beyond_bound for each in reports)
    assert beyond == sum(max(sum(own.values()) - 4, 0) for _, own in histograms(population, 1))
    assert beyond > 0


def test_bound_is_uniform_without_replacement() -> None:
    """All subsets of a user's occurrences are equally likely: 20,000 draws of 2 out of 5."""
    counts, draws = np.array([2, 1, 2]), 20_000
    starts = 3 * np.arange(draws + 1)
    kept = bounded(np.tile(counts, draws), 2, system_states(draws), starts).reshape(-1, 3)
    seen = Counter(map(tuple, kept.tolist()))
    units = np.repeat(np.arange(3), counts)
    subsets = Counter(
        tuple(np.bincount(units[list(pair)], minlength=3).tolist())
        for pair in combinations(range(5), 2)
    )
    assert seen.keys() == subsets.keys()
    for subset, ways in subsets.items():
        expected = draws * ways / 10
        assert abs(seen[subset] - expected) < 6 * np.sqrt(expected)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=9), st.integers(1, 60))
def test_bound_keeps_what_fits(counts: list[int], most: int) -> None:
    """Nobody keeps more than the bound or more of an item than there was; the rest is kept."""
    kept = bounded(np.array(counts), most, system_states(1))
    assert kept.sum() == min(sum(counts), most)
    assert (kept <= counts).all()
    assert (kept >= 0).all()


def test_bound_of_huge_counts() -> None:
    """The time depends on the bound, not on the counts; impossible counts are refused."""
    kept = bounded(np.array([2**60, 2**60]), 1000, system_states(1))
    assert kept.sum() == 1000
    assert 350 < kept[0] < 650
    for bad in ([-1], [2**62]):
        with pytest.raises(CountError):
            bounded(np.array(bad), 3, system_states(1))


def test_order_of_rows_does_not_matter() -> None:
    """Law 6: rows in any order, and merged or not, give the same sums, bound included."""
    rng = np.random.default_rng(3)
    users, items = rng.integers(0, 50, 400), rng.integers(0, 30, 400)
    words = user_ids([str(user) for user in range(50)], b"s")
    names = [int(item) for item in rng.permutation(30)]

    def total(order: Any, relabel: Any) -> tuple[str, list[bytes]]:
        """Run on shuffled rows, with users and items numbered otherwise."""
        population = Population.from_rows(
            KEYS,
            [names[old] for old in np.argsort(relabel[:30])],
            relabel[:30][items[order]],
            words,
            users[order],
            np.ones(400, np.int64),
            2,
            b"s",
        ).bounded(5)
        plan = sampled_plan(population, 2.0, most=5)
        server = Server(plan)
        task = server.open_round()
        parts = [
            c.contributions(plan, replace(task, round=r + 1))
            for r, c in enumerate(population.cohorts())
        ]
        return population.fingerprint, [next(iter(p)).vector.pack() for p in parts]

    straight = total(np.arange(400), np.arange(30))
    assert straight == total(rng.permutation(400), rng.permutation(30))


def test_cohorts_are_disjoint_even_and_keyed() -> None:
    """Every user is in one round; another seed splits otherwise; sizes are those of chance."""
    words = user_ids([str(user) for user in range(100_000)], b"one")
    first, second = (cohorts(words, 10, seed) for seed in (b"one", b"two"))
    assert set(first.tolist()) == set(range(1, 11))
    sizes = np.bincount(first)[1:]
    assert (np.abs(sizes - 10_000) < 5.5 * np.sqrt(9_000)).all()
    assert abs((first == second).mean() - 0.1) < 0.006


def test_user_words_match_the_reference() -> None:
    """The loop over texts computes the documented digest, for texts of every length."""
    texts = ["", "a", "12345678", "123456789", "é🙂" * 5]
    (seed,) = Seeds(b"s").integers("users", 1)
    expected = [digest_bytes(text.encode(), seed) for text in texts]
    assert user_ids(texts, b"s").tolist() == expected


def test_equal_rows_are_added_up() -> None:
    """A user who has an item in several rows has the sum of them; big users too."""
    items = np.concatenate([np.tile(np.arange(70), 3), [5]])
    users = np.concatenate([np.zeros(210, np.int64), [1]])
    population = Population.from_rows(
        KEYS,
        list(range(70)),
        items,
        user_ids(["a", "b"], b"s"),
        users,
        np.arange(211, dtype=np.int64) + 1,
        1,
        b"s",
    )
    expected = np.bincount(items, np.arange(211) + 1).astype(int)
    assert population.item_totals() == dict(enumerate(expected.tolist()))
    assert len(population.counts) == 71


def test_cohorts_keep_to_the_plan() -> None:
    """Users with more items than planned, or other keys, do not report; nobody's rows get lost."""
    population = people()
    plan = plan_for(population, most=4)
    with pytest.raises(TaskError, match="bounded"):
        list(population.cohorts()[0].contributions(plan, Server(plan).open_round()))
    other = replace(plan_for(population), keys=IntKeys(21))
    with pytest.raises(TaskError, match="int:21"):
        list(population.cohorts()[0].contributions(other, Server(other).open_round()))


def test_users_without_rows() -> None:
    """A user who has nothing counts as a user, with no items."""
    words = user_ids(["a", "b", "c"], b"s")
    rows = np.array([0, 0])
    population = Population.from_rows(
        KEYS, [5], np.array([0, 0]), words, rows, np.array([2, 3]), 1, b"s"
    )
    assert sorted(population.totals.tolist()) == [0, 0, 5]


def test_clients_report_like_devices() -> None:
    """A campaign over single clients, each with real randomness, finds what they all have."""
    population = people(rounds=1)
    plan = plan_for(population, method="unsampled", threshold=30)
    clients = Clients([{7: 2, 9: 1}] * 20)
    found = campaign.run(plan, Rehearsal([clients])).heavy_hitters()
    assert [(e.item, e.estimate, e.stderr, e.rounds) for e in found] == [(7, 40.0, 0.0, (1,))]
