"""Campaigns on a real cluster of two worker processes: the same bytes as on one machine."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster
from typer.testing import CliRunner

import linsketch
from linsketch import Plan, Population, Rehearsal, Transcript, Utf8Keys, campaign
from linsketch.campaign import Progress
from linsketch.cli import app
from linsketch.errors import ClusterError, DataError, LinsketchError, PlanningError
from linsketch.methods import Proven
from linsketch.population import dask
from linsketch.population.dask import partitions
from linsketch.population.files import read_data
from tests.campaigns import plan_for, sampled_plan
from tests.golden import cases as golden
from tests.test_golden import GOLDEN, same

# dask's own calls of pandas
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")
RUN = CliRunner()
COLUMNS: Any = {"user": "who", "item": "what", "count": "times"}
ROUNDS = 3
SEED = b"plan"  # a plan's, from which all users follow


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Start two workers, each a process of its own."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    """Connect to the two workers."""
    with Client(cluster) as client:
        yield client


def rows() -> pl.DataFrame:
    """Return rows in no order; users have up to 20 items, equal rows occur."""
    rng = np.random.default_rng(5)
    users = rng.integers(0, 150, 1500)
    items = np.minimum(rng.zipf(1.3, 1500), 60)
    return pl.DataFrame(
        {
            "who": [f"ü{user}" for user in users],
            "what": [f"item {item}" for item in items],
            "times": rng.integers(1, 3, 1500),
        }
    )


def write(folder: Path, parts: list[pl.DataFrame]) -> Path:
    """Write each table as a Parquet file of a folder."""
    folder.mkdir()
    for number, part in enumerate(parts):
        part.write_parquet(folder / f"{number}.parquet")
    return folder


def by_user(table: pl.DataFrame) -> list[pl.DataFrame]:
    """Return five parts, each user in one of them, and an empty one."""
    whose = table["who"].str.slice(1).cast(pl.Int64) % 5
    return [*(table.filter(whose == part) for part in range(5)), table[:0]]


def in_no_order(table: pl.DataFrame) -> list[pl.DataFrame]:
    """Return seven parts; most users have rows in several of them."""
    return [table[part::7] for part in range(7)]


PARTS: dict[str, Callable[[pl.DataFrame], list[pl.DataFrame]]] = {
    "grouped": by_user,
    "split": in_no_order,
}


@pytest.fixture(scope="module", params=PARTS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the rows in partitions."""
    return write(tmp_path_factory.mktemp("data") / "rows", PARTS[request.param](rows()))


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Population:
    """Return the same rows on one machine."""
    path = tmp_path_factory.mktemp("one") / "rows.parquet"
    rows().write_parquet(path)
    return read_data(path, **COLUMNS).population(ROUNDS, SEED)


def sums(path: Path) -> list[Any]:
    """Return the tasks and sums that a transcript holds."""
    with sqlite3.connect(path) as database:
        return database.execute("SELECT * FROM rounds ORDER BY round").fetchall()


def expected(path: Path, people: Population, plan: Plan) -> list[Any]:
    """Return the rounds of a campaign on one machine."""
    with Transcript.create(path, plan) as transcript:
        cohorts = people.bounded(plan.items_per_user).cohorts()
        campaign.run(plan, Rehearsal(cohorts), transcript=transcript)
    return sums(path)


PLANS: dict[str, Callable[[Population], Plan]] = {
    "adaptive": lambda p: plan_for(p, budget=400),
    "adaptive, bounded": lambda p: plan_for(p, most=4, budget=400),
    "binomial, bounded": lambda p: sampled_plan(p, 2.5, most=5, sampling="binomial"),
    "paper layout": lambda p: sampled_plan(p, 3.0, layout="paper"),
    "unsampled": lambda p: plan_for(p, most=6, method="unsampled"),
    "proven": lambda p: plan_for(p, most=4, method="proven", failure_probability=0.4),
    "histogram with a sketch": lambda p: replace(
        plan_for(p, most=4, method="fixed", budget=100_000),
        method=Proven(sampling_threshold=2.5, sketch_rows=3, sketch_width=11),
        error=20,
        threshold=None,
    ),
}


def test_without_a_cluster() -> None:
    """Without a client (this test comes first) the error says to make one."""
    frame = dd.from_pandas(rows().to_pandas(), npartitions=1)
    plan = linsketch.plan_campaign(
        rounds=1, users_per_round=2, items_per_user=2, keys=Utf8Keys(1), seed=b"s", threshold=2
    ).plan
    with pytest.raises(ClusterError, match="make a client first"):
        dask.campaign(frame, plan, user="who", item="what")


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.usefixtures("client")
def test_same_bytes(name: str, folder: Path, people: Population, tmp_path: Path) -> None:
    """Every sum is that of one machine, byte for byte, however the rows are partitioned."""
    plan = PLANS[name](people)
    frame = dd.read_parquet(folder)
    with Transcript.create(tmp_path / "cluster", plan) as transcript:
        server = dask.campaign(frame, plan, **COLUMNS, transcript=transcript)
    assert server.done
    assert sums(tmp_path / "cluster") == expected(tmp_path / "one", people, plan)


@pytest.mark.usefixtures("client")
def test_same_as_ever(tmp_path: Path) -> None:
    """The cluster's sums, tasks and lists are those of the golden file."""
    golden.visits(tmp_path / "visits.parquet")
    frame = dd.read_parquet(tmp_path / "visits.parquet").repartition(npartitions=3)
    people = dask.Partitions(frame, "user", "item").population(4, b"golden")
    plan = golden.heavy_plan(people, golden.VISITS)  # type: ignore[arg-type]  # alike
    found = json.loads(json.dumps(golden.conducted(plan, people)))
    same(found, GOLDEN["file: visits"], "on a cluster")


@pytest.mark.usefixtures("client")
def test_same_numbers(folder: Path, people: Population) -> None:
    """Pieces know of their users what a population knows, before and after the bound."""
    pieces = dask.read_parquet(folder, **COLUMNS).population(ROUNDS, SEED)
    for many, one in ((pieces, people), (pieces.bounded(5), people.bounded(5))):
        assert many.fingerprint == one.fingerprint
        assert many.users_in_round.tolist() == one.users_in_round.tolist()
        assert (many.busiest, many.occurrences) == (one.busiest, one.occurrences)
        assert list(many.item_totals().items()) == list(one.item_totals().items())
        assert many.keys == one.keys


def test_rows_move_only_where_users_are_split(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users are compared in shares, exactly: one user with two partitions is found."""
    monkeypatch.setattr(partitions, "_SHARE", 40)
    parts = by_user(rows())
    whole = dask.read_parquet(write(tmp_path / "whole", parts), **COLUMNS)
    split = [*parts[:4], pl.concat([parts[4], parts[0][-1:]]), parts[5]]
    one_split = dask.read_parquet(write(tmp_path / "split", split), **COLUMNS)
    for data, moves in ((whole, False), (one_split, True)):
        assert partitions._any_user_split(client, data._read(), 150, SEED) is moves


def test_a_worker_is_killed(
    client: Client, folder: Path, people: Population, tmp_path: Path
) -> None:
    """What a killed worker held is read again; the sums are the same."""
    plan = plan_for(people, most=4, budget=400)
    pids = client.run(os.getpid)

    def kill_one(progress: Progress) -> None:
        if progress.closed.task.round == 1:
            os.kill(min(pids.values()), signal.SIGKILL)

    with Transcript.create(tmp_path / "cluster", plan) as transcript:
        dask.campaign(
            dd.read_parquet(folder), plan, **COLUMNS, transcript=transcript, watch=kill_one
        )
    assert sums(tmp_path / "cluster") == expected(tmp_path / "one", people, plan)
    client.wait_for_workers(2)
    assert client.run(os.getpid) != pids


@pytest.mark.usefixtures("client")
def test_stopped_and_resumed(folder: Path, people: Population, tmp_path: Path) -> None:
    """A campaign goes on where it was stopped, one machine's on a cluster too."""
    plan = plan_for(people, most=4, budget=400)
    path, frame = tmp_path / "transcript", dd.read_parquet(folder)

    def stop(_: Any) -> None:
        raise KeyboardInterrupt

    with Transcript.create(path, plan) as transcript:
        source = Rehearsal(people.bounded(4).cohorts())
        with pytest.raises(KeyboardInterrupt):
            campaign.run(plan, source, transcript=transcript, watch=stop)
        with pytest.raises(KeyboardInterrupt):
            dask.campaign(frame, plan, **COLUMNS, transcript=transcript, watch=stop)
        assert transcript.closed == 2
        dask.campaign(frame, plan, **COLUMNS, transcript=transcript)
    assert sums(path) == expected(tmp_path / "one", people, plan)


KINDS: dict[str, Callable[[pd.Series], pd.Series]] = {
    "integers": lambda users: users.astype("int64"),
    "categories": lambda users: users.astype("category"),
    "texts": lambda users: users.astype("string"),
    "objects": lambda users: users.astype("object"),
    "floats": lambda users: users.astype("float64"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("client")
def test_users_of_any_kind(kind: str, tmp_path: Path) -> None:
    """Users are who they are on one machine, whatever the type of their column."""
    rng = np.random.default_rng(2)
    users = pd.Series([str(user) for user in rng.integers(0, 30, 200)])
    table = pd.DataFrame({"who": KINDS[kind](users), "what": rng.integers(0, 9, 200)})
    table.to_parquet(tmp_path / "one.parquet")
    one = read_data(tmp_path / "one.parquet", user="who", item="what", keys="int:9")
    frame = dd.from_pandas(table, npartitions=3)
    many = dask.Partitions(frame, "who", "what", keys="int:9")
    assert many.population(2, SEED).fingerprint == one.population(2, SEED).fingerprint
    many = dask.read_parquet(tmp_path / "one.parquet", user="who", item="what", keys="int:9")
    assert many.population(2, SEED).fingerprint == one.population(2, SEED).fingerprint


@pytest.mark.usefixtures("client")
def test_other_items(tmp_path: Path) -> None:
    """Bytes, an index that pandas wrote, and folders named by a column are read as they are."""
    users, items = ["a", "b", "a", "c"], [b"\xff", b"", b"\xff", b"\x00\xff"]
    pl.DataFrame({"who": users, "what": items}).write_parquet(tmp_path / "one.parquet")
    one = read_data(tmp_path / "one.parquet", user="who", item="what", keys="bytes:2")
    table = pd.DataFrame({"what": items, "day": [1, 2, 2, 1]}, index=pd.Index(users, name="who"))
    pq.write_to_dataset(pa.Table.from_pandas(table), tmp_path / "days", partition_cols=["day"])
    many = dask.read_parquet(tmp_path / "days", user="who", item="what", keys="bytes:2")
    assert many.population(1, SEED).fingerprint == one.population(1, SEED).fingerprint
    assert many.item_totals() == one.item_totals() == {b"\xff": 2, b"": 1, b"\x00\xff": 1}


GOOD = pl.DataFrame({"who": ["a", "b"], "what": ["x", "y"], "times": [1, 2]})
BROKEN = pa.StringArray.from_buffers(
    2, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xff\xfe")
)
BAD: dict[str, tuple[Any, str]] = {
    "null": (GOOD.with_columns(what=pl.Series(["x", None])), "2: column 'what' has 1"),
    "nobody": (GOOD.with_columns(who=pl.Series([None, "b"])), "2: column 'who' has 1"),
    "zero": (GOOD.with_columns(times=pl.Series([1, 0])), "2: column 'times' has 0"),
    "nothing": (GOOD.with_columns(times=pl.Series([1, None])), "2: column 'times' has 1"),
    "long": (
        GOOD.with_columns(what=pl.Series(["x", "y" * 1025])),
        "2: an item has 1,025",
    ),
    "broken": (GOOD.to_arrow().set_column(1, "what", BROKEN), "2: .*UTF8"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.usefixtures("client")
def test_bad_rows(name: str, tmp_path: Path) -> None:
    """What one machine refuses is refused in the same words, and the partition is named."""
    bad, says = BAD[name]
    (tmp_path / "rows").mkdir()
    GOOD.write_parquet(tmp_path / "rows/0.parquet")
    table = bad if isinstance(bad, pa.Table) else bad.to_arrow()
    pq.write_table(table, tmp_path / "rows/1.parquet")
    with pytest.raises(DataError, match=says) as refusal:
        dask.read_parquet(tmp_path / "rows", **COLUMNS).population(1, SEED)
    with pytest.raises(DataError) as reference:
        read_data(tmp_path / "rows/1.parquet", **COLUMNS)
    if name != "broken":  # which is Arrow to tell, or polars
        assert str(refusal.value) == str(reference.value).replace("/1.parquet", ", partition 2")


@pytest.mark.usefixtures("client")
def test_bad_data(tmp_path: Path) -> None:
    """Missing columns, items that keys cannot hold, no rows and no Parquet are refused."""
    path = write(tmp_path / "good", [GOOD, GOOD])
    for change, says in (
        ({"user": "whom"}, "no column 'whom'. It has: 'who', 'what', 'times'"),
        ({"keys": "utf8:0"}, "max_bytes"),
        ({"keys": "int:8"}, "partition .*no integer"),
    ):
        with pytest.raises(LinsketchError, match=says):
            dask.read_parquet(path, **{**COLUMNS, **change}).population(1, SEED)
    empty = write(tmp_path / "empty", [GOOD[:0]] * 2)
    with pytest.raises(DataError, match="has no rows"):
        dask.read_parquet(empty, **COLUMNS).population(1, SEED)
    mixed = write(tmp_path / "mixed", [GOOD, GOOD.rename({"what": "which"})])
    with pytest.raises(DataError, match=r"mixed.*\.parquet has no column 'what'"):
        dask.read_parquet(mixed, **COLUMNS)
    cut = write(tmp_path / "cut", [GOOD, GOOD])
    last = max(cut.iterdir())
    last.write_bytes(last.read_bytes()[:-20])
    with pytest.raises(DataError, match=f"Cannot read {last}"):
        dask.read_parquet(cut, **COLUMNS)
    (tmp_path / "none").mkdir()
    (tmp_path / "not.parquet").write_text("hello")
    for name, says in (("none", "Parquet"), ("gone", "no file or"), ("not.parquet", "Cannot")):
        with pytest.raises(DataError, match=says):
            dask.read_parquet(tmp_path / name, **COLUMNS)
    with pytest.raises(PlanningError, match="one machine"):
        dask.read_parquet(path, **COLUMNS).population(1, SEED).cohorts(one_by_one=True)


def command(*args: object) -> list[str]:
    """Return the arguments of a run."""
    columns = ["--user", "who", "--item", "what", "--count", "times"]
    options = ["--rounds", "3", "--threshold", "20", "--items-per-user", "6"]
    return ["run", *columns, *options, *map(str, args)]


@pytest.mark.parametrize("method", ["adaptive", "count-median"])
def test_front_door(cluster: LocalCluster, folder: Path, method: str, tmp_path: Path) -> None:
    """The command says on a cluster what it says on one machine, and either goes on with it."""
    rows().write_parquet(tmp_path / "rows")
    (tmp_path / "rows").rename(tmp_path / "rows.parquet")
    here, there = tmp_path / "here", tmp_path / "there"
    options = ["--method", method, "--check", "--json"]
    one = RUN.invoke(app, command(tmp_path / "rows.parquet", *options, "--out", here))
    on_cluster = [*options, "--cluster", cluster.scheduler_address]
    args = command(folder, *on_cluster, "--out", there)
    done = subprocess.run([sys.executable, "-m", "linsketch", *args], capture_output=True)  # noqa: S603  # ours
    assert done.returncode == 0, done.stderr
    result, reference = json.loads(done.stdout), json.loads(one.stdout)
    assert result.pop("source") == "rows, column what"
    assert reference.pop("source") == "rows.parquet, column what"
    assert result == reference
    assert sums(there / "transcript.sqlite") == sums(here / "transcript.sqlite")
    again = RUN.invoke(app, command(folder, *on_cluster, "--out", here))
    assert again.exit_code == 0, again.output
    assert "All rounds are closed already" in again.stderr


def test_histograms_on_a_cluster(cluster: LocalCluster, folder: Path, tmp_path: Path) -> None:
    """`linsketch histogram` says on a cluster what it says on one machine."""
    rows().write_parquet(tmp_path / "rows.parquet")
    columns = ["--user", "who", "--item", "what", "--count", "times"]
    options = ["--rounds", "3", "--error", "9", "--items-per-user", "6", "--check", "--json"]
    said: list[Any] = []
    for data, *where in (
        (tmp_path / "rows.parquet",),
        (folder, "--cluster", cluster.scheduler_address),
    ):
        out = ["--out", str(tmp_path / str(len(said)))]
        done = RUN.invoke(app, ["histogram", str(data), *columns, *options, *where, *out])
        assert done.exit_code == 0, done.output
        said.append(json.loads(done.stdout)["histogram"])
    assert said[0] == said[1]
    assert said[0]


def test_interrupt(cluster: LocalCluster, tmp_path: Path) -> None:
    """Ctrl-C leaves the closed rounds and says how to go on; one machine then does."""
    path = write(tmp_path / "rows", in_no_order(rows()))
    rows().write_parquet(tmp_path / "one.parquet")
    options = ["--rounds", 15, "--out", tmp_path / "o"]
    on_cluster = command(path, *options, "--cluster", cluster.scheduler_address)
    with subprocess.Popen(  # noqa: S603  # ours
        [sys.executable, "-m", "linsketch", *on_cluster],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert any(line.startswith("round 3/") for line in process.stderr)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "run the same command again" in rest
    assert "Traceback" not in rest
    again = RUN.invoke(app, command(tmp_path / "one.parquet", *options))
    assert again.exit_code == 0, again.output
    assert "Going on after round" in again.stderr


def refused(*args: object) -> str:
    """Return the one line that a command says when it refuses."""
    result = RUN.invoke(app, command(*args))
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_refusals(cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot work is said in one line, with exit code 2."""
    monkeypatch.setattr("linsketch.population.dask.connection._SECONDS", 1)
    path = write(tmp_path / "rows", by_user(rows()))
    here = ["--cluster", cluster.scheduler_address]
    assert "--cluster ADDRESS" in refused(path)
    assert "one by one" in refused(path, *here, "--secure", "masked")
    assert "no file or folder" in refused(tmp_path / "gone", *here)
    for address in ("tcp://127.0.0.1:1", "nonsense", "ftp://127.0.0.1:1", "tcp://127.0.0.1"):
        assert "No Dask scheduler answers" in refused(path, "--cluster", address)
    with LocalCluster(n_workers=0, dashboard_address=":0") as idle:
        assert "no workers" in refused(path, "--cluster", idle.scheduler_address)
    with monkeypatch.context() as other:
        other.setattr(linsketch, "__version__", "0.0.1")
        assert "this machine has 0.0.1" in refused(path, *here)
    monkeypatch.setitem(sys.modules, "linsketch.population.dask", None)
    monkeypatch.delattr("linsketch.population.dask")
    assert "pip install '.[dask]'" in refused(path, *here)


def close_while_waiting(cluster: LocalCluster) -> None:
    """Wait for what never comes, while the cluster goes away."""
    waits = dask.connection.current_client().submit(print, resources={"nobody has": 1})
    threading.Timer(0.2, cluster.close).start()
    waits.result()


def test_workers_that_die(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster whose workers die of the work, or that goes away, is told in one line."""
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with (
        pytest.raises(ClusterError, match="gave up"),
        dask.connected(cluster.scheduler_address),
    ):
        dask.connection.current_client().submit(os._exit, 1).result()
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as short,
        pytest.raises(ClusterError, match="went away"),
        dask.connected(short.scheduler_address),
    ):
        close_while_waiting(short)
