"""Letters as Flower's records."""

from flwr.app import ConfigRecord, Context, RecordDict

_NAME = "linsketch"


def pack(letter: bytes) -> RecordDict:
    """Put a letter into a message."""
    return RecordDict({_NAME: ConfigRecord({"letter": letter})})


def unpack(content: RecordDict) -> bytes:
    """Take a letter out of a message that anybody may have written; empty if there is none."""
    return _bytes(content, "letter")


def memory_of(context: Context) -> bytes:
    """Return what a node remembers in a run."""
    return _bytes(context.state, "memory")


def remember(context: Context, memory: bytes) -> None:
    """Let a node remember in a run; Flower keeps it on the node."""
    context.state[_NAME] = ConfigRecord({"memory": memory})


def _bytes(content: RecordDict, name: str) -> bytes:
    record = content.config_records.get(_NAME)
    value = record.get(name) if record else None
    return value if isinstance(value, bytes) else b""
