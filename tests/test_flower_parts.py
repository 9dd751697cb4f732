"""The parts of the Flower app that need no processes."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity
from typer.testing import CliRunner

from linsketch.cli import app as cli
from linsketch.errors import DataError, FederationError, ProtocolError, RefusalError
from linsketch.federation.flower import client_app
from linsketch.federation.flower.records import memory_of, pack, remember, unpack
from linsketch.federation.flower.server import GridTransport, _number
from linsketch.federation.letters import Answer, Opening, Request
from linsketch.federation.node import Device, HelperNode, configured
from linsketch.federation.terms import Terms
from linsketch.records.ledger import FileLedger
from linsketch.results.conduct import _alone
from linsketch.securesum import MemoryLedger
from linsketch.server import Server


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give this process what Flower gives its own, so that it can write messages."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """Write an app; return its terms."""
    made = CliRunner().invoke(cli, ["new-app", str(tmp_path / "app")])
    assert made.exit_code == 0, made.output
    return tmp_path / "app" / "survey" / "terms.json"


class OneByOne:
    """A grid whose replies may be anything."""

    def __init__(self, replies: list[Any]) -> None:
        self.replies = replies

    def push_messages(self, messages: Iterable[Message]) -> list[str | None]:
        """Take messages; the last node is not there."""
        names: list[str | None] = [str(place) for place, _ in enumerate(messages)]
        return [*names[:-1], None]

    def pull_messages(self, names: list[str]) -> list[Any]:
        """Return one reply, or fail."""
        (name,) = names
        reply = self.replies[int(name)]
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, list) else [reply]


def reply_of(content: RecordDict | None = None, reason: str = "") -> Any:
    """Return what a grid gives as a reply."""
    error = SimpleNamespace(reason=reason)
    return SimpleNamespace(content=content, has_error=lambda: bool(reason), error=error)


def test_one_reply_costs_no_other() -> None:
    """What cannot be read is that node's refusal; silence lasts until the deadline."""
    good = Answer(b"good").to_bytes()
    replies = [
        reply_of(pack(good)),
        KeyError("not a message"),
        reply_of(reason="crashed"),
        reply_of(RecordDict({"other": ConfigRecord({"x": 1})})),
        [],
        None,
    ]
    letters = [(node, Request("role").to_bytes()) for node in range(6)]
    transport = GridTransport(cast(Grid, OneByOne(replies)))
    answers = dict(transport.exchange(letters, 0.1))
    assert answers.pop(0) == good
    with pytest.raises(ProtocolError, match=r"^The message holds no answer\.$"):
        Answer.from_bytes(answers.pop(3))  # which the federation takes for a refusal
    assert {place: Answer.from_bytes(answer).refusal for place, answer in answers.items()} == {
        1: "its reply cannot be read (KeyError)",
        2: "it failed (crashed)",
    }


def test_a_superlink_that_is_gone_is_no_refusal() -> None:
    """Errors of the connection end the run: nobody is blamed."""
    transport = GridTransport(cast(Grid, OneByOne([httpx.ConnectError("gone"), []])))
    with pytest.raises(httpx.ConnectError):
        list(transport.exchange([(1, b"letter"), (2, b"letter")], 1))


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"letter": 5},
        {"letter": "text"},
        {"letter": b""},
        {"letter": b"", "more": 1},
        {"letter": [b""]},
        {"frame": b"", "refusal": ""},  # as version 1 wrote it
    ],
)
def test_records_that_are_no_letters(record: dict[str, Any]) -> None:
    """Missing and mistyped fields are an empty letter, which is neither request nor answer."""
    letter = unpack(RecordDict({"linsketch": ConfigRecord(record)}))
    assert letter == b""
    with pytest.raises(ProtocolError, match="no answer"):
        Answer.from_bytes(letter)
    with pytest.raises(ProtocolError, match="no request"):
        Request.from_bytes(letter)


def test_letters_come_back() -> None:
    """Requests, answers and memories travel as they are."""
    request, answer = Request("open", "{}", b"\0\xff"), Answer(b"x" * 1000, "")
    assert Request.from_bytes(unpack(pack(request.to_bytes()))) == request
    assert Answer.from_bytes(unpack(pack(answer.to_bytes()))) == answer
    context = Context(1, 2, {}, RecordDict(), {})
    assert memory_of(context) == b""
    remember(context, b"secret")
    assert memory_of(context) == b"secret"


def test_what_an_operator_must_say(app: Path, tmp_path: Path) -> None:
    """Without accepted terms, a ledger or a helper's key there is no node."""
    terms = Terms.read(app)
    accept, ledger = {"accept": f"other {terms.terms_id}"}, {"ledger": str(tmp_path / "ledger")}
    wrong: list[tuple[dict[str, str], str]] = [
        ({}, "has not accepted the terms"),
        ({"accept": "other", **ledger}, "has not accepted the terms"),
        (accept, "needs a ledger"),
        ({**accept, "ledger": "relative"}, "needs a ledger"),
        ({**accept, **ledger, "role": "helper"}, "key cannot be read"),
    ]
    for config, reason in wrong:
        with pytest.raises(RefusalError, match=reason):
            configured(terms, lambda _: ["tea"], config)
    node = configured(terms, lambda _: ["tea"], {**accept, **ledger})
    assert isinstance(node, Device)
    assert isinstance(node._ledger, FileLedger)
    key = CliRunner().invoke(cli, ["helper-key", str(tmp_path / "key")]).stdout.strip()
    helped = Terms.helper(terms.plan, bytes.fromhex(key))
    config = {"accept": helped.terms_id, **ledger, "role": "helper", "key": str(tmp_path / "key")}
    assert isinstance(configured(helped, lambda _: [], config), HelperNode)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_simulations_have_no_operator(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An actor of Ray takes part without a word, unless an operator has said one."""
    terms = Terms.read(app)
    part = {"partition-id": 3, "num-partitions": 5, "data": "tea"}
    node = configured(terms, lambda _: ["tea"], part, virtual=True)
    assert isinstance(node, Device)
    assert isinstance(node._ledger, MemoryLedger)
    said = {"accept": "other", "ledger": "/tmp/x"}  # noqa: S108  # a name
    with pytest.raises(RefusalError, match="has not accepted"):
        configured(terms, lambda _: ["tea"], said, virtual=True)
    request = opening_of(terms)
    assert "has not accepted" in ask(app, part, request).refusal
    for there in (False, True):
        ray = SimpleNamespace(is_initialized=lambda there=there: there)
        monkeypatch.setitem(sys.modules, "ray", cast(Any, ray))
        assert bool(ask(app, part, request).frame) == there
    assert "has not accepted" in ask(app, {**part, **said}, request).refusal


def ask(app: Path, config: dict[str, Any], request: RecordDict) -> Answer:
    """Ask a client app as Flower does."""
    made = client_app(app, lambda node: [node["data"]])
    message = Message(request, dst_node_id=2, message_type="query")
    context = Context(1, 2, config, RecordDict(), {})
    return Answer.from_bytes(unpack(made(message, context).content))


def opening_of(terms: Terms) -> RecordDict:
    """Return what the first client of a campaign is asked."""
    opening = Opening(Server(terms.plan).open_round(), bytes(16), 0).to_text(terms)
    return pack(Request("open", opening).to_bytes())


def test_set_up_that_fails_tells_the_server_nothing(
    app: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A ledger that cannot be used is the operator's business, its path too."""
    terms = Terms.read(app)
    config = {"accept": terms.terms_id, "ledger": str(tmp_path / "diagnoses" / "ledger")}
    request = opening_of(terms)
    answer = ask(app, config, request)
    assert "its own log says why" in answer.refusal
    assert "diagnoses" not in answer.refusal
    assert "diagnoses" in caplog.text
    config["ledger"] = str(tmp_path / "led\0ger")
    assert "its own log says why" in ask(app, config, request).refusal
    config["ledger"], config["data"] = str(tmp_path / "ledger"), "tea"
    assert ask(app, config, request).frame
    assert "no request" in ask(app, config, RecordDict()).refusal
    app.write_text("{")
    assert "its own log says why" in ask(app, config, request).refusal


def test_run_configs(tmp_path: Path) -> None:
    """Numbers are numbers; one run at a time works in a folder."""
    assert _number({}, "wait-seconds", 60) == 60
    assert _number({"helper-node": ""}, "helper-node", 0) == 0
    assert _number({"helper-node": str(2**63 + 1)}, "helper-node", 0) == 2**63 + 1
    with pytest.raises(FederationError, match="is a number, not 'x'"):
        _number({"helper-node": "x"}, "helper-node", 0)
    with _alone(tmp_path), pytest.raises(DataError, match="Another run"), _alone(tmp_path):
        pass


def test_the_commands_of_a_federation(app: Path, tmp_path: Path) -> None:
    """Apps and keys are never written over; terms are said in words and in JSON."""
    run = CliRunner()
    said = run.invoke(cli, ["terms", str(app)])
    assert "18 to 20" in said.output
    assert Terms.read(app).terms_id[:40] in said.output.replace("\n", "")
    for command in (
        ["new-app", str(tmp_path / "app")],
        ["new-app", str(tmp_path / "b"), "--secure", "helper"],
        ["new-app", str(tmp_path / "b"), "--largest-t-change", "8"],
        ["new-app", str(tmp_path / "b"), "--plan", str(tmp_path / "none")],
        ["new-app", str(tmp_path / "b"), "--plan", str(app.with_name("client.py"))],
        ["new-app", str(tmp_path / "b"), "--dropout", "0.9"],
        ["helper-key", str(app)],
        ["terms", str(tmp_path / "none")],
    ):
        done = run.invoke(cli, command)
        assert done.exit_code == 2, (command, done.output)
        assert done.stderr.startswith("Error: ")
        assert done.stderr.count("\n") == 1
    assert not (tmp_path / "b").exists()


def test_how_far_t_may_go_is_kept(tmp_path: Path) -> None:
    """An app takes the plan's bound on t, or 4; what is asked for must be possible."""
    numbers = ["--rounds", "3", "--users-per-round", "20", "--threshold", "10", "--json"]
    file = tmp_path / "plan.json"

    def bound(name: str, change: float | None, *options: str) -> float:
        plan = json.loads(
            CliRunner().invoke(cli, ["plan", *numbers, "--method", "adaptive"]).stdout
        )
        plan["plan"]["method"]["adaptive"]["largest_t_change"] = change
        file.write_text(json.dumps(plan))
        made = CliRunner().invoke(
            cli, ["new-app", str(tmp_path / name), "--plan", str(file), *options]
        )
        if made.exit_code:
            raise ValueError(made.stderr)
        method = Terms.read(tmp_path / name / "survey" / "terms.json").plan.method
        return float(method.to_json()["largest_t_change"])

    assert bound("a", None) == 4.0
    assert bound("b", 1.5) == 1.5
    assert bound("c", 1.5, "--largest-t-change", "8") == 8.0
    with pytest.raises(ValueError, match="a factor from 1"):
        bound("d", None, "--largest-t-change", "0")
