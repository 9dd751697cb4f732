"""The ServerApp: it runs what is left of the campaign, and writes what came out."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
from flwr.app import Context, Message
from flwr.serverapp import Grid, ServerApp

from linsketch.errors import FederationError, LinsketchError
from linsketch.federation.flower.records import pack, unpack
from linsketch.federation.host import Federation
from linsketch.federation.letters import Answer
from linsketch.federation.terms import Terms
from linsketch.results.conduct import conduct
from linsketch.results.lines import summary
from linsketch.results.outcome import Outcome

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
        self, letters: Sequence[tuple[int, bytes]], seconds: float
    ) -> Iterator[tuple[int, bytes]]:
        """Push all letters, and pull until all answers are in or the deadline is over."""
        until = time.monotonic() + seconds
        messages = [
            Message(pack(letter), dst_node_id=node, message_type="query", ttl=seconds)
            for node, letter in letters
        ]
        pushed = self._grid.push_messages(messages)
        places = {name: place for place, name in enumerate(pushed) if name}
        while places and time.monotonic() < until:
            for name in list(places):
                for answer in self._pull(name):
                    yield places.pop(name), answer
            if places:
                time.sleep(_PULL)

    def _pull(self, name: str) -> list[bytes]:
        """Look for the answer to one message: what one node sends must not cost another's."""
        try:
            return [_letter(message) for message in self._grid.pull_messages([name])][:1]
        except httpx.HTTPError:
            raise  # the SuperLink, not the node
        except Exception as error:
            said = f"its reply cannot be read ({type(error).__name__})"
            return [Answer(refusal=said).to_bytes()]


def _letter(message: Message) -> bytes:
    if message.has_error():
        return Answer(refusal=f"it failed ({message.error.reason})").to_bytes()
    return unpack(message.content)


def server_app(terms: Path) -> ServerApp:
    """Return the ServerApp of a campaign; its run-config names the folder for what comes out."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        try:
            _conduct(Terms.read(terms), grid, context.run_config)
        except (LinsketchError, OSError) as error:  # for people: Flower adds a traceback
            _log.error("%s", error)
            raise error.with_traceback(None) from None

    return app


def _conduct(terms: Terms, grid: Grid, config: Mapping[str, Any]) -> None:
    folder, log = Path(str(config["out"])).absolute(), str(config.get("log-json", ""))
    _log.info("linsketch: plan %s, terms %s", terms.plan.plan_id[:12], terms.terms_id)

    def show(outcome: Outcome) -> None:
        summary(outcome, folder, _log.info, _log.warning)

    outcome = conduct(
        folder,
        terms.plan,
        lambda transcript: Federation(
            terms,
            GridTransport(grid),
            transcript,
            say=lambda text: _log.warning("%s", text),
            wait=float(_number(config, "wait-seconds", 60)),
            helper_node=_number(config, "helper-node", 0) or None,
        ),
        bound_to={"secure_sum": {"protocol": terms.secure_sum.name, "dropout": 0.0}},
        log=Path(log) if log else None,
        say=lambda text, _: _log.info("%s", text),
        on_failure=show,
    )
    show(outcome)


def _number(config: Mapping[str, Any], name: str, default: int) -> int:
    """Read a whole number of the run-config; text too, for node ids of 64 bits."""
    value = config.get(name, default)
    try:
        return int(value or default)
    except (TypeError, ValueError):
        raise FederationError(f"{name} in the run-config is a number, not {value!r}.") from None
