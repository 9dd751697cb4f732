"""The transcript: durable, exact, and refused where it does not belong."""

import json
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linsketch import Contribution, Rehearsal, Server, Transcript, campaign
from linsketch.errors import TranscriptError
from linsketch.results.outcome import outcome_in
from tests.campaigns import people, plan_for

POPULATION = people(rounds=4, users=120)
PLAN = plan_for(POPULATION)


def finished(path: Path) -> Transcript:
    """Return the transcript of a whole campaign."""
    transcript = Transcript.create(path, PLAN)
    campaign.run(PLAN, Rehearsal(POPULATION.cohorts()), transcript=transcript)
    return transcript


def test_everything_follows_from_the_file(tmp_path: Path) -> None:
    """A copy of the file alone gives the same outcome, to the byte."""
    with finished(tmp_path / "a.sqlite") as transcript:
        said = json.dumps(outcome_in(transcript).to_json())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.sqlite"]
    copy = tmp_path / "elsewhere"
    copy.mkdir()
    shutil.copy(tmp_path / "a.sqlite", copy / "b.sqlite")
    with Transcript(copy / "b.sqlite") as again:
        assert json.dumps(outcome_in(again).to_json()) == said
        assert again.plan == PLAN
        direct = campaign.run(PLAN, Rehearsal(POPULATION.cohorts()))
        assert again.server().heavy_hitters() == direct.heavy_hitters()


def test_resumes_after_each_round(tmp_path: Path) -> None:
    """Stopped after any round, a campaign goes on to the same end."""

    class Stopped(Exception):  # noqa: N818  # it is none
        pass

    with finished(tmp_path / "whole.sqlite") as whole:
        expected = json.dumps(outcome_in(whole).to_json())
    for stop in range(1, 4):
        path = tmp_path / f"{stop}.sqlite"

        def watch(progress: campaign.Progress, stop: int = stop) -> None:
            if progress.closed.task.round == stop:
                raise Stopped

        with Transcript.create(path, PLAN) as transcript, pytest.raises(Stopped):
            campaign.run(PLAN, Rehearsal(POPULATION.cohorts()), transcript=transcript, watch=watch)
        with Transcript(path) as transcript:
            assert len(transcript.server().rounds) == stop
            campaign.run(PLAN, Rehearsal(POPULATION.cohorts()), transcript=transcript)
            assert json.dumps(outcome_in(transcript).to_json()) == expected


def test_no_round_is_counted_twice(tmp_path: Path) -> None:
    """Adding a closed round again is refused, and the record stays as it was."""
    with finished(tmp_path / "a.sqlite") as transcript:
        before = list(transcript._database.iterdump())
        (_, (total,), _), *_ = transcript.rounds()
        first = transcript.server().rounds[0]
        with pytest.raises(TranscriptError, match="running twice"):
            transcript.add(first, [Contribution(total.vector, 99)])
        assert list(transcript._database.iterdump()) == before


def test_nothing_is_written_over(tmp_path: Path) -> None:
    """A file that exists is not taken for a new transcript; the file is private and says why."""
    path = tmp_path / "a.sqlite"
    finished(path).close()
    with pytest.raises(TranscriptError, match="exists"):
        Transcript.create(path, PLAN)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with Transcript(path) as transcript:
        assert "sensitive" in transcript.fact("notice")


def test_foreign_and_damaged_files_are_refused(tmp_path: Path) -> None:
    """No file, another file, another version, a changed sum or task: all say what is wrong."""
    with pytest.raises(TranscriptError, match="no transcript"):
        Transcript(tmp_path / "none.sqlite")
    text = tmp_path / "text.sqlite"
    text.write_text("hello " * 100)
    with pytest.raises(TranscriptError, match="not a database"):
        Transcript(text)
    sqlite3.connect(tmp_path / "other.sqlite").execute("CREATE TABLE x (y)").connection.close()
    with pytest.raises(TranscriptError, match="no transcript of linsketch"):
        Transcript(tmp_path / "other.sqlite")
    changes = {
        "PRAGMA user_version = 9": "version 9",
        "UPDATE facts SET value = replace(value, '\"rounds\": 4', '\"rounds\": 5')": "damaged",
        "UPDATE rounds SET sum = substr(sum, 1, 100) WHERE round = 2": "damaged",
        "UPDATE rounds SET task = replace(task, '\"round\":2', '\"round\":3')": "damaged",
        "UPDATE rounds SET task = '{' WHERE round = 1": "damaged",
        "UPDATE facts SET value = '{' WHERE name = 'plan'": "damaged",
    }
    for number, (change, says) in enumerate(changes.items()):
        path = tmp_path / f"{number}.sqlite"
        finished(path).close()
        database = sqlite3.connect(path)
        database.execute(change)
        database.commit()
        database.close()
        with pytest.raises(TranscriptError, match=says):
            outcome_in(Transcript(path))


def test_a_killed_process_loses_no_closed_round(tmp_path: Path) -> None:
    """Killed with SIGKILL at some moment, the same command goes on and ends the same."""
    data = tmp_path / "data.csv"
    rows = [f"u{i % 997},i{(i * i) % 89}" for i in range(8000)]
    data.write_text("user,item\n" + "\n".join(rows) + "\n")
    command = [sys.executable, "-m", "linsketch", "run", str(data), "--user", "user"]
    command += ["--item", "item", "--rounds", "60", "--threshold", "50", "--budget", "2000"]

    def start(out: Path) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(  # noqa: S603  # ours
            [*command, "--out", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    assert start(tmp_path / "whole").wait(120) == 0
    killed = 0
    for rounds in (1, 20, 45):
        out = tmp_path / "killed"
        process = start(out)
        while process.poll() is None and _closed(out / "transcript.sqlite") < rounds:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        killed += process.wait(60) != 0
        assert _closed(out / "transcript.sqlite") >= rounds
    assert killed
    assert start(tmp_path / "killed").wait(120) == 0
    ends = [(tmp_path / out / "result.json").read_bytes() for out in ("whole", "killed")]
    assert ends[0] == ends[1]


def _closed(path: Path) -> int:
    if not path.exists():
        return 0
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return int(database.execute("SELECT count(*) FROM rounds").fetchone()[0])
    except sqlite3.OperationalError:  # locked while a round is being added
        return 0
    finally:
        database.close()


def test_a_full_disk_keeps_what_was_there(tmp_path: Path) -> None:
    """When a round cannot be written, the closed ones stay and can be gone on from."""
    path = tmp_path / "a.sqlite"
    transcript = Transcript.create(path, PLAN)
    with transcript:
        pages = transcript._database.execute("PRAGMA page_count").fetchone()[0]
        transcript._database.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(TranscriptError, match="full"):
            campaign.run(PLAN, Rehearsal(POPULATION.cohorts()), transcript=transcript)
    with Transcript(path) as transcript:
        assert isinstance(transcript.server(), Server)
        campaign.run(PLAN, Rehearsal(POPULATION.cohorts()), transcript=transcript)
        assert len(transcript.server().rounds) == 4
