"""Secure sums that a test carries, and may change."""

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np

from linsketch import Ring, RingVector, Segment
from linsketch.rings import largest_prime
from linsketch.securesum import (
    Contribution,
    MemoryLedger,
    Parameters,
    masked,
)
from linsketch.securesum.frames import CHECKSUM_BYTES, HEAD_BYTES, frame

RING = Ring((Segment(6, 2**14), Segment(6, 509), Segment(6, largest_prime(17))))


def vectors(count: int, ring: Ring = RING, seed: int = 1) -> list[RingVector]:
    """Return random vectors."""
    rng = np.random.default_rng(seed)
    return [
        ring.vector(rng.integers(0, s.modulus, s.length) for s in ring.segments)
        for _ in range(count)
    ]


def inside(message: bytes) -> bytes:
    """Return the body of a message."""
    return message[HEAD_BYTES:-CHECKSUM_BYTES]


def altered(message: bytes, at: int, flip: int = 1) -> bytes:
    """Flip bits of a message's body, and mend its checksum."""
    body = bytearray(inside(message))
    body[at] ^= flip
    version, kind, session, client = struct.unpack_from("<BB16sI", message)
    assert version == 1
    return frame(kind, session, client, bytes(body))


class Play:
    """A session whose messages a test carries, and may change."""

    def __init__(self, n: int, k: int, t: int, context: bytes = b"round 1", **options: Any) -> None:
        self.session = masked.MaskedSession(RING, context, Parameters(n, k, t), **options)
        self.vectors = vectors(n)
        self.ledgers = [MemoryLedger() for _ in range(n)]
        self.clients = [
            masked.MaskedClient(self.session, i, self.vectors[i], self.ledgers[i]) for i in range(n)
        ]
        self.server = masked.MaskedServer(self.session, range(n))
        self.answers = {client.number: client.start() for client in self.clients}

    def stage(self, present: Iterable[int]) -> dict[int, bytes]:
        """Deliver the answers of those present, close the stage, return the next messages."""
        for number in present:
            if number in self.answers:
                self.server.receive(number, self.answers[number])
        return self.server.advance()

    def reply(self, messages: dict[int, bytes]) -> None:
        """Let all clients answer."""
        self.answers = {n: self.clients[n].receive(message) for n, message in messages.items()}

    def until(self, stage: int) -> dict[int, bytes]:
        """Play honestly, everybody present; return the messages of the server's stage."""
        everybody = range(len(self.clients))
        messages = self.stage(everybody)
        for number in range(stage):
            self.reply(messages)
            if number == 1:
                self.masked = dict(self.answers)
            messages = self.stage(everybody)
        return messages


def run(play: Play, last: list[int]) -> Contribution:
    """Run with each client present up to its last stage."""
    for stage in range(4):
        messages = play.stage([i for i, stop in enumerate(last) if stop > stage])
        play.reply({n: m for n, m in messages.items() if last[n] > stage})
    assert play.server.result is not None
    return play.server.result
