"""The ServerApp: it runs what is left of the campaign, and writes what came out."""

import fcntl
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from flwr.app import Context, Message
from flwr.serverapp import Grid, ServerApp

from linsketch.deploy.federation import Federation
from linsketch.deploy.flower.records import pack, unpack
from linsketch.deploy.letters import Answer, Request
from linsketch.deploy.terms import Terms
from linsketch.errors import FederationError, LinsketchError, ProtocolError
from linsketch.report.folder import TRANSCRIPT, write_outcome
from linsketch.report.journal import Journal
from linsketch.report.outcome import outcome, printable
from linsketch.transcript import Transcript

_LINES = 20  # items in the log
_PULL = 0.5  # seconds between looks at the SuperLink
_log = logging.getLogger("flwr")


class GridTransport:
    """Carries letters over a Flower grid."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def nodes(self) -> set[int]:
        """Return the SuperNodes that are connected."""
        return set(self._grid.get_node_ids())

    def exchange(
        self, requests: Sequence[tuple[int, Request]], seconds: float
    ) -> Iterator[tuple[int, Answer]]:
        """Push all requests, and pull until all answers are in or the deadline is over."""
        until = time.monotonic() + seconds
        messages = [
            Message(pack(request), dst_node_id=node, message_type="query", ttl=seconds)
            for node, request in requests
        ]
        pushed = self._grid.push_messages(messages)
        places = {name: place for place, name in enumerate(pushed) if name}
        while places and time.monotonic() < until:
            for name in list(places):
                for answer in self._pull(name):
                    yield places.pop(name), answer
            if places:
                time.sleep(_PULL)

    def _pull(self, name: str) -> list[Answer]:
        """Look for the answer to one message: what one node sends must not cost another's."""
        try:
            return [_answer(message) for message in self._grid.pull_messages([name])][:1]
        except httpx.HTTPError:
            raise  # the SuperLink, not the node
        except Exception as error:
            return [Answer(refusal=f"its reply cannot be read ({type(error).__name__})")]


def _answer(message: Message) -> Answer:
    """Read a reply; whatever a node sends that is no answer is a refusal."""
    if message.has_error():
        return Answer(refusal=f"it failed ({message.error.reason})")
    try:
        answer: Answer = unpack(Answer, message.content)
    except ProtocolError as error:
        return Answer(refusal=str(error))
    return answer


def server_app(terms: Path) -> ServerApp:
    """Return the ServerApp of a campaign; its run-config names the folder for what comes out."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        try:
            _conduct(Terms.read(terms), grid, context)
        except (LinsketchError, OSError) as error:  # for people: Flower adds a traceback
            _log.error("%s", error)
            raise error.with_traceback(None) from None

    return app


def _conduct(terms: Terms, grid: Grid, context: Context) -> None:
    config = context.run_config
    folder = Path(str(config["out"])).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder), _transcript(folder / TRANSCRIPT, terms) as transcript:
        _log.info("linsketch: plan %s, terms %s", terms.plan.plan_id[:12], terms.terms_id)
        if transcript.closed:
            _log.info("Going on after round %d of %d.", transcript.closed, terms.plan.rounds)
        log = str(config.get("log-json", ""))
        journal = Journal(Path(log) if log else None)
        campaign = Federation(
            terms,
            GridTransport(grid),
            transcript,
            watch=lambda progress: _log.info("%s", journal.line(progress)),
            say=lambda text: _log.warning("%s", text),
            wait=float(_number(config, "wait-seconds", 60)),
            helper_node=_number(config, "helper-node", 0) or None,
        )
        try:
            campaign.run()
        finally:
            if transcript.closed:
                _show(folder, outcome(transcript, "scale"))


def _show(folder: Path, result: dict[str, Any]) -> None:
    write_outcome(folder, result)
    for warning in result["warnings"]:
        _log.warning("%s", warning)
    for line in result["heavy_hitters" if "heavy_hitters" in result else "histogram"][:_LINES]:
        item = printable(line["item"])
        _log.info("%s: %.0f ± %.0f", item, line["estimate"], line["stderr"])
    _log.info("Page, result and transcript (sensitive) are in %s.", folder)


def _number(config: Mapping[str, Any], name: str, default: int) -> int:
    """Read a whole number of the run-config; text too, for node ids of 64 bits."""
    value = config.get(name, default)
    try:
        return int(value or default)
    except (TypeError, ValueError):
        raise FederationError(f"{name} in the run-config is a number, not {value!r}.") from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep a second run of the campaign out while this one goes on."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FederationError(f"Another run is at work in {folder}.") from None
        yield


def _transcript(path: Path, terms: Terms) -> Transcript:
    if path.exists():
        return Transcript(path)
    facts = {"secure_sum": {"protocol": terms.protocol, "dropout": 0.0}}
    return Transcript.create(path, terms.plan, facts)
