"""The commands, as their users run them."""

import json
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import Result
from typer.testing import CliRunner

from linsketch.cli import app

RUN = CliRunner()
NAMES = {"plan", "bytes_per_user_round", "words_per_user_round", "rounds", "heavy_hitters"}
ROUND = {"round", "users", "sampling_threshold", "capacity", "cells", "status", "keys"}
SCORE = {"precision", "recall", "f1", "missed", "wrong"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder of one's own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Write a file of 300 users, 30 items and 3 items a user."""
    return write_rows(tmp_path / "data.parquet", users=300)


def write_rows(path: Path, users: int) -> Path:
    """Write rows of users with three items each, one of them very popular."""
    items = np.minimum(np.random.default_rng(1).integers(0, 60, 3 * users), 29)
    rows = {
        "user": [f"u{i % users}" for i in range(3 * users)],
        "item": [f"item {i}" for i in items],
    }
    pl.DataFrame(rows).write_parquet(path)
    return path


def run(*args: object, command: str = "run") -> Result:
    """Run a command on a file with columns user and item."""
    columns = ["--user", "user", "--item", "item"]
    return RUN.invoke(app, [command, *map(str, args), *columns])


def said(result: Result) -> Any:
    """Return the JSON object that a command printed."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("method", ["adaptive", "fixed", "unsampled", "count-median", "proven"])
def test_run_json(data: Path, method: str) -> None:
    """--json has the promised names; bytes keep to the budget; items come largest first."""
    budget = ["--budget", 3000] if method in ("adaptive", "fixed", "count-median") else []
    options = ["--threshold", 20, "--rounds", 3, "--method", method, "--check", "--json", *budget]
    result = said(run(data, *options))
    assert set(result) >= NAMES
    assert all(ROUND | {"estimated_keys"} <= set(line) for line in result["rounds"])
    assert [line["round"] for line in result["rounds"]] == [1, 2, 3]
    assert sum(line["users"] for line in result["rounds"]) == 300
    assert result["bytes_per_user_round"] <= result["plan"]["budget"]
    assert result["words_per_user_round"] == -(-result["bytes_per_user_round"] // 2)
    estimates = [line["estimate"] for line in result["heavy_hitters"]]
    assert estimates == sorted(estimates, reverse=True)
    assert all({"item", "estimate", "stderr"} <= set(line) for line in result["heavy_hitters"])
    assert set(result["truth"]) == {"before", "after"}
    assert set(result["truth"]["after"]) == SCORE
    if method == "unsampled":
        assert result["truth"]["after"]["f1"] == 1.0
        assert all(line["stderr"] == 0 for line in result["heavy_hitters"])


def test_truth_is_that_of_the_file(data: Path) -> None:
    """The check counts the raw file, before the bound; after it, nobody has more."""
    rows = pl.read_parquet(data)
    heavy = set(rows.group_by("item").len().filter(pl.col("len") >= 20)["item"].to_list())
    options = ["--threshold", 20, "--rounds", 2, "--method", "unsampled", "--check", "--json"]
    result = said(run(data, *options, "--items-per-user", 1))
    found = {line["item"] for line in result["heavy_hitters"]}
    before, after = result["truth"]["before"], result["truth"]["after"]
    assert before["recall"] == len(found & heavy) / len(heavy) < 1
    assert set(before["missed"]) == heavy - found
    assert after["f1"] == 1.0
    totals = sum(line["estimate"] for line in result["heavy_hitters"])
    assert totals <= 300


def test_same_seed_same_result(data: Path) -> None:
    """The same command says the same; another seed samples otherwise."""
    options = [data, "--threshold", 20, "--rounds", 3, "--budget", 400, "--json"]
    first = said(run(*options, "--out", "a"))
    again = said(run(*options, "--out", "b"))
    other = said(run(*options, "--out", "c", "--seed", "2"))
    assert first == again
    assert first["rounds"] != other["rounds"]


def test_folder(data: Path) -> None:
    """A run leaves transcript, result and page; going on with a finished one changes nothing."""
    options = [data, "--threshold", 20, "--rounds", 3, "--check"]
    shown = run(*options)
    assert shown.exit_code == 0
    assert "F1" in shown.stdout
    assert "round 3/3" in shown.stderr
    (folder,) = Path("linsketch-runs").iterdir()
    names = ["report.html", "result.json", "transcript.sqlite"]
    assert sorted(path.name for path in folder.iterdir()) == names
    before = {name: (folder / name).read_bytes() for name in names}
    again = run(*options)
    assert again.exit_code == 0
    assert "All rounds are closed already" in again.stderr
    assert {name: (folder / name).read_bytes() for name in names} == before


def test_inspect_and_report(data: Path) -> None:
    """From the transcript alone: the same result, the same page; small items only when asked."""
    result = said(run(data, "--threshold", 20, "--rounds", 3, "--out", "o", "--check", "--json"))
    inspected = said(RUN.invoke(app, ["inspect", "o/transcript.sqlite", "--json"]))
    assert inspected == result
    assert json.loads(Path("o/result.json").read_text()) == result
    everything = said(RUN.invoke(app, ["inspect", "o/transcript.sqlite", "--json", "--all"]))
    assert len(everything["heavy_hitters"]) > len(result["heavy_hitters"])
    assert min(line["estimate"] for line in result["heavy_hitters"]) >= 20
    page = Path("o/report.html").read_text()
    assert RUN.invoke(app, ["report", "o/transcript.sqlite", "--out", "p.html"]).exit_code == 0
    assert Path("p.html").read_text() == page
    assert "sensitive" in RUN.invoke(app, ["inspect", "--help"]).output


def test_histogram(data: Path) -> None:
    """The histogram's counts are within the error."""
    options = [data, "--error", 5, "--rounds", 3, "--check", "--json", "--out", "h"]
    result = said(run(*options, command="histogram"))
    assert result["truth"]["after"]["largest_error"] <= 5
    assert result["truth"]["after"]["within_error"]
    assert len(result["histogram"]) == 30
    assert "Histogram" in Path("h/report.html").read_text()
    assert run(*options[:-3], command="histogram").exit_code == 0


def test_counts(data: Path) -> None:
    """A column of counts counts."""
    rows = pl.read_parquet(data).with_columns(times=pl.lit(4))
    rows.write_parquet(data)
    options = [data, "--threshold", 80, "--rounds", 2, "--method", "unsampled", "--check", "--json"]
    result = said(run(*options, "--count", "times"))
    assert result["truth"]["before"]["f1"] == 1.0
    assert result["heavy_hitters"][0]["estimate"] % 4 == 0


def test_nothing_is_shown_unasked(tmp_path: Path) -> None:
    """Without a threshold, items of single people are not listed; control characters never are."""
    path = tmp_path / "d.jsonl"
    rows = [{"user": user, "item": f"secret {user}"} for user in range(40)]
    rows += [{"user": user, "item": "\x1b[31mred"} for user in range(40)]
    path.write_text("\n".join(map(json.dumps, rows)))
    result = said(run(path, "--rounds", 2, "--budget", 100_000, "--json"))
    assert [line["item"] for line in result["heavy_hitters"]] == ["\x1b[31mred"]
    shown = run(path, "--rounds", 2, "--budget", 100_000)
    assert "\x1b" not in shown.stdout
    assert "x1b[31mred" in shown.stdout
    counts = said(run(path, "--rounds", 2, "--error", 3, "--json", command="histogram"))
    assert [line["item"] for line in counts["histogram"]] == ["\x1b[31mred"]
    (transcript,) = Path("linsketch-runs").glob(f"{counts['plan_id'][:12]}/*.sqlite")
    everything = said(RUN.invoke(app, ["inspect", str(transcript), "--all", "--json"]))
    assert len(everything["histogram"]) == 41


def test_checks_come_and_go(data: Path) -> None:
    """The truth is shown to those who ask, also when it has been looked up before."""
    options = [data, "--threshold", 20, "--rounds", 3, "--json", "--out", "o"]
    assert "truth" in said(run(*options, "--check"))
    text = run(*options).stdout
    assert "true" not in text
    assert "truth" in said(run(*options, "--check"))


def test_plan() -> None:
    """`plan` shows what a campaign costs; its plan is one that clients read."""
    options = ["plan", "--rounds", "30", "--users-per-round", "10000", "--keys", "text:3"]
    shown = RUN.invoke(app, [*options, "--threshold", "50"])
    assert "lower bound" in shown.output
    assert "slices" in shown.output
    shown = RUN.invoke(app, [*options, "--threshold", "50", "--method", "adaptive"])
    assert "2,425 keys" in shown.output
    proven = said(RUN.invoke(app, [*options, "--threshold", "50", "--method", "proven", "--json"]))
    assert proven["printed"]["capacity"] == 13_605
    assert (
        "the paper prints"
        in RUN.invoke(app, [*options, "--threshold", "50", "--method", "proven"]).output
    )
    cheap = said(RUN.invoke(app, [*options, "--budget", "4096", "--json"]))
    assert cheap["bytes_per_user_round"] <= 4096
    error = said(RUN.invoke(app, [*options, "--error", "3", "--json"]))
    assert error["plan"]["error"] == 3
    both = RUN.invoke(app, [*options, "--error", "3", "--threshold", "9"])
    assert both.exit_code == 2


def refused(result: Result, says: str) -> None:
    """Check that a command failed with one line and left nothing."""
    assert result.exit_code == 2, result.output
    assert re.search(says, result.stderr), result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert not Path("linsketch-runs").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--threshold", 0, "--rounds", 3], "threshold"),
        (["--threshold", -5, "--rounds", 3], "threshold"),
        (["--threshold", 10**6, "--rounds", 3], "No item can reach"),
        (["--threshold", 901, "--rounds", 3], "No item can reach"),
        (["--rounds", 3], "Give a threshold"),
        (["--threshold", 5, "--rounds", 0], "rounds"),
        (["--threshold", 5, "--rounds", 301], "rounds"),
        (["--threshold", 5, "--rounds", 250], "fewer rounds"),
        (["--threshold", 5, "--rounds", 3, "--budget", 10], "smallest takes"),
        (["--threshold", 5, "--rounds", 3, "--items-per-user", 0], "item"),
        (["--threshold", 5, "--rounds", 3, "--keys", "utf8:3"], "utf8:3|bytes"),
        (["--threshold", 5, "--rounds", 3, "--keys", "int:8"], "no integer"),
        (["--threshold", 5, "--rounds", 3, "--keys", "x"], "Keys are"),
        (["--threshold", 5, "--rounds", 3, "--count", "n"], "no column 'n'"),
        (["--threshold", 5, "--rounds", 3, "--seed", ""], "seed"),
        (["--threshold", 5, "--rounds", 3, "--seed", "\udcff"], "seed"),
        (["--threshold", 5, "--rounds", 3, "--seed", "x" * 65], "seed"),
        (["--budget", 500, "--rounds", 3, "--method", "unsampled"], "threshold"),
        (["--threshold", 5, "--rounds", 3, "--failure-probability", 2], "between 0 and 1"),
    ],
)
def test_bad_options(data: Path, options: list[object], says: str) -> None:
    """Impossible wishes get one clear line, exit code 2, and nothing is written."""
    refused(run(data, *options), says)


def test_bad_data(tmp_path: Path) -> None:
    """Missing, empty and one-user files get one clear line; one item for all is no trouble."""
    options = ["--threshold", 2, "--rounds", 1]
    refused(run("none.csv", *options), "no file")
    path = tmp_path / "d.csv"
    path.write_text("user,item\n")
    refused(run(path, *options), "no rows")
    path.write_text("user,item\n1,a\n1,b\n")
    refused(run(path, *options), "one user")
    path.write_text("user,item\n1,a\n2,a\n3,a\n")
    assert said(run(path, *options, "--json"))["heavy_hitters"][0]["item"] == "a"


def test_foreign_transcripts(data: Path) -> None:
    """A folder with another plan's transcript, or other data's, is left as it is."""
    assert run(data, "--threshold", 20, "--rounds", 3, "--out", "o").exit_code == 0
    before = Path("o/transcript.sqlite").read_bytes()
    refused(run(data, "--threshold", 21, "--rounds", 3, "--out", "o"), "another plan")
    rows = pl.read_parquet(data)
    rows.with_columns(pl.col("item").replace("item 1", "item 2")).write_parquet(data)
    refused(run(data, "--threshold", 20, "--rounds", 3, "--out", "o"), "other data")
    assert Path("o/transcript.sqlite").read_bytes() == before
    for command in ("inspect", "report"):
        refused(RUN.invoke(app, [command, "none.sqlite"]), "no transcript")
    database = sqlite3.connect("o/transcript.sqlite")
    database.execute("PRAGMA user_version = 3")
    database.close()
    refused(RUN.invoke(app, ["inspect", "o/transcript.sqlite"]), "version 3")


def test_unwritable_folder(data: Path, tmp_path: Path) -> None:
    """A folder that cannot be made is one clear line."""
    (tmp_path / "file").write_text("")
    refused(run(data, "--threshold", 20, "--rounds", 3, "--out", "file/o"), "file/o|Not a dir")


def command_line(*args: object) -> list[str]:
    """Return the command for a process of its own."""
    columns = ["--user", "user", "--item", "item"]
    return [sys.executable, "-m", "linsketch", "run", *map(str, args), *columns]


def test_full_disk(data: Path) -> None:
    """Where files cannot grow, the run ends with one line and exit code 2, no draft left."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000));"
        "from linsketch.cli import app; app(sys.argv[1:])"
    )
    options = [data, "--threshold", 20, "--rounds", 30, "--budget", 3000, "--out", "o"]
    command = [sys.executable, "-B", "-c", code, *command_line(*options)[3:]]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # ours
    assert result.returncode == 2, result.stderr
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in result.stderr
    assert [path.name for path in Path("o").iterdir()] == ["transcript.sqlite"]
    again = subprocess.run(command_line(*options), capture_output=True, check=False)  # noqa: S603  # ours
    assert again.returncode == 0
    assert Path("o/report.html").exists()


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C leaves a transcript and says how to go on; the same command then does."""
    data = write_rows(tmp_path / "many.parquet", users=20_000)
    options = [data, "--threshold", 20, "--rounds", 200, "--budget", 2000, "--out", "o"]
    with subprocess.Popen(  # noqa: S603  # ours
        command_line(*options), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert any(line.startswith("round 3/") for line in process.stderr)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "run the same command again" in rest
    assert "Traceback" not in rest
    assert not Path("o/result.json").exists()
    assert said(run(*options, "--json"))["rounds"][-1]["round"] == 200


@pytest.mark.parametrize("protocol", ["masked", "helper"])
def test_secure_runs_end_like_clear_ones(tmp_path: Path, protocol: str) -> None:
    """Through the real protocol, every round's sum is the clear one, byte for byte."""
    data = write_rows(tmp_path / "d.parquet", users=60)
    options = [data, "--threshold", 9, "--rounds", 3, "--budget", 500, "--json"]
    clear = said(run(*options, "--out", "clear"))
    shown = run(*options, "--out", "secure", "--secure", protocol)
    secure = said(shown)
    assert f"{protocol}: 60 users, one by one; about" in shown.stderr
    sums = [
        sqlite3.connect(f"{out}/transcript.sqlite").execute("SELECT * FROM rounds").fetchall()
        for out in ("clear", "secure")
    ]
    assert sums[0] == sums[1]
    assert secure["heavy_hitters"] == clear["heavy_hitters"]
    assert secure["secure_sum"]["protocol"] == protocol
    assert secure["secure_sum"]["up_bytes"] > secure["bytes_per_user_round"]
    assert said(RUN.invoke(app, ["inspect", "secure", "--json"])) == secure
    assert "secure sum" in Path("secure/report.html").read_text()
    refused_in_place = run(*options, "--out", "secure")
    assert refused_in_place.exit_code == 2
    assert "another secure sum" in refused_in_place.stderr


def test_dropouts(tmp_path: Path) -> None:
    """Users who drop out are not counted, and the outcome says so."""
    data = write_rows(tmp_path / "d.parquet", users=120)
    options = [data, "--threshold", 9, "--rounds", 2, "--budget", 500, "--json"]
    result = said(run(*options, "--secure", "helper", "--dropout", 0.2))
    assert sum(line["users"] for line in result["rounds"]) < 120
    assert any("dropped out" in warning for warning in result["warnings"])
    for bad in (["--dropout", 0.2], ["--dropout", 1.5, "--secure", "helper"]):
        assert run(*options, "--out", "x", *bad).exit_code == 2


def test_rounds_without_a_sum(tmp_path: Path) -> None:
    """Where too many drop out, rounds are aborted and named; the campaign goes on, and resumes."""
    data = write_rows(tmp_path / "d.parquet", users=60)
    options = [data, "--threshold", 9, "--rounds", 3, "--secure", "masked", "--dropout", 0.6]
    shown = run(*options, "--out", "o", "--json")
    result = said(shown)
    aborted = [line["round"] for line in result["rounds"] if line["status"] == "aborted"]
    assert aborted
    assert result["failed_rounds"]["rounds"] == aborted
    assert "aborted: " in shown.stderr
    assert said(RUN.invoke(app, ["inspect", "o", "--json"])) == result
    assert said(run(*options, "--out", "o", "--json")) == result
