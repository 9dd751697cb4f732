"""Frames of messages: version, kind, session and client, with the size checked before anything.

A frame is 22 bytes of head, a body whose size the kind and the session fix, and a checksum of 8
bytes, which finds damage (who must not be trusted is the business of the protocol). `client` is
the sender of what goes to a server, and the receiver of what comes from it.
"""

import hashlib
import struct

from linsketch.errors import ProtocolError

VERSION = 1
_HEAD = struct.Struct("<BB16sI")
HEAD_BYTES = _HEAD.size
CHECKSUM_BYTES = 8
FRAME_BYTES = HEAD_BYTES + CHECKSUM_BYTES
SERVER = 0xFFFFFFFF  # stands for the server where a frame names a client


def frame(kind: int, session: bytes, client: int, body: bytes) -> bytes:
    """Write a message."""
    data = _HEAD.pack(VERSION, kind, session, client) + body
    return data + hashlib.sha256(data).digest()[:CHECKSUM_BYTES]


def checked_number(number: object) -> int:
    """Return a client's number, or refuse what is none."""
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < SERVER:
        raise ProtocolError(f"Clients are numbered from 0 to 2**32 - 2, not {number!r}.")
    return number


def body_of(data: bytes, kind: int, session: bytes, client: int, size: int | None) -> bytes:
    """Return the body of a message that must be of this kind, session, client and size."""
    if not isinstance(data, bytes):
        raise ProtocolError(f"A message is bytes, not {type(data).__name__}.")
    if size is not None and len(data) != FRAME_BYTES + size:
        raise ProtocolError(f"The message has {len(data)} bytes, not {FRAME_BYTES + size}.")
    if len(data) < FRAME_BYTES:
        raise ProtocolError(f"The message has {len(data)} bytes, fewer than an empty one.")
    version, its_kind, its_session, its_client = _HEAD.unpack_from(data)
    if version != VERSION:
        raise ProtocolError(f"The message has version {version}; this release speaks {VERSION}.")
    if its_session != session:
        raise ProtocolError("The message belongs to another session or round.")
    if its_kind != kind:
        raise ProtocolError(f"The message is of kind {its_kind} where kind {kind} is expected.")
    if its_client != client:
        raise ProtocolError(f"The message names client {its_client}, not {client}.")
    content = data[:-CHECKSUM_BYTES]
    if hashlib.sha256(content).digest()[:CHECKSUM_BYTES] != data[-CHECKSUM_BYTES:]:
        raise ProtocolError("The message is damaged: its checksum does not match.")
    return content[HEAD_BYTES:]


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
