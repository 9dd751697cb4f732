"""The house: a method in one class, clients that load no server, layouts that are built once."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from linsketch import Plan, Rehearsal, RoundTask, Seeds, Transcript, campaign, plan_campaign, report
from linsketch.cli import app
from linsketch.errors import TaskError
from linsketch.history import Estimate, FailedRounds, History
from linsketch.methods import Method
from linsketch.plan import Brief
from linsketch.results.outcome import outcome_in
from linsketch.results.page import page
from linsketch.round import Parts, RoundSketch
from linsketch.sketch.countsketch import CountSketch
from tests.campaigns import people, plan_for

PEOPLE = people(rounds=4, users=800, items=60, mean=2.0)


@dataclass(frozen=True, kw_only=True)
class Halving(Method[History]):
    """A method of a test's own: count the codes 0 .. 2**20 that a dictionary has, in sketches.

    The width is halved from the second round on, so that tasks differ.
    """

    name = "halving"
    interactive = True

    width: int = 64
    dictionary: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "dictionary", tuple(self.dictionary))  # JSON has lists

    def plan(self, brief: Brief) -> Plan:
        """Take whatever budget the sketch needs."""
        sketch = CountSketch(brief.keys, 5, self.width, brief.items_per_round, *_seeds(brief, 1))
        return brief.plan(self, sketch.ring.wire_bytes)

    def open(self, plan: Plan, history: History) -> RoundTask:
        """Say by t which width it is."""
        return RoundTask(plan.plan_id, history.next_round, 2.0 if history.rounds else 1.0)

    def parts(self, plan: Plan, task: RoundTask) -> Parts:
        """Put one sketch into the vector."""
        width = int(self.width / task.sampling_threshold)
        seeds = _seeds(plan, task.round)
        return Parts(sketch=CountSketch(plan.keys, 5, width, plan.items_per_round, *seeds))

    def check(self, plan: Plan, task: RoundTask) -> None:
        """Refuse other widths."""
        assert plan.method is self
        if task.sampling_threshold not in (1.0, 2.0) or task.table or task.slots:
            raise TaskError("This is not halving.")

    def heavy_hitters(
        self, history: History, failed: FailedRounds, candidates: Iterable[Any]
    ) -> list[Estimate]:
        """Keep what reaches the threshold."""
        lines = self.histogram(history, failed, candidates)
        return [line for line in lines if line.estimate >= history.plan.cutoff]

    def histogram(
        self,
        history: History,
        failed: FailedRounds,
        candidates: Iterable[Any],
    ) -> list[Estimate]:
        """Look the dictionary up."""
        plan, totals = history.plan, Counter[int]()
        for closed in history.rounds:
            sketch = RoundSketch.of(plan, closed.task).parts.sketch
            assert sketch is not None
            for reading in closed.readings:
                assert reading.sketch_sum is not None
                values = sketch.estimate(reading.sketch_sum, self.dictionary)
                totals.update(dict(zip(self.dictionary, values.tolist(), strict=True)))
        found = [Estimate(item, float(count), 1.0, ()) for item, count in totals.items()]
        return sorted(found, key=lambda line: -line.estimate)


def _seeds(scope: Any, round_: int) -> tuple[Seeds, Seeds]:
    fresh = Seeds(scope.seed, round_)
    return fresh, fresh


def own_plan() -> Plan:
    """Plan a campaign with the test's own method."""
    items = PEOPLE.keys.decode(PEOPLE.item_keys)
    return plan_campaign(
        rounds=4,
        users_per_round=int(PEOPLE.users_in_round.max()),
        items_per_user=PEOPLE.busiest,
        keys=PEOPLE.keys,
        seed=b"own",
        threshold=150,
        method=Halving(dictionary=tuple(items)),
    ).plan


def test_a_method_in_one_class(tmp_path: Path) -> None:
    """A method that the package does not know plans, runs, resumes, replays and reports."""
    plan = own_plan()
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.method.forecast(plan).bytes_per_user_round <= plan.budget
    path = tmp_path / "transcript.sqlite"
    straight = campaign.run(plan, Rehearsal(PEOPLE.cohorts()))

    def stop(_: Any) -> None:
        raise InterruptedError

    with Transcript.create(path, plan) as transcript:
        for _ in range(plan.rounds):
            source = Rehearsal(PEOPLE.cohorts(one_by_one=True))
            with pytest.raises(InterruptedError):
                campaign.run(plan, source, transcript=transcript, watch=stop)
        outcome = outcome_in(transcript)
    truth = PEOPLE.item_totals()
    found = {line.item for line in straight.heavy_hitters()}
    assert {item for item, count in truth.items() if count >= 300} <= found
    assert [line.item for line in outcome.items] == [e.item for e in straight.heavy_hitters()]
    assert "halving" in page(outcome)
    shown = CliRunner().invoke(app, ["inspect", str(path)])
    assert shown.exit_code == 0, shown.output
    assert str(outcome.items[0].item) in shown.stdout


def test_a_client_of_that_method() -> None:
    """Its clients report through the same door, and refuse what it does not allow."""
    plan = own_plan()
    task = plan.method.open(plan, plan.method.history(plan))
    assert report({PEOPLE.keys.decode(PEOPLE.item_keys)[0]: 1}, plan, task).vector
    wrong = RoundTask(plan.plan_id, 1, 4.0)
    with pytest.raises(TaskError, match="not halving"):
        report({}, plan, wrong)


CLIENT = """
import sys
from linsketch import Plan, RoundTask, report
from linsketch.federation.node import Device, HelperNode
from linsketch.federation.letters import Request
plan = Plan.from_json({plan})
task = RoundTask.from_json({task}, plan)
report({{7: 1}}, plan, task)
roots = {{name.partition(".")[0] for name in sys.modules}}
loaded = sorted(roots | {{name for name in sys.modules if name.startswith("linsketch.")}})
print("\\n".join(loaded))
"""
FORBIDDEN = (
    *("sqlite3", "polars", "pandas", "pyarrow", "typer", "rich", "flwr", "dask", "distributed"),
    *("linsketch.server", "linsketch.campaign", "linsketch.planner", "linsketch.population"),
    *("linsketch.records", "linsketch.results", "linsketch.cli", "linsketch.federation.host"),
    "linsketch.federation.flower",
)


@pytest.mark.parametrize("method", ["slots", "adaptive", "proven", "count-median"])
def test_a_client_loads_no_server(method: str) -> None:
    """A process that reads a plan and a task and reports loads no server, no files, no tables."""
    plan = plan_campaign(
        rounds=2,
        users_per_round=50,
        items_per_user=3,
        keys=PEOPLE.keys,
        seed=b"client",
        threshold=9,
        method=method,
    ).plan
    task = plan.method.open(plan, plan.method.history(plan)).to_json(plan)
    code = CLIENT.format(plan=plan.to_json(), task=task)
    done = subprocess.run(  # noqa: S603  # ours
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert "linsketch.client" in loaded
    assert not set(loaded) & set(FORBIDDEN)


def test_a_layout_is_built_once_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of three rounds builds three layouts, however often they are asked for."""
    built: list[int] = []
    init = RoundSketch.__init__

    def counted(self: RoundSketch, plan: Plan, task: RoundTask) -> None:
        built.append(task.round)
        init(self, plan, task)

    monkeypatch.setattr(RoundSketch, "__init__", counted)
    crowd = people(rounds=3, users=300, seed=b"once")
    plan = plan_for(crowd, method="slots")
    campaign.run(plan, Rehearsal(crowd.cohorts(one_by_one=True)))
    assert built == [1, 2, 3]


def test_nothing_outside_branches_on_a_method() -> None:
    """Outside of methods/ no line asks for a method's name."""
    source = Path(campaign.__file__).parent
    for path in source.rglob("*.py"):
        if "methods" not in path.parts:
            text = path.read_text(encoding="utf-8")
            found = re.findall(r".*method(?:\.name)? (?:==|!=|in|not in) .*", text)
            found += re.findall(r".*isinstance\([\w.]*method, (?!str|type).*", text)
            found += re.findall(r".*type\([\w.]*method\) (?:is|==|in).*", text)
            assert not [line for line in found if "METHODS" not in line], path
