"""Slots for the known, slices for the unknown."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from linsketch import (
    BytesKeys,
    Clients,
    Contribution,
    IntKeys,
    Plan,
    Population,
    Rehearsal,
    RoundTask,
    Server,
    Transcript,
    Utf8Keys,
    campaign,
    plan_campaign,
    plan_histogram,
    report,
)
from linsketch.cli import app
from linsketch.errors import CountError, PlanningError, TaskError
from linsketch.methods import Adaptive
from linsketch.methods.slots import DiscoveryRule, SlotRule
from linsketch.methods.slots.tally import TAIL, spread, window
from linsketch.randomness import SimulatedRandomness, cohorts, user_ids
from linsketch.round import RoundSketch
from linsketch.securesum import ClearSum
from linsketch.sketch.slices import Slice, slice_places
from linsketch.sketch.slots import SlotClass, SlotSketch
from tests.campaigns import KEYS, evidence, method_of, people, plan_for, with_options

PEOPLE = people(rounds=6, users=1500, items=300, mean=2.0)
PLAN = plan_for(PEOPLE, method="slots", threshold=40, budget=700)


def in_slice(plan: Plan, part: Slice | None, keys: Any) -> Any:
    """Tell which keys lie in a slice."""
    places = slice_places(plan.seed, keys)
    return np.ones(len(keys), bool) if part is None else part.holds(places)


def tasks_of(server: Server) -> list[RoundTask]:
    """Return the tasks of closed rounds."""
    return [closed.task for closed in server.rounds]


@pytest.fixture(scope="module")
def finished() -> Server:
    """Return a campaign's server."""
    return campaign.run(PLAN, Rehearsal(PEOPLE.cohorts()))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 500)), max_size=20), st.integers(1, 6))
def test_slots_are_linear(rows: list[tuple[int, int]], bits: int) -> None:
    """Vectors add up to the vector of the sum: counts modulo 2**bits, and the total of all."""
    slots = SlotSketch(
        KEYS, 10**5, (SlotClass(0, (9,)), SlotClass(bits, (1, 2, 3)), SlotClass(20, (4,)))
    )
    keys = KEYS.encode([item for item, _ in rows]).keys
    counts = np.array([count for _, count in rows], np.int64)
    apart = slots.ring.sum(
        slots.encode_keys(keys[i : i + 1], counts[i : i + 1]) for i in range(len(rows))
    )
    assert slots.encode_keys(keys, counts) == apart
    total, narrow, wide = apart.arrays
    sums = {item: sum(c for i, c in rows if i == item) for item in range(10)}
    assert total.tolist() == [sum(counts.tolist())]
    assert narrow.tolist() == [sums[item] % 2**bits for item in (1, 2, 3)]
    assert wide.tolist() == [sums[4]]


def test_slots_refuse() -> None:
    """One slot an item, items within the keys, counts within the ring."""
    with pytest.raises(PlanningError, match="two slots"):
        SlotSketch(KEYS, 9, (SlotClass(3, (1,)), SlotClass(4, (1,))))
    with pytest.raises(PlanningError, match="bits"):
        SlotClass(63, ())
    with pytest.raises(CountError):
        SlotSketch(KEYS, 9, ()).encode({1: 10})


def test_slices_cover_every_key_once() -> None:
    """Slices one after the other, around the circle, look at each key exactly once."""
    keys = KEYS.encode(range(5000)).keys
    widths = [2**30, 2**31, 2**32 - 2**30 - 2**31]
    starts = [3 * 2**30, 0, 2**31]
    seen = sum(
        in_slice(PLAN, Slice(start, width), keys).astype(int)
        for start, width in zip(starts, widths, strict=True)
    )
    assert (np.asarray(seen) == 1).all()
    assert in_slice(PLAN, None, keys).all()
    quarter = in_slice(PLAN, Slice(5, 2**30), keys).mean()
    assert abs(quarter - 0.25) < 5 * np.sqrt(0.1875 / 5000)


def test_users_one_by_one_give_the_same_bytes(finished: Server) -> None:
    """A cohort that is encoded at once is the sum of its users' own reports."""
    for task in (tasks_of(finished)[1], tasks_of(finished)[-1]):
        assert task.slots
        cohort = PEOPLE.cohorts()[task.round - 1]
        apart = PEOPLE.cohorts(one_by_one=True)[task.round - 1]
        ring = RoundSketch.of(PLAN, task).ring
        together = ClearSum()(ring, cohort.contributions(PLAN, task), b"")
        assert together == ClearSum()(ring, apart.contributions(PLAN, task), b"")
        first = int(PEOPLE.first_users[task.round - 1])
        rows = slice(int(PEOPLE.starts[first]), int(PEOPLE.starts[first + 1]))
        items = KEYS.decode(PEOPLE.item_keys[PEOPLE.items[rows]])
        own = dict(zip(items, PEOPLE.counts[rows].tolist(), strict=True))
        randomness = SimulatedRandomness(PEOPLE.seed, PEOPLE.users[first : first + 1])
        alone = next(iter(apart.contributions(PLAN, task)))
        assert Contribution(report(own, PLAN, task, randomness).vector) == alone


def single_items(items: np.ndarray, rounds: int, seed: bytes) -> Population:
    """Return users with one item each, in the order in which rounds take them."""
    users = len(items)
    words = user_ids([str(user) for user in range(users)], seed)
    ones, everybody = np.ones(users, int), np.arange(users)
    order = np.argsort(cohorts(words, rounds, seed), kind="stable")
    item_of_user = np.empty(users, int)
    item_of_user[order] = items
    return Population.from_rows(
        IntKeys(8), range(200), item_of_user, words, everybody, ones, rounds, seed
    )


def test_known_items_are_counted_exactly() -> None:
    """Evidence of slots is the truth, though the slots are narrower than the counts."""
    rng = np.random.default_rng(2)
    items = np.where(rng.random(12_000) < 0.4, 7, rng.integers(0, 200, 12_000))
    crowd = single_items(items, 4, b"heavy")
    plan = plan_for(crowd, method="slots", threshold=50, budget=600)
    rounds = campaign.run(plan, Rehearsal(crowd.cohorts())).rounds
    known = evidence(plan, rounds)
    assert not known.past
    wrapped = 0
    for key, exact in zip(known.keys, known.now.exact.tolist(), strict=True):
        item, expected = plan.keys.decode(key[None])[0], 0
        for closed in rounds:
            task = closed.task
            users = slice(*crowd.first_users[task.round - 1 : task.round + 1].tolist())
            count = int((crowd.items[users] == item).sum())
            width = {name: each.bits for each in task.slots or () for name in each.items}.get(item)
            if width is not None:
                expected += count * (width > 0)
                wrapped += count >= 2**width > 1
            elif task.sampling_threshold == 1 and closed.peels[0].complete:
                expected += count * bool(in_slice(plan, task.slice, key[None])[0])
        assert exact == expected
    assert wrapped


def test_a_campaign_with_slots(finished: Server) -> None:
    """Most heavy items are found, within the errors that are said; the budget holds."""
    truth = PEOPLE.item_totals()
    found = {line.item: line for line in finished.heavy_hitters()}
    heavy = {item for item, count in truth.items() if count >= PLAN.cutoff}
    both = len(heavy & found.keys())
    assert 2 * both / (len(heavy) + len(found)) > 0.9
    for item, line in found.items():
        assert abs(line.estimate - truth[item]) <= 6 * line.stderr + 1e-9
        assert not line.suspect
    for closed in finished.rounds:
        assert closed.wire_bytes <= PLAN.budget
        assert closed.down_bytes == len(RoundSketch.of(PLAN, closed.task).context)
    as_zero = {line.item: line.estimate for line in finished.histogram("zero")}
    assert sum(as_zero.values()) < 1.2 * sum(truth.values())


def test_resumed_servers_ask_the_same(finished: Server, tmp_path: Path) -> None:
    """Tasks are a pure function of the transcript: read back, it asks and answers the same."""
    with Transcript.create(tmp_path / "t", PLAN) as transcript:
        campaign.run(PLAN, Rehearsal(PEOPLE.cohorts()), transcript=transcript)
        again = transcript.server()
        assert tasks_of(again) == tasks_of(finished)
        assert again.heavy_hitters() == finished.heavy_hitters()
    for number in range(PLAN.rounds):
        server = Server(PLAN)
        for closed in finished.rounds[:number]:
            server.history.add(closed)
        assert server.open_round() == tasks_of(finished)[number]


def test_tasks_as_json(finished: Server) -> None:
    """Slots and slices travel as JSON, and what does not fit the plan is refused."""
    for task in tasks_of(finished):
        data = json.loads(json.dumps(task.to_json(PLAN)))
        assert RoundTask.from_json(data, PLAN) == task
    task = next(task for task in tasks_of(finished) if task.slots and task.slice)
    data = task.to_json(PLAN)
    wrong: tuple[dict[str, Any], ...] = (
        {"slots": [{"bits": 4, "items": [1 << 20]}]},
        {"slots": [{"bits": 4, "items": [1, 1]}]},
        {"slots": [{"bits": 99, "items": [1]}]},
        {"slots": [{"bits": 4}]},
        {"slots": 5},
        {"slice": {"start": 0, "width": 1}},
        {"slice": {"start": -1, "width": 2**31}},
        {"slice": {"width": 2**31}},
    )
    for change in wrong:
        with pytest.raises(TaskError):
            RoundTask.from_json({**data, **change}, PLAN)
    few = with_options(PLAN, most_slots=1)
    with pytest.raises(TaskError, match="the plan allows 1"):
        RoundSketch.of(few, replace(task, plan_id=few.plan_id))
    adaptive = replace(PLAN, method=Adaptive())
    with pytest.raises(TaskError, match="where the plan has none"):
        RoundSketch.of(adaptive, replace(task, plan_id=adaptive.plan_id))


def test_items_are_named_after_they_were_seen(finished: Server) -> None:
    """Nobody's item is named to others before it has been seen as often as the plan says."""
    shy = with_options(PLAN, slots_from=9)
    server = campaign.run(shy, Rehearsal(PEOPLE.cohorts()))
    for number, task in enumerate(tasks_of(server)):
        known = evidence(shy, server.rounds[:number])
        seen = dict(zip(KEYS.decode(known.keys), known.now.kept.tolist(), strict=True))
        assert all(seen[item] >= 9 for each in task.slots or () for item in each.items)
    count = sum(len(each.items) for task in tasks_of(server) for each in task.slots or ())
    assert count < sum(len(each.items) for task in tasks_of(finished) for each in task.slots or ())


def test_windows_hold() -> None:
    """Counts lie within the window around what is expected, estimated rates included."""
    rng = np.random.default_rng(1)
    for rate in (0.5, 5.0, 200.0):
        looked = rng.poisson(rate * 3, 200_000)
        expected = looked / 3
        counts = rng.poisson(rate, 200_000)
        low, high = window(expected, spread(expected, np.full(200_000, 3.0), 1.0, 1.0))
        assert ((low <= counts) & (counts <= high)).all()
        assert (high - low).mean() < 2 * TAIL + 24 * np.sqrt(rate + 1)


def drifting(changes: bool) -> tuple[Plan, Server, dict[int, int]]:
    """Run twelve rounds in which the items change places after six."""
    rng = np.random.default_rng(3)
    weights = 1 / np.arange(1, 201)
    items = rng.choice(200, 12 * 800, p=weights / weights.sum())
    late = single_items(np.zeros(len(items), int), 12, b"d").first_users[6]
    if changes:
        items[late:] = 199 - items[late:]
    crowd = single_items(items, 12, b"d")
    plan = plan_for(crowd, method="slots", threshold=100, budget=400)
    return plan, campaign.run(plan, Rehearsal(crowd.cohorts())), crowd.item_totals()


@pytest.mark.parametrize("changes", [False, True])
def test_drift_begins_an_epoch(changes: bool) -> None:
    """When the rounds stop being alike, old rates are not used for new rounds."""
    plan, server, truth = drifting(changes)
    assert len(evidence(plan, server.rounds).past) == changes
    heavy = {item for item, count in truth.items() if count >= 100}
    found = {line.item for line in server.heavy_hitters()}
    assert 2 * len(heavy & found) / (len(heavy) + len(found)) > 0.85


def test_a_slot_that_is_tampered_with_is_flagged() -> None:
    """Counts that change at random are found out over several rounds, and the slot is widened."""
    rng = np.random.default_rng(3)
    weights = 1 / np.arange(1, 201)
    crowd = single_items(rng.choice(200, 16 * 800, p=weights / weights.sum()), 16, b"d")
    plan = plan_for(crowd, method="slots", threshold=100, budget=400)
    server, target = Server(plan), 9
    for cohort in crowd.cohorts():
        task = server.open_round()
        parts = RoundSketch.of(plan, task)
        total = ClearSum()(parts.ring, cohort.contributions(plan, task), b"")
        sums = total.vector.arrays
        counted = [each for each in task.slots or () if each.bits and each.items]
        for each, array in zip(counted, sums[len(sums) - len(counted) :], strict=True):
            if target in each.items:
                array[each.items.index(target)] = rng.integers(0, min(1 << each.bits, 200))
        server.close_round(task, [total])
    known = evidence(plan, server.rounds)
    (row,) = np.flatnonzero((known.keys == plan.keys.encode([target]).keys).all(axis=1))
    assert known.suspect[row]
    assert known.suspect.sum() <= 2
    assert not known.past
    assert SlotRule().widths(known)[row] == plan.items_per_round.bit_length()
    line = next(line for line in server.histogram() if line.item == target)
    assert line.suspect
    assert line.stderr > 0


def test_where_to_look() -> None:
    """Rare items are looked for in slices, frequent ones by sampling; little is looked at whole."""
    rule = DiscoveryRule()
    part, t = rule.choose(100, 3000, 5000, 1.67)
    assert t == 1
    assert part == pytest.approx(0.8 * 100 / 3000, rel=0.01)
    part, t = rule.choose(500, 6000, 29_000, 40.0)
    assert t > 5
    assert 0.1 < part <= 1
    assert rule.choose(1000, 100, 300, 5.0) == (1.0, 1.0)
    part, t = rule.choose(50, 100, 10_000, 1000.0)
    assert part <= 1
    assert t >= 1


def test_names_are_found_whatever_their_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are compared as a whole: equal hashes change nothing."""
    keys = KEYS.encode([1, 2, 5, 9, 5, 1000]).keys

    def places(*classes: SlotClass) -> list[int]:
        return [int(place) for place in SlotSketch(KEYS, 99, classes).places(keys)]

    some = (SlotClass(3, (5, 9)), SlotClass(4, (2,)))
    expected = [-1, 2, 0, 1, 0, -1]
    assert places(*some) == expected
    monkeypatch.setattr("linsketch.hashing.digest", lambda keys, _: np.zeros(len(keys), np.uint64))
    assert places(*some) == expected
    assert places(SlotClass(3, (5,))) == [-1, -1, 0, -1, 0, -1]
    assert places() == [-1] * 6


def test_histograms_with_slots() -> None:
    """Beside the sketch of Algorithm 3, items that slots have counted are known better."""
    forecast = plan_histogram(
        rounds=6,
        users_per_round=int(PEOPLE.users_in_round.max()),
        items_per_user=PEOPLE.busiest,
        keys=PEOPLE.keys,
        seed=b"h",
        error=60,
        method="slots",
    )
    server = campaign.run(forecast.plan, Rehearsal(PEOPLE.cohorts()))
    truth = PEOPLE.item_totals()
    found = {line.item: line for line in server.histogram()}
    heavy = {item for item, count in truth.items() if count >= 120}
    assert heavy <= found.keys()
    assert all(abs(line.estimate - truth[item]) <= 60 for item, line in found.items())
    sketch = method_of(forecast.plan).sketched(forecast.plan, server.rounds, found)[0].stderr
    counted = [line for line in found.values() if line.stderr < sketch]
    assert counted
    assert all(abs(line.estimate - truth[line.item]) <= 6 * line.stderr for line in counted)
    assert all(closed.wire_bytes <= forecast.plan.budget for closed in server.rounds)


def wrong_residues(crowd: Population, server: Server) -> int:
    """Return how many slot rounds were taken for another count than the true one."""
    plan, wrong = server.plan, 0
    for number in range(1, len(server.rounds)):
        before, after = (evidence(plan, server.rounds[:n]) for n in (number, number + 1))
        if len(before.past) != len(after.past):
            continue
        known = {bytes(key): row for row, key in enumerate(before.keys)}
        users = crowd.first_users[number : number + 2]
        rows = slice(*crowd.starts[users].tolist())
        truth = np.bincount(
            crowd.items[rows], crowd.counts[rows], minlength=len(crowd.item_keys)
        ).astype(int)
        item = {bytes(key): row for row, key in enumerate(crowd.item_keys)}
        counted = server.rounds[number].task.slots or ()
        named = {name for each in counted if each.bits for name in each.items}
        for row, key in enumerate(after.keys):
            old = before.now.exact[known[bytes(key)]] if bytes(key) in known else 0
            if plan.keys.decode(key[None])[0] in named and after.slot_rounds[row]:
                grown = int(after.now.exact[row] - old)
                held = bytes(key) in known and (
                    after.slot_rounds[row] == before.slot_rounds[known[bytes(key)]]
                )
                wrong += not held and grown != truth[item[bytes(key)]]
    return wrong


@pytest.mark.parametrize("repeats", [1, 5, 20])
@pytest.mark.parametrize("kinds", [6, 120])
def test_users_who_repeat_themselves(repeats: int, kinds: int) -> None:
    """Counts that vary more than chance are no drift, and widen slots and errors instead."""
    rng = np.random.default_rng([repeats, kinds])
    users, rounds, seed = 4000, 10, b"repeat"
    weights = 1 / np.arange(1, kinds + 1) ** 1.2
    user_of_row = np.repeat(np.arange(users), 2)
    crowd = Population.from_rows(
        IntKeys(8),
        range(kinds),
        rng.choice(kinds, 2 * users, p=weights / weights.sum()),
        user_ids([str(user) for user in range(users)], seed),
        user_of_row,
        rng.geometric(1 / repeats, 2 * users),
        rounds,
        seed,
    )
    truth = crowd.item_totals()
    cut = sorted(truth.values())[-min(20, kinds)]
    plan = plan_for(crowd, method="slots", threshold=cut, budget=800)
    server = campaign.run(plan, Rehearsal(crowd.cohorts()))
    known = evidence(plan, server.rounds)
    assert not known.past
    assert wrong_residues(crowd, server) == 0
    errors = [
        (line.estimate - truth[line.item]) / max(line.stderr, 1.0)
        for line in server.heavy_hitters()
        if not line.suspect
    ]
    assert errors
    assert np.sqrt(np.mean(np.square(errors))) < 2.5


def test_rounds_of_very_different_mass() -> None:
    """In a round that is much larger than all before, unclear residues are not believed."""
    rng = np.random.default_rng(7)
    sizes = [400, 400, 400, 400, 4000, 4000, 400, 400]
    weights = 1 / np.arange(1, 201)
    plan = plan_for(single_items(np.arange(200), 2, b"x"), method="slots", threshold=50, budget=500)
    plan = replace(plan, rounds=8, users_per_round=5000)
    server, truth = Server(plan), np.zeros(200, int)
    for size in sizes:
        items = rng.choice(200, size, p=weights / weights.sum())
        truth += np.bincount(items, minlength=200)
        own = [Counter({int(item): 1}) for item in items]
        task = server.open_round()
        total = ClearSum()(
            RoundSketch.of(plan, task).ring, Clients(own).contributions(plan, task), b""
        )
        server.close_round(task, [total])
    for line in server.heavy_hitters():
        assert abs(line.estimate - truth[line.item]) <= 6 * line.stderr + 2


def test_rounds_without_anything() -> None:
    """Users who have nothing to report stop nobody; a total that cannot be is not believed."""
    plan = plan_for(PEOPLE, method="slots", threshold=40, budget=700)
    server = Server(plan)
    for _ in range(2):
        task = server.open_round()
        assert not task.slots
        zeros = RoundSketch.of(plan, task).ring.zeros()
        server.close_round(task, [Contribution(zeros, 50)])
    assert server.heavy_hitters() == []
    task = server.open_round()
    vector = RoundSketch.of(plan, task).ring.zeros()
    vector.arrays[-1][0] = 50 * plan.items_per_user + 1
    server.close_round(task, [Contribution(vector, 50)])
    assert not len(evidence(plan, server.rounds).masses[2:])
    assert server.open_round().round == 4


def test_thresholds_for_budgets() -> None:
    """A larger budget never asks for a larger threshold, and none asks for more than there is."""

    def threshold(budget: int) -> int:
        return plan_campaign(
            rounds=30,
            users_per_round=10_000,
            items_per_user=50,
            mean_items_per_user=2.0,
            keys=Utf8Keys(8),
            seed=b"b",
            budget=budget,
            method="slots",
        ).plan.cutoff

    found = [threshold(budget) for budget in (300, 500, 1000, 2000, 4000, 16_000, 64_000)]
    assert found == sorted(found, reverse=True)
    assert found[0] <= 600_000
    assert found[-1] < 200


@pytest.mark.parametrize("keys", [BytesKeys(3), Utf8Keys(8)])
def test_names_of_all_kinds_travel(keys: Any) -> None:
    """Bytes go as hex; what is none is refused, not a crash."""
    item = b"a\xff" if isinstance(keys, BytesKeys) else "maté"
    plan = replace(PLAN, keys=keys)
    task = replace(Server(plan).open_round(), slots=(SlotClass(4, (item,)),), table=None)
    t = task.sampling_threshold
    table = method_of(plan).fitting_table(plan, plan.budget, t, 100)
    task = replace(task, table=table)
    data = json.loads(json.dumps(task.to_json(plan)))
    assert RoundTask.from_json(data, plan) == task
    for bad in ("zz" * 9, "616", 5, None, [1]):
        data["slots"][0]["items"] = [bad]
        if isinstance(keys, BytesKeys) or not isinstance(bad, str) or len(bad) > 8:
            with pytest.raises(TaskError):
                RoundTask.from_json(data, plan)


def test_budgets_that_find_nothing(tmp_path: Path) -> None:
    """A budget whose threshold nothing can reach is refused, not run for nothing."""
    path = tmp_path / "same.csv"
    path.write_text("user,item\n" + "".join(f"{user},tea\n" for user in range(200)))
    columns = ["--user", "user", "--item", "item", "--rounds", "5", "--out", str(tmp_path / "o")]
    refused = CliRunner().invoke(app, ["run", str(path), *columns, "--budget", "100"])
    assert refused.exit_code == 2
    assert "Raise the budget" in refused.stderr
    found = CliRunner().invoke(app, ["run", str(path), *columns, "--budget", "400"])
    assert found.exit_code == 0
    assert "tea" in found.stdout
