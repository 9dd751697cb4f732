"""The planner: exact tails, budgets and thresholds, proofs."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linsketch import ROOT, IntKeys, TextKeys, Utf8Keys, plan_campaign, plan_histogram
from linsketch.errors import PlanningError
from linsketch.methods.proofs import heavy_constants, printed_constants, sketch_shape
from linsketch.tails import binomial_tail, smallest_bound
from tests.campaigns import conduct, method_of, people, plan_for

PAPER: dict[str, Any] = {
    "rounds": 30,
    "users_per_round": 10_000,
    "items_per_user": 1,
    "keys": TextKeys(ROOT, 3),
    "seed": b"paper",
}


@given(st.integers(1, 60), st.integers(0, 100), st.integers(-1, 62))
def test_tails_are_exact(n: int, percent: int, k: int) -> None:
    """The tail equals the sum of exact fractions."""
    p = Fraction(percent, 100)
    exact = sum(
        (math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(max(k, 0), n + 1)), Fraction(0)
    )
    assert binomial_tail(n, float(p), k) == pytest.approx(float(exact), rel=1e-9, abs=1e-15)


def test_tails_of_large_numbers() -> None:
    """Far tails of large numbers agree with the normal law, and bounds are the smallest."""
    n, p = 10**9, 0.25
    sd = math.sqrt(n * p * (1 - p))
    for z in (1, 3, 5):
        tail = binomial_tail(n, p, round(n * p + z * sd))
        assert tail == pytest.approx(math.erfc(z / math.sqrt(2)) / 2, rel=0.01)
    bound = smallest_bound(10_000, 0.04, 1e-3)
    assert binomial_tail(10_000, 0.04, bound + 1) <= 1e-3 < binomial_tail(10_000, 0.04, bound)


def test_constants_of_the_design() -> None:
    """R = 33, mn/τ = 200, β = 0.05: 53 repetitions, and the capacity that the tails give."""
    constants = heavy_constants(10_000, 33, 50, 0.05)
    assert constants.repetitions == 53
    assert constants.sampling_threshold == 25.0
    assert smallest_bound(10_000, 0.04, 1 / (32 * 33)) == 462
    assert constants.capacity == 484  # for beta / (R b) in all instead of 1 / (32 R)
    printed = printed_constants(10_000, 33, 50, 0.05)
    assert (printed.capacity, printed.repetitions) == (13_987, 132)


@given(
    st.integers(2, 10**5), st.integers(1, 200), st.integers(1, 5000), st.sampled_from([0.2, 0.01])
)
def test_proven_constants_satisfy_the_proof(
    n: int, rounds: int, threshold: int, beta: float
) -> None:
    """Whatever the numbers, the union bound of the proof holds with the chosen constants."""
    threshold = min(threshold, n * rounds)
    c = heavy_constants(n, rounds, threshold, beta)
    if c.sampling_threshold == 1:
        assert c.table_failure_probability * rounds == pytest.approx(beta)
        return
    heavy = n * rounds / threshold
    per_table = binomial_tail(n, 1 / c.sampling_threshold, c.capacity + 1)
    assert per_table + c.table_failure_probability <= beta / (rounds * c.repetitions) * 1.0001
    miss = math.exp(-2) + rounds * (per_table + c.table_failure_probability)
    half = (c.repetitions + 1) // 2
    wrong = heavy * binomial_tail(c.repetitions, min(miss, 1.0), half)
    wrong += 10 * heavy * binomial_tail(c.repetitions, 0.2, half)
    assert wrong <= beta * 1.0001


def test_sketch_shape_satisfies_the_proof() -> None:
    """The sketch's rows and width keep the error for all items that can be listed."""
    rows, width = sketch_shape(40_000, 16, 9_000, 0.05)
    p = 40_000 * 16 / (width * 9_000)
    assert 10 * 40_000 * 16 / 9_000 * binomial_tail(rows, p, (rows + 1) // 2) <= 0.05 * 1.0001
    assert rows % 2 == 1


def test_budget_and_threshold_lead_to_each_other() -> None:
    """A threshold's budget gives a threshold no larger; a larger budget a smaller threshold."""
    there = plan_campaign(**PAPER, threshold=50, method="adaptive")
    back = plan_campaign(**PAPER, budget=there.plan.budget, method="adaptive")
    assert back.plan.threshold is not None
    assert 40 <= back.plan.threshold <= 60
    thresholds = [plan_campaign(**PAPER, budget=b).plan.cutoff for b in (500, 2_000, 8_000, 32_000)]
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[-1] < thresholds[0]


@pytest.mark.parametrize("method", ["adaptive", "fixed", "unsampled", "proven", "count-median"])
def test_nothing_exceeds_the_budget(method: Any) -> None:
    """The message weighs what the forecast says, at most the budget."""
    forecast = plan_campaign(**PAPER, threshold=200, method=method)
    assert forecast.bytes_per_user_round <= forecast.plan.budget
    assert forecast.words_per_user_round == math.ceil(forecast.bytes_per_user_round / 2)
    assert forecast.lower_bound_words == 50


def test_methods_choose_their_sampling() -> None:
    """Section 7's rules: t0 = M / capacity; fixed at most τ/2; unsampled 1; proven τ/2."""
    adaptive = plan_campaign(**PAPER, threshold=50, budget=1000, method="adaptive")
    assert method_of(adaptive.plan).sampling_threshold == pytest.approx(
        10_000 / adaptive.capacity, rel=1e-3
    )
    fixed = plan_campaign(**PAPER, threshold=50, budget=1000, method="fixed")
    assert method_of(fixed.plan).sampling_threshold == 25.0
    unsampled = plan_campaign(**PAPER, threshold=50, method="unsampled")
    assert method_of(unsampled.plan).sampling_threshold == 1
    proven = plan_campaign(**PAPER, threshold=51, method="proven")
    assert method_of(proven.plan).sampling_threshold == 25.5
    known = plan_campaign(
        **{**PAPER, "items_per_user": 50},
        threshold=50,
        budget=1000,
        mean_items_per_user=1,
        method="adaptive",
    )
    assert (
        method_of(known.plan).sampling_threshold < method_of(adaptive.plan).sampling_threshold * 1.5
    )


def test_unsampled_decodes_as_a_whole() -> None:
    """Unsampled tables hold every key there can be, and fail in beta of all campaigns."""
    forecast = plan_campaign(**PAPER, threshold=50, method="unsampled")
    assert forecast.capacity == 10_000
    assert forecast.decode_failure_probability == pytest.approx(0.05 / 30)
    few = plan_campaign(**{**PAPER, "keys": IntKeys(6)}, threshold=50, method="unsampled")
    assert few.capacity == 64


def test_proven_budget() -> None:
    """From a budget the proven planner takes the smallest threshold that fits, and says if none."""
    forecast = plan_campaign(**PAPER, budget=50_000, method="proven")
    assert forecast.bytes_per_user_round <= 50_000
    tighter = plan_campaign(**PAPER, threshold=forecast.plan.cutoff - 1, method="proven")
    assert tighter.bytes_per_user_round > 50_000
    with pytest.raises(PlanningError, match="that takes"):
        plan_campaign(**PAPER, threshold=forecast.plan.cutoff, budget=1000, method="proven")


@pytest.mark.parametrize("method", ["adaptive", "fixed", "unsampled", "count-median"])
def test_a_budget_too_small_names_the_smallest(method: Any) -> None:
    """Whoever asks for too few bytes is told how many are enough, and those are."""
    with pytest.raises(PlanningError, match="smallest takes") as refusal:
        plan_campaign(**PAPER, threshold=50, budget=1, method=method)
    least = int(str(refusal.value).split("smallest takes ")[1].split(" ")[0].replace(",", ""))
    enough = plan_campaign(**PAPER, threshold=50, budget=least, method=method)
    assert enough.bytes_per_user_round <= least
    with pytest.raises(PlanningError):
        plan_campaign(**PAPER, threshold=50, budget=least - 1, method=method)


def test_histogram_branches() -> None:
    """Small errors are exact; large ones take Algorithm 3 once it weighs less."""
    numbers: dict[str, Any] = {
        "rounds": 16,
        "users_per_round": 2000,
        "items_per_user": 100,
        "keys": Utf8Keys(20),
        "seed": b"s",
    }
    exact = plan_histogram(**numbers, error=4)
    assert exact.plan.method.name == "unsampled"
    hybrid = plan_histogram(**numbers, error=50_000)
    assert method_of(hybrid.plan).sketch_rows > 0
    assert hybrid.bytes_per_user_round < exact.bytes_per_user_round
    assert hybrid.lower_bound_words == 16


@pytest.mark.parametrize("mean", [0, -1, math.nan, math.inf, 2])
def test_impossible_means(mean: float) -> None:
    """The mean of items a user is a number above 0, and at most the bound."""
    with pytest.raises(PlanningError, match="mean"):
        plan_campaign(**PAPER, threshold=50, mean_items_per_user=mean)


def test_large_numbers() -> None:
    """Where one way to plan ends, another is taken, and t never leaves its grid."""
    giant = {**PAPER, "users_per_round": 10**9, "keys": Utf8Keys(8)}
    assert plan_campaign(**giant, budget=10**5, method="proven").bytes_per_user_round <= 10**5
    small = {**giant, "items_per_user": 1000, "method": "adaptive"}
    assert plan_campaign(**small, budget=200).plan.budget == 200
    many = {**PAPER, "users_per_round": 10**6, "items_per_user": 2000}
    assert method_of(plan_histogram(**many, error=10**8).plan).sketch_rows
    skewed = {**PAPER, "rounds": 2, "users_per_round": 57, "items_per_user": 1001}
    assert plan_campaign(**skewed, mean_items_per_user=11, threshold=50_000).capacity >= 1


def test_proven_with_a_budget_for_everything() -> None:
    """Where the budget holds everything, the smallest threshold is taken: not 1, unasked."""
    numbers: dict[str, Any] = {**PAPER, "users_per_round": 1000, "keys": Utf8Keys(8)}
    exact = plan_campaign(**numbers, threshold=2, method="proven")
    assert method_of(exact.plan).sampling_threshold == 1
    again = plan_campaign(**numbers, budget=exact.plan.budget, method="proven")
    assert again.plan.threshold == 2


def test_refusals() -> None:
    """Neither threshold nor budget, or impossible numbers, are refused."""
    with pytest.raises(PlanningError, match="Give a threshold"):
        plan_campaign(**PAPER)
    with pytest.raises(PlanningError, match="no item can reach"):
        plan_campaign(**PAPER, threshold=300_001)
    with pytest.raises(PlanningError, match="threshold"):
        plan_campaign(**PAPER, threshold=-4)


def test_the_smallest_budget_lasts_a_campaign() -> None:
    """With the smallest budget, adaptive sampling finds a table in every round, overfull or not."""
    population = people(rounds=12, users=300)
    with pytest.raises(PlanningError, match="smallest takes") as refusal:
        plan_for(population, budget=1)
    least = int(str(refusal.value).split("smallest takes ")[1].split(" ")[0].replace(",", ""))
    server = conduct(population, budget=least)
    assert server.done
    assert all(closed.wire_bytes <= least for closed in server.rounds)
