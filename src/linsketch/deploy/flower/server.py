"""The ServerApp: it runs what is left of the campaign, and writes what came out."""

import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from flwr.app import Context, Message
from flwr.serverapp import Grid, ServerApp

from linsketch.deploy.federation import Federation
from linsketch.deploy.flower.records import pack, unpack
from linsketch.deploy.letters import Answer, Request
from linsketch.deploy.terms import Terms
from linsketch.errors import LinsketchError, ProtocolError
from linsketch.report.folder import TRANSCRIPT, write_outcome
from linsketch.report.journal import Journal
from linsketch.report.outcome import outcome
from linsketch.transcript import Transcript

_PULL = 0.2  # seconds between looks at the SuperLink
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
            for message in self._grid.pull_messages(list(places)):
                place = places.pop(message.metadata.reply_to_message_id, None)
                if place is not None:
                    yield place, _answer(message)
            if places:
                time.sleep(_PULL)


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
        except LinsketchError as error:  # for people: Flower shows it with a traceback
            raise error.with_traceback(None) from None

    return app


def _conduct(terms: Terms, grid: Grid, context: Context) -> None:
    config = context.run_config
    folder = Path(str(config["out"])).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / TRANSCRIPT
    with _transcript(path, terms) as transcript:
        closed = transcript.closed
        _log.info("linsketch: plan %s, terms %s, %s", terms.plan.plan_id[:12], terms.terms_id, path)
        if closed:
            _log.info("Going on after round %d of %d.", closed, terms.plan.rounds)
        log = str(config.get("log-json", ""))
        journal = Journal(Path(log) if log else None)
        named = int(str(config.get("helper-node", "")) or 0)
        server = Federation(
            terms,
            GridTransport(grid),
            transcript,
            watch=lambda progress: _log.info("%s", journal.line(progress)),
            say=lambda text: _log.warning("%s", text),
            wait=float(str(config.get("wait-seconds", 60))),
            helper_node=named or None,
        ).run()
        result = outcome(transcript, "scale", server)
    write_outcome(folder, result)
    for line in result["heavy_hitters" if terms.plan.error is None else "histogram"][:20]:
        _log.info("%s: %.0f ± %.0f", line["item"], line["estimate"], line["stderr"])
    _log.info("Page, result and transcript (sensitive) are in %s.", folder)


def _transcript(path: Path, terms: Terms) -> Transcript:
    if path.exists():
        return Transcript(path)
    facts = {"source": "Flower", "secure_sum": {"protocol": terms.protocol, "dropout": 0.0}}
    return Transcript.create(path, terms.plan, facts)
