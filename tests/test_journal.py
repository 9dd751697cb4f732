"""Rounds as they close: a line for people, a JSON object for machines."""

import json
from pathlib import Path

import pytest

from linsketch import MaskedSum, Rehearsal, Transcript, campaign
from linsketch.campaign import Progress
from linsketch.results.journal import Journal
from tests.campaigns import people, plan_for

PEOPLE = people(rounds=4, users=300)


def test_a_round_in_words_and_in_json(tmp_path: Path) -> None:
    """Asked, answered, t, load, status, what is new and the seconds of each stage."""
    log, lines = tmp_path / "log", list[str]()
    journal = Journal(log)
    plan = plan_for(PEOPLE, threshold=20)
    server = campaign.run(
        plan,
        Rehearsal(PEOPLE.cohorts()),
        watch=lambda progress: lines.append(journal.line(progress)),
    )
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["round"] for line in told] == [1, 2, 3, 4]
    for line, facts, closed in zip(lines, told, server.rounds, strict=True):
        users = f"{closed.users:,}"
        assert line.startswith(f"round {facts['round']}/4: {users} asked, {users} answered, t = ")
        assert f"{facts['new_heavy_hitters']} new heavy hitter" in line
        assert facts["asked"] == facts["users"] == closed.users
        assert facts["dropouts"] == 0
        assert facts["sampling_threshold"] == closed.task.sampling_threshold
        assert facts["status"] == closed.status
        assert set(facts["seconds"]) == {"sum", "decoding"}
    found = len({line.item for line in server.heavy_hitters()})
    assert sum(facts["new_heavy_hitters"] for facts in told) >= found


def new_in(line: str) -> int:
    """Return how many heavy hitters a line says are new."""
    return int(line.split(" new heavy")[0].split()[-1])


def test_a_campaign_that_goes_on_tells_only_what_is_new(tmp_path: Path) -> None:
    """What was heavy before an interruption is not new after it."""
    plan = plan_for(PEOPLE, threshold=20, method="unsampled")
    source, journal = Rehearsal(PEOPLE.cohorts()), Journal()
    straight, broken = list[int](), list[int]()
    campaign.run(plan, source, watch=lambda p: straight.append(new_in(journal.line(p))))

    def stop(progress: Progress) -> None:
        broken.append(new_in(journal.line(progress)))
        raise InterruptedError

    with Transcript.create(tmp_path / "t", plan) as transcript:
        for _ in range(plan.rounds):
            with pytest.raises(InterruptedError):
                campaign.run(plan, source, transcript=transcript, watch=stop)
    assert broken == straight
    assert 0 < straight[0] < sum(straight)


def test_rounds_without_a_sum_and_sketches() -> None:
    """An aborted round says why; count-median lists nothing, so nothing is new."""
    lines: list[str] = []
    journal = Journal()
    plan = plan_for(PEOPLE, threshold=20)
    cohorts = PEOPLE.cohorts(one_by_one=True)
    source = Rehearsal(cohorts, MaskedSum(dropout=0.9))
    campaign.run(plan, source, watch=lambda p: lines.append(journal.line(p)))
    assert any("aborted: " in line and " lost, t = " in line for line in lines)
    counts = plan_for(PEOPLE, threshold=20, method="count-median")
    lines.clear()
    source = Rehearsal(PEOPLE.cohorts())
    campaign.run(counts, source, watch=lambda p: lines.append(journal.line(p)))
    assert all("new" not in line and "t = " not in line for line in lines)
