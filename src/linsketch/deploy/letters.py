"""What passes between a server and its nodes, whoever carries it.

A request opens a round (JSON) or continues one (a frame of the secure sum); an answer is a frame,
or says why there is none. Nothing of a client's data is ever in a refusal.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

from linsketch.deploy.terms import Terms
from linsketch.errors import PlanningError, ProtocolError
from linsketch.task import RoundTask

VERSION = 1
Kind = Literal["role", "open", "step", "masks"]
"""Who is the helper? Take part in a round. Go on. Sum of masks, of the helper."""


@dataclass(frozen=True)
class Request:
    """From the server to a node."""

    kind: Kind
    opening: str = ""
    frame: bytes = b""


@dataclass(frozen=True)
class Answer:
    """From a node to the server."""

    frame: bytes = b""
    refusal: str = ""


@dataclass(frozen=True)
class Opening:
    """A round as a node is told of it."""

    task: RoundTask
    nonce: bytes
    number: int  # of the client in the campaign

    def to_text(self, terms: Terms) -> str:
        """Write it for terms."""
        data = {
            "version": VERSION,
            "terms_id": terms.terms_id,
            "task": self.task.to_json(terms.plan),
            "nonce": self.nonce.hex(),
            "number": self.number,
        }
        return json.dumps(data)

    @classmethod
    def from_text(cls, text: str, terms: Terms) -> "Opening":
        """Read one; other terms, versions and tasks than the operator accepted are refused."""
        try:
            data: dict[str, Any] = json.loads(text)
            version, named = data["version"], data["terms_id"]
            nonce, number, _ = bytes.fromhex(data["nonce"]), data["number"], data["task"]
        except (ValueError, TypeError, KeyError):
            raise ProtocolError("This opens no round: it is not what a server sends.") from None
        if version != VERSION:
            raise ProtocolError(
                f"The server speaks version {version!r} of the letters, this client {VERSION}: "
                "install the same linsketch on both."
            )
        if named != terms.terms_id:
            raise ProtocolError(
                f"The server's terms are {str(named)[:12]}, the accepted ones "
                f"{terms.terms_id[:12]}."
            )
        try:
            return cls(terms.read_task(data["task"]), nonce, number)
        except PlanningError as error:  # of another version, say
            raise ProtocolError(str(error)) from None
