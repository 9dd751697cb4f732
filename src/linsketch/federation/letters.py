"""What passes between a server and its nodes: bytes, whatever carries them.

A request opens a round (JSON) or continues one (a frame of the secure sum); an answer is a frame,
or says why there is none. Nothing of a client's data is ever in a refusal.
"""

import json
import struct
from dataclasses import dataclass
from typing import Any, Literal, get_args

from linsketch.errors import PlanningError, ProtocolError
from linsketch.federation.terms import Terms
from linsketch.round import RoundSketch, RoundTask

VERSION = 2
Kind = Literal["role", "open", "step", "masks"]
"""`role`: prove that you are the helper. `open`: join a round. `step`: the next message.
`masks`: the sum of masks, asked of the helper."""
_KINDS: tuple[Kind, ...] = get_args(Kind)
_REQUEST, _ANSWER = b"LSKQ", b"LSKA"
_HEAD = struct.Struct("<4sBBI")  # magic, version, kind, bytes of the opening


@dataclass(frozen=True)
class Request:
    """From the server to a node."""

    kind: Kind
    opening: str = ""
    frame: bytes = b""

    def to_bytes(self) -> bytes:
        """Write it for any transport."""
        opening = self.opening.encode()
        head = _HEAD.pack(_REQUEST, VERSION, _KINDS.index(self.kind), len(opening))
        return head + opening + self.frame

    @classmethod
    def from_bytes(cls, data: bytes) -> "Request":
        """Read one that anybody may have written."""
        kind, opening, frame = _read(data, _REQUEST, len(_KINDS), "request")
        return cls(_KINDS[kind], opening, frame)


@dataclass(frozen=True)
class Answer:
    """From a node to the server: a frame, or why there is none."""

    frame: bytes = b""
    refusal: str = ""

    def to_bytes(self) -> bytes:
        """Write it for any transport."""
        refusal = self.refusal.encode(errors="backslashreplace")  # it may quote anything
        return _HEAD.pack(_ANSWER, VERSION, 0, len(refusal)) + refusal + self.frame

    @classmethod
    def from_bytes(cls, data: bytes) -> "Answer":
        """Read one that anybody may have written."""
        _, refusal, frame = _read(data, _ANSWER, 1, "answer")
        return cls(frame, refusal)


def _read(data: bytes, magic: bytes, kinds: int, what: str) -> tuple[int, str, bytes]:
    """Return kind, text and frame of a letter."""
    try:
        found, version, kind, length = _HEAD.unpack_from(data)
        if found == magic and version != VERSION:  # whose letters may go on otherwise
            raise ProtocolError(
                f"The other side speaks version {version} of the letters, this one {VERSION}: "
                "install the same linsketch on both."
            )
        text = data[_HEAD.size :][:length]
        if found != magic or kind >= kinds or len(text) != length:
            raise ValueError
        read = text.decode()
    except (struct.error, TypeError, ValueError):
        raise ProtocolError(f"The message holds no {what}.") from None
    return kind, read, bytes(data[_HEAD.size + length :])


@dataclass(frozen=True)
class Opening:
    """A round as a node is told of it."""

    task: RoundTask
    nonce: bytes
    number: int  # of the client in the campaign

    def to_text(self, terms: Terms) -> str:
        """Write it for terms."""
        data = {
            "terms_id": terms.terms_id,
            "task": RoundSketch.of(terms.plan, self.task).task_json,
            "nonce": self.nonce.hex(),
            "number": self.number,
        }
        return json.dumps(data)

    @classmethod
    def from_text(cls, text: str, terms: Terms) -> "Opening":
        """Read one; other terms and tasks than the operator accepted are refused."""
        try:
            data: dict[str, Any] = json.loads(text)
            named, task = data["terms_id"], data["task"]
            nonce, number = bytes.fromhex(data["nonce"]), data["number"]
        except (ValueError, TypeError, KeyError):
            raise ProtocolError("This opens no round: it is not what a server sends.") from None
        if named != terms.terms_id:
            raise ProtocolError(
                f"The server's terms are {str(named)[:12]}, the accepted ones "
                f"{terms.terms_id[:12]}."
            )
        try:
            return cls(RoundTask.from_json(task, terms.plan), nonce, number)
        except PlanningError as error:  # of another version, say
            raise ProtocolError(str(error)) from None
