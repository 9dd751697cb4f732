"""Plans and tasks: JSON in and out, identities, refusals."""

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linsketch import (
    IntKeys,
    Plan,
    RoundTask,
    Server,
    Size,
    Utf8Keys,
    plan_campaign,
    plan_histogram,
)
from linsketch.errors import LinsketchError, PlanningError, TaskError
from linsketch.keys import parse_keys
from linsketch.methods import Adaptive, CountMedian, Fixed, Proven, Slots, Unsampled
from linsketch.plan import METHODS
from linsketch.randomness import system_states
from linsketch.round import RoundSketch, TableShape
from linsketch.sampling import Sampling, binomial_sample, largest_total, threshold_sample
from linsketch.sketch.slots import SlotClass
from tests.campaigns import method_of, people, plan_for, with_options

KINDS = (Adaptive, Fixed, Unsampled, Proven, CountMedian, Slots)
NUMBERS: dict[str, Any] = {
    "rounds": 3,
    "users_per_round": 100,
    "items_per_user": 5,
    "keys": Utf8Keys(8),
    "seed": b"plan",
}
PLAN = plan_campaign(**NUMBERS, threshold=20, method="adaptive").plan
FIXED = plan_campaign(**NUMBERS, threshold=20, method="fixed").plan


@given(
    st.integers(1, 50),
    st.integers(2, 1000),
    st.integers(1, 20),
    st.sampled_from(["utf8:3", "bytes:9", "int:20", "text:3"]),
    st.sampled_from([kind.name for kind in KINDS]),
    st.binary(min_size=1, max_size=64),
)
def test_json_round_trip(
    rounds: int, users: int, items: int, keys: str, method: Any, seed: bytes
) -> None:
    """A plan and its tasks come back equal from JSON, with the same identity."""
    plan = plan_campaign(
        rounds=rounds,
        users_per_round=users,
        items_per_user=items,
        keys=parse_keys(keys),
        seed=seed,
        threshold=min(7, rounds * users * items),
        method=method,
    ).plan
    again = Plan.from_json(json.loads(json.dumps(plan.to_json())))
    assert again == plan
    assert again.plan_id == plan.plan_id
    task = Server(plan).open_round()
    assert RoundTask.from_json(json.loads(json.dumps(task.to_json(plan))), again) == task


def test_the_identity_is_fixed() -> None:
    """The canonical form is part of the format: this identity changes with its version only."""
    assert PLAN.plan_id == "8fcbe36fbca07de7e1aaa62ade270a074a7e10ab17ca8bba8fc526aa0968e20c"


def test_every_field_is_in_the_identity() -> None:
    """Two plans that differ in anything have different identities."""
    others: dict[str, Any] = {
        "method": FIXED.method,
        "rounds": 4,
        "users_per_round": 101,
        "items_per_user": 6,
        "keys": Utf8Keys(9),
        "budget": PLAN.budget + 1,
        "seed": b"other",
        "threshold": 21,
        "failure_probability": 0.01,
        "smallest_cohort": 3,
    }
    assert {*others, "error"} == {field.name for field in fields(Plan)}
    plans = [replace(PLAN, **{name: value}) for name, value in others.items()]
    plans.append(replace(PLAN, threshold=None, error=20))
    assert len({plan.plan_id for plan in [PLAN, *plans]}) == len(plans) + 1


OPTIONS: dict[str, Any] = {
    "layout": "paper",
    "table_failure_probability": 0.02,
    "sampling_threshold": 2.5,
    "sampling": "binomial",
    "largest_t_change": 3.0,
    "repetitions": 3,
    "sketch_rows": 3,
    "sketch_width": 7,
    "slots_from": 4,
    "most_slots": 5,
    "smallest_slice": 7,
    "rows": 9,
    "width": 8,
}


def test_every_option_is_in_the_identity() -> None:
    """Two methods that differ in an option have different identities, and come back from JSON."""
    tried = set()
    first: dict[str, Any] = {"sampling": "threshold", "sketch_rows": 1, "sketch_width": 1}
    first |= {"slots_from": 2, "width": 1}
    for kind in KINDS:
        names = {field.name for field in fields(kind)}
        method = kind(**{name: value for name, value in first.items() if name in names})
        plans = [replace(PLAN, method=method)]
        plans += [with_options(plans[0], **{name: OPTIONS[name]}) for name in names]
        assert len({plan.plan_id for plan in plans}) == len(names) + 1
        assert [Plan.from_json(plan.to_json()) for plan in plans] == plans
        tried |= names
    assert tried == set(OPTIONS)


def test_what_planning_fills_in_cannot_be_chosen() -> None:
    """Options that a planner would overwrite are refused instead of thrown away."""
    for name, option in {
        "fixed": "sampling_threshold",
        "proven": "repetitions",
        "count-median": "width",
        "unsampled": "table_failure_probability",
        "slots": "sketch_rows",
    }.items():
        with pytest.raises(PlanningError, match=f"{name} has no option '{option}' to choose"):
            plan_campaign(**NUMBERS, threshold=20, method=name, **{option: OPTIONS[option]})
    with pytest.raises(PlanningError, match="into its object"):
        plan_campaign(**NUMBERS, threshold=20, method=Adaptive(), layout="paper")


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (Slots(), "1 occurrence or more"),
        (CountMedian(), "width"),
        (Proven(sketch_rows=3), "rows and a width"),
        (Slots(slots_from=2, sketch_width=3), "rows and a width"),
    ],
)
def test_unfinished_methods_are_no_plan(method: Any, says: str) -> None:
    """A method whose planning is not finished is refused before anybody accepts it."""
    with pytest.raises(PlanningError, match=says):
        replace(PLAN, method=method)


def test_one_name_one_method() -> None:
    """A second class cannot take a method's name; the same class may be defined again."""
    with pytest.raises(PlanningError, match="Slots is the method 'slots' already"):
        type("Impostor", (Slots,), {"name": "slots"})
    assert METHODS["slots"] is Slots
    for _ in range(2):  # as a notebook's cell that runs twice
        again = type("Again", (Adaptive,), {"name": "again"})
        assert METHODS.pop("again") is again


def test_options_of_other_methods_are_refused() -> None:
    """An option that a method does not have is refused by name, with those that it has."""
    with pytest.raises(
        PlanningError, match=r"adaptive has no option 'slots_from' to choose. It has: layout"
    ):
        plan_campaign(**NUMBERS, threshold=20, method="adaptive", slots_from=3)
    with pytest.raises(PlanningError, match="no method 'magic'; there are adaptive, "):
        plan_campaign(**NUMBERS, threshold=20, method="magic")
    with pytest.raises(PlanningError, match="take proven or slots"):
        plan_histogram(**NUMBERS, error=20, method="adaptive")
    chosen = plan_campaign(**NUMBERS, threshold=20, method=Adaptive(layout="paper")).plan
    assert method_of(chosen).layout == "paper"
    good = PLAN.to_json()
    bad: Any
    for bad in ({"slots": {}}, {"magic": {}}, {}, {"adaptive": 5}, "adaptive", None):
        with pytest.raises(PlanningError):
            Plan.from_json({**good, "method": bad})


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("method", "adaptive", "an object like"),
        ("rounds", 0, "rounds"),
        ("threshold", 0, "threshold"),
        ("threshold", 10**6, "no item can reach"),
        ("threshold", None, "threshold"),
        ("error", 3, "threshold"),
        ("seed", b"", "seed"),
        ("smallest_cohort", 1, "smallest_cohort"),
        ("failure_probability", 1.0, "between 0 and 1"),
        ("users_per_round", 10**9, "2\\*\\*40"),
        ("keys", "utf8:8", "keys"),
    ],
)
def test_plan_refusals(field: str, value: Any, says: str) -> None:
    """What cannot work is refused by name."""
    changes = {field: value} | ({"items_per_user": 10**9} if field == "users_per_round" else {})
    with pytest.raises(PlanningError, match=says):
        replace(PLAN, **changes)


def test_equal_plans_have_one_identity() -> None:
    """1 and 1.0 are one t, and true is none."""
    one, same = (with_options(PLAN, sampling_threshold=t) for t in (2, 2.0))
    assert one.plan_id == same.plan_id
    for bad in (True, 1.0000001, 0.5, "2"):
        with pytest.raises(PlanningError):
            with_options(PLAN, sampling_threshold=bad)


def test_other_versions_and_fields_are_refused() -> None:
    """A plan of another version, with a field too many or too few, or of nonsense is refused."""
    good = PLAN.to_json()
    bad: Any
    for bad in (
        {**good, "version": 1},
        {**good, "surprise": 1},
        {name: value for name, value in good.items() if name != "rounds"},
        {**good, "seed": "xyz"},
        {**good, "keys": 5},
        {**good, "rounds": "3"},
        [],
        None,
    ):
        with pytest.raises(PlanningError):
            Plan.from_json(bad)


def test_task_refusals() -> None:
    """A client refuses tasks of another plan, round, sampling, table or budget."""
    plan = FIXED
    task = Server(plan).open_round()
    assert task.table is not None
    small = TableShape(task.table.size, 5, task.table.capacity)
    large = TableShape(Size(3, 3, 10**6), task.table.max_count, task.table.capacity)
    wrongs = {
        "for plan": replace(task, plan_id=PLAN.plan_id),
        "Round 4": replace(task, round=4),
        "the plan allows": replace(task, sampling_threshold=task.sampling_threshold + 1),
        "holds counts": replace(task, table=small),
        "bytes": replace(task, table=large),
        "has no table": replace(task, table=None),
    }
    for says, wrong in wrongs.items():
        with pytest.raises(TaskError, match=says):
            RoundSketch.of(plan, wrong)
    RoundSketch.of(plan, task)
    for bad in (0, True, "1", 1.5):
        with pytest.raises(PlanningError, match="round"):
            replace(task, round=bad)  # type: ignore[arg-type]


def test_tampered_task_json_is_refused() -> None:
    """Whatever one changes in a task's JSON, it is no task of the plan any more."""
    plan = FIXED
    good = Server(plan).open_round().to_json(plan)
    for name, value in {
        "plan_id": "0" * 64,
        "round": "1",
        "sampling_threshold": 1.5,
        "version": 2,
        "slots": [],
        "table": {**good["table"], "moduli": [2, 3]},
        "slice": 0,
    }.items():
        with pytest.raises(LinsketchError):
            RoundTask.from_json({**good, name: value}, plan)
    for name in good["table"]:
        with pytest.raises(LinsketchError):
            RoundTask.from_json({**good, "table": {**good["table"], name: -1}}, plan)
        with pytest.raises(LinsketchError):
            RoundTask.from_json({**good, "table": {**good["table"], name: "x"}}, plan)


@pytest.mark.parametrize("sampling", ["threshold", "binomial"])
@pytest.mark.parametrize("t", [1.0, 1.5, 7.25, 900.0])
def test_sampled_totals_stay_within_the_ring(sampling: Sampling, t: float) -> None:
    """The largest total that a ring must hold is kept, and not by a factor too large."""
    sample = threshold_sample if sampling == "threshold" else binomial_sample
    ones = np.ones(20_000, np.int64)
    totals = [int(sample(ones, t, system_states(20_000)).sum()) for _ in range(200)]
    bound = largest_total(20_000, t, sampling)
    assert max(totals) <= bound
    expected = 20_000 / (t if sampling == "binomial" else 1)
    assert bound <= expected + 12 * np.std(totals) + 40 * t


def test_sums_split_like_they_were_joined() -> None:
    """A message of several tables and a sketch is one vector, and comes apart again."""
    population = people()
    plan = plan_for(population, method="proven", failure_probability=0.3)
    plan = with_options(plan, sketch_rows=3, sketch_width=5)
    plan = replace(plan, budget=plan.budget + 100)
    task = Server(plan).open_round()
    sketch = RoundSketch.of(plan, task)
    (total,) = population.cohorts()[0].contributions(plan, task)
    parts = sketch.split(total.vector)
    assert len(parts.tables) == method_of(plan).repetitions > 1
    assert parts.sketch is not None
    assert parts.slots is None
    pieces = [array for part in (*parts.tables, parts.sketch) for array in part.arrays]
    assert sketch.ring.vector(pieces) == total.vector
    assert sketch.ring.wire_bytes <= plan.budget
    with pytest.raises(TaskError, match="one group"):
        sketch.split(total.vector, group=1)


def test_layouts_are_built_once() -> None:
    """The layout of a plan and a task is one object, which nobody can change from outside."""
    task = Server(PLAN).open_round()
    again = RoundTask.from_json(task.to_json(PLAN), Plan.from_json(PLAN.to_json()))
    sketch = RoundSketch.of(PLAN, task)
    assert RoundSketch.of(PLAN, again) is sketch
    before = sketch.context
    changed = task.to_json(PLAN)
    changed["round"], changed["table"]["k"] = 2, 9
    assert task.to_json(PLAN) != changed
    assert RoundSketch.of(PLAN, task).context == before


@pytest.mark.parametrize("warm", [False, True])
def test_equal_is_not_enough(warm: bool) -> None:
    """True and 2.0 are no items 1 and 2, whether or not a client has seen the right task before."""
    keys, method = IntKeys(8), Slots(slots_from=2)
    plan = replace(PLAN, keys=keys, method=method, seed=b"warm" if warm else b"cold")
    table = method.fitting_table(plan, plan.budget, 1.0, 100)
    task = RoundTask(plan.plan_id, 1, 1.0, table, (SlotClass(4, (1, 2)),))
    good = task.to_json(plan)
    if warm:
        assert RoundTask.from_json(good, plan) == task
    bad = {**good, "slots": [{"bits": 4, "items": [True, 2.0]}]}
    with pytest.raises(TaskError):
        RoundTask.from_json(bad, plan)


def test_parse_keys() -> None:
    """Names of key spaces round-trip; others are refused."""
    for name in ("utf8:20", "bytes:1", "int:64", "text:2:abc"):
        assert parse_keys(name).name == name
    assert parse_keys("text:3").bounds == (46**3,)
    for bad in ("utf8", "utf8:", "utf8:0", "utf8:x", "int:32:4", "word:3", "utf8:٣", ""):
        with pytest.raises(PlanningError):
            parse_keys(bad)
    assert IntKeys(3).most == 8
