"""Letters as Flower's records."""

from dataclasses import fields
from typing import Any, TypeVar, cast

from flwr.app import ConfigRecord, Context, RecordDict

from linsketch.deploy.letters import Answer, Request
from linsketch.errors import ProtocolError

_NAME = "linsketch"
Letter = TypeVar("Letter", Request, Answer)


def pack(letter: Request | Answer) -> RecordDict:
    """Put a letter into a message."""
    return RecordDict({_NAME: ConfigRecord(vars(letter))})


def unpack(kind: type[Letter], content: RecordDict) -> Letter:
    """Take a letter of this kind out of a message that anybody may have written."""
    values: dict[str, Any] = dict(content.config_records.get(_NAME) or {})
    types = {field.name: bytes if field.name == "frame" else str for field in fields(kind)}
    if {name: type(value) for name, value in values.items()} != types:
        raise ProtocolError(f"The message holds no {kind.__name__.lower()}.")
    return kind(**values)


def memory_of(context: Context) -> bytes:
    """Return what a node remembers in a run."""
    record = context.state.config_records.get(_NAME)
    return cast(bytes, record["memory"]) if record else b""


def remember(context: Context, memory: bytes) -> None:
    """Let a node remember in a run; Flower keeps it on the node."""
    context.state[_NAME] = ConfigRecord({"memory": memory})
