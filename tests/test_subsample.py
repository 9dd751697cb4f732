"""Local sampling: unbiased in integers, exactly, and the same however the rows are ordered."""

import numpy as np
import pytest

from linsketch import Seeds
from linsketch.arrays import Counts
from linsketch.errors import CountError, PlanningError
from linsketch.hashing import mix
from linsketch.randomness import simulated_states, system_states
from linsketch.sampling import GRID, binomial_sample, on_grid, threshold_sample

SAMPLERS = {"threshold": threshold_sample, "binomial": binomial_sample}


def states(rows: int, seed: bytes = b"simulation") -> np.ndarray:
    """Return simulated states for rows of users with one key each."""
    users = np.arange(rows, dtype=np.uint64)
    return simulated_states(Seeds(seed, 1), users, np.zeros((rows, 1), np.uint64))


@pytest.mark.parametrize("t", [1.0, 1.5, 2.0, 2.75, 10 + 1 / GRID, 37.25])
@pytest.mark.parametrize("count", [1, 2, 3, 11, 40])
@pytest.mark.parametrize("rule", SAMPLERS)
def test_unbiased(rule: str, count: int, t: float) -> None:
    """Law 4: the mean of the samples is the count, below t and above, t whole or not."""
    n = 40_000
    sampled = SAMPLERS[rule](np.full(n, count, np.int64), t, states(n))
    values = sampled * t if rule == "binomial" else sampled
    deviation = max(values.std(), 1e-12) / np.sqrt(n)
    assert abs(values.mean() - count) <= 5.5 * deviation
    if rule == "threshold":
        allowed = {count} if count >= t else {0, int(np.floor(t)), int(np.ceil(t))}
        assert set(np.unique(sampled).tolist()) <= allowed


def unmix(words: np.ndarray) -> np.ndarray:
    """Return the states whose mixed words these are: the mixer backwards."""
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        undone = words
        for _ in range(64 // shift):
            undone = words ^ (undone >> np.uint64(shift))
        words = undone * np.uint64(pow(factor, -1, 2**64))
    return words


@pytest.mark.parametrize("t", [1.5, 2 + 1 / GRID, 3.0, 4.75])
def test_threshold_is_exact_in_expectation(t: float) -> None:
    """Over every possible draw, once each, the rule adds up to the count to the last digit."""
    draws = int(t * GRID)
    words = np.array([-(-(r << 64) // draws) for r in range(draws)], np.uint64)
    assert np.array_equal(mix(unmix(words)), words)
    for count in (1, 2, 3, 4):
        sampled = threshold_sample(np.full(draws, count, np.int64), t, unmix(words))
        assert sampled.sum() == count * draws


def test_t_of_one_keeps_everything() -> None:
    """At t = 1 nothing is sampled away."""
    counts = np.arange(1, 100, dtype=np.int64)
    for sample in SAMPLERS.values():
        assert np.array_equal(sample(counts, 1.0, system_states(99)), counts)


@pytest.mark.parametrize("rule", SAMPLERS)
def test_order_does_not_matter(rule: str) -> None:
    """Law 6: each decision depends on who and what alone, not on the order of the rows."""
    users = np.arange(1000, dtype=np.uint64)
    keys = (users * np.uint64(7))[:, None]
    counts = (1 + users % np.uint64(5)).astype(np.int64)
    seeds = Seeds(b"simulation", 3, 1)
    order = np.random.default_rng(1).permutation(1000)
    straight = SAMPLERS[rule](counts, 2.5, simulated_states(seeds, users, keys))
    shuffled = SAMPLERS[rule](
        counts[order], 2.5, simulated_states(seeds, users[order], keys[order])
    )
    assert np.array_equal(straight[order], shuffled)
    other = SAMPLERS[rule](counts, 2.5, simulated_states(Seeds(b"simulation", 4, 1), users, keys))
    assert not np.array_equal(straight, other)


def test_threshold_varies_less_than_binomial() -> None:
    """Threshold sampling has the smaller variance for the same t where counts exceed one."""
    counts = np.full(20_000, 8, np.int64)
    threshold = threshold_sample(counts, 10.0, states(20_000))
    binomial = binomial_sample(counts, 10.0, states(20_000)) * 10
    assert threshold.var() < binomial.var()


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint32, np.uint64])
@pytest.mark.parametrize("rule", SAMPLERS)
def test_counts_of_any_integer_type(rule: str, dtype: type) -> None:
    """Narrow and unsigned counts sample like wide ones."""
    counts: Counts = np.array([1, 5, 100], dtype)
    expected = SAMPLERS[rule](counts.astype(np.int64), 2.0, states(3))
    sampled = SAMPLERS[rule](counts, 2.0, states(3))
    assert np.array_equal(sampled, expected)
    assert sampled.dtype == np.int64


def test_real_clients_do_not_repeat() -> None:
    """The operating system's states differ from call to call."""
    assert not np.array_equal(system_states(4), system_states(4))


def test_refusals() -> None:
    """Thresholds below one or off the grid, negative counts and missing states are refused."""
    one = np.ones(1, np.int64)
    for t in (0.5, float("nan"), float("inf")):
        with pytest.raises(PlanningError):
            on_grid(t)
    with pytest.raises(PlanningError, match="multiple"):
        threshold_sample(one, 1.0000001, system_states(1))
    with pytest.raises(CountError, match="must lie in"):
        binomial_sample(-one, 2.0, system_states(1))
    with pytest.raises(CountError, match="integers"):
        threshold_sample(np.ones(1), 2.0, system_states(1))  # type: ignore[arg-type]
    with pytest.raises(CountError, match="Users"):
        simulated_states(Seeds(b"s"), np.ones(3), np.zeros((3, 1), np.uint64))  # type: ignore[arg-type]
    with pytest.raises(CountError, match="one state each"):
        threshold_sample(one, 2.0, system_states(2))
    assert on_grid(1.0000001) == 1.0
