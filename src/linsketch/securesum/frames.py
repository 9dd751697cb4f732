"""Frames of messages: version, kind, session and client, with the size checked before anything.

A frame is 22 bytes of head and a body whose size the kind and the session fix. `client` is the
sender of what goes to a server, and the receiver of what comes from it.
"""

import struct

from linsketch.errors import ProtocolError

VERSION = 1
_HEAD = struct.Struct("<BB16sI")
HEAD_BYTES = _HEAD.size


def frame(kind: int, session: bytes, client: int, body: bytes) -> bytes:
    """Write a message."""
    return _HEAD.pack(VERSION, kind, session, client) + body


def body_of(data: bytes, kind: int, session: bytes, client: int, size: int | None) -> bytes:
    """Return the body of a message that must be of this kind, session, client and size."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ProtocolError(f"A message is bytes, not {type(data).__name__}.")
    if size is not None and len(data) != HEAD_BYTES + size:
        raise ProtocolError(f"The message has {len(data)} bytes, not {HEAD_BYTES + size}.")
    if len(data) < HEAD_BYTES:
        raise ProtocolError(f"The message has {len(data)} bytes, fewer than a head.")
    version, its_kind, its_session, its_client = _HEAD.unpack_from(data)
    if version != VERSION:
        raise ProtocolError(f"The message has version {version}; this release speaks {VERSION}.")
    if its_session != session:
        raise ProtocolError("The message belongs to another session or round.")
    if its_kind != kind:
        raise ProtocolError(f"The message is of kind {its_kind} where kind {kind} is expected.")
    if its_client != client:
        raise ProtocolError(f"The message names client {its_client}, not {client}.")
    return bytes(data[HEAD_BYTES:])


def pack_bits(flags: list[bool]) -> bytes:
    """Write flags, eight a byte."""
    bits = sum(1 << i for i, flag in enumerate(flags) if flag)
    return bits.to_bytes(-(-len(flags) // 8), "little")


def unpack_bits(data: bytes, count: int) -> list[bool]:
    """Read flags."""
    bits = int.from_bytes(data, "little")
    if bits >> count:
        raise ProtocolError("There are more flags than neighbours.")
    return [bool(bits >> i & 1) for i in range(count)]
