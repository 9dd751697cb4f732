"""Campaigns through Flower's real runtimes: processes, TLS, node keys, a killed node."""

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from linsketch import Clients, Transcript
from linsketch.cli import app as cli
from linsketch.federation.terms import Terms
from linsketch.round import RoundSketch
from linsketch.securesum import ClearSum
from tests.flower import Deployment, certificate, free_port

NAMES = [f"client{client}" for client in range(12)]
ITEMS = ("tea", "milk", "coffee", "maté", "juice")


def items_of(client: int) -> list[str]:
    """Return the items of a client: the lines of its file."""
    return ["tea", ITEMS[1 + client % 2], f"only {client}"]


def new_app(folder: Path, name: str, *options: str) -> tuple[Path, Terms]:
    """Plan a campaign and write its app through the command line.

    Its tables hold everything, so that t stays 1 and the sums can be computed again.
    """
    sizes = ["--rounds", "3", "--users-per-round", "4", "--items-per-user", "3"]
    told = CliRunner().invoke(
        cli, ["plan", *sizes, "--threshold", "3", "--budget", "4000", "--seed", name, "--json"]
    )
    (folder / f"{name}.json").write_text(told.stdout)
    app = folder / name
    plan = ["--plan", str(folder / f"{name}.json"), "--stage-seconds", "40"]
    made = CliRunner().invoke(cli, ["new-app", str(app), *plan, *options])
    assert made.exit_code == 0, made.output
    return app, Terms.read(app / "survey" / "terms.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for this module."""
    return tmp_path_factory.mktemp("flower")


@pytest.fixture(scope="module")
def apps(folder: Path) -> dict[str, tuple[Path, Terms]]:
    """Return an app for each protocol."""
    key = CliRunner().invoke(cli, ["helper-key", str(folder / "helper.private")]).stdout.strip()
    helper = ("--secure", "helper", "--helper-key", key)
    return {
        "masked": new_app(folder, "masked"),
        "helper": new_app(folder, "helped", *helper),
    }


class Fleet(Deployment):
    """Twelve clients and a helper, each with its files."""

    dead: str = ""

    def staff(self, apps: dict[str, tuple[Path, Terms]], names: list[str]) -> None:
        """Start those nodes that are not there and were not killed."""
        accept = f'accept="{" ".join(terms.terms_id for _, terms in apps.values())}"'
        for name in names:
            if name in (self.dead, *self.processes):
                continue
            config = [accept, f'ledger="{self.folder}/{name}.ledger"']
            if name == "helper":
                config += ['role="helper"', f'key="{self.folder}/helper.private"']
            else:
                data = self.folder / f"{name}.txt"
                data.write_text("\n".join(items_of(int(name[6:]))), encoding="utf-8")
                config += [f'data="{data}"']
            self.supernode(name, *config)
        self.online(len(self.processes) - 1)


@pytest.fixture(scope="module")
def fleet(folder: Path) -> Iterator[Fleet]:
    """Start a SuperLink, and register the nodes."""
    with Fleet(folder) as deployed:
        deployed.register([*NAMES, "helper", "stranger"])
        yield deployed


@pytest.mark.parametrize("protocol", ["masked", "helper"])
def test_a_campaign_in_the_deployment_runtime(
    protocol: str, fleet: Fleet, apps: dict[str, tuple[Path, Terms]]
) -> None:
    """Three rounds, a node killed when it is asked for its vector: the sums are the clear ones."""
    app, terms = apps[protocol]
    fleet.staff(apps, [*NAMES, *(["helper"] if protocol == "helper" else [])])
    out = fleet.folder / f"{protocol} results"
    client_of = {node: name for name, node in fleet.node_ids.items()}
    victims: list[int] = []

    def kill_one() -> None:
        """Kill a client of the first round as soon as its vector has been asked for."""
        file = out / "transcript.sqlite"

        def asked() -> list[int]:
            with Transcript(file) as transcript:
                nodes: list[int] = transcript.fact("asked") or []
                return [node for node in nodes if client_of[node] in fleet.processes]

        victims.append(fleet.wait(lambda: file.exists() and asked())[0])
        fleet.dead = client_of[victims[0]]
        fleet.kill(fleet.dead)

    killer = threading.Thread(target=kill_one)
    killer.start()
    said = fleet.run(app, f'out="{out}" log-json="{out}.jsonl" wait-seconds=30')
    killer.join()
    assert "round 3/3" in said, said + fleet.logs()
    with Transcript(out / "transcript.sqlite") as transcript:
        asked, dead = transcript.fact("asked"), 0
        log = [json.loads(line) for line in Path(f"{out}.jsonl").read_text().splitlines()]
        for (task, sums, failure), line in zip(transcript.rounds(), log, strict=True):
            nodes, asked = asked[: line["asked"]], asked[line["asked"] :]
            alive = [node for node in nodes if client_of[node] in fleet.processes]
            crowd = Clients(
                [dict.fromkeys(items_of(int(client_of[node][6:])), 1) for node in alive]
            )
            ring = RoundSketch.of(terms.plan, task).ring
            assert not failure, said
            assert sums == [ClearSum()(ring, crowd.contributions(terms.plan, task), b"")]
            assert line["users"] == len(alive)
            dead += len(nodes) - len(alive)
        assert dead >= 1
    result = json.loads((out / "result.json").read_text())
    assert {line["item"] for line in result["heavy_hitters"]} == {"tea", "milk", "coffee"}
    assert (out / "report.html").read_text().startswith("<!doctype html>")


def test_connections_that_fail(fleet: Fleet, apps: dict[str, tuple[Path, Terms]]) -> None:
    """No SuperLink, another certificate, a key that is online: whoever can act is told."""
    app, _ = apps["masked"]
    fleet.staff(apps, NAMES[:1])
    file = fleet.folder / "flwr" / "config.toml"
    good = file.read_text()
    other = certificate(fleet.folder, "other")
    for bad in (
        good.replace(str(fleet.port), str(free_port())),
        good.replace(str(fleet.authority), str(other)),
    ):
        file.write_text(bad)
        done = fleet.call("flwr", "run", app, "here")
        assert done.returncode
        assert "Connection to the SuperLink is unavailable" in " ".join(done.stderr.split())
    file.write_text(good)
    own, fleet.authority = fleet.authority, other
    fleet.supernode("stranger")
    fleet.authority = own
    twin = next(name for name in NAMES if name in fleet.processes)
    shutil.copy(fleet.folder / f"{twin}.key", fleet.folder / "twin.key")
    fleet.supernode("twin")
    for name, reason in (("stranger", "CERTIFICATE_VERIFY_FAILED"), ("twin", "Failed to activate")):
        fleet.processes[name].wait(60)
        assert reason in (fleet.folder / f"{name}.log").read_text()
        fleet.kill(name)


def test_a_hundred_virtual_clients(tmp_path: Path) -> None:
    """The app as `linsketch new-app` writes it runs in the simulation runtime."""
    app, out = tmp_path / "app", tmp_path / "out"
    made = CliRunner().invoke(cli, ["new-app", str(app)])
    assert made.exit_code == 0, made.output
    with Deployment(tmp_path, secure=False, simulation=True) as deployed:
        hundred = ("--federation-config", "num-supernodes=100")
        said = deployed.run(app, f'out="{out}"', *hundred)
    assert "round 5/5: 20 asked, 20 answered" in said, said
    result = json.loads((out / "result.json").read_text())
    assert sum(line["users"] for line in result["rounds"]) == 100
    assert result["heavy_hitters"][0]["item"] == "tea"
    few = CliRunner().invoke(cli, ["new-app", str(app)])
    assert few.exit_code == 2
    assert "exists already" in few.stderr
