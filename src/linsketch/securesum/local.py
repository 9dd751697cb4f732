"""Whole protocols in one process: for rehearsals, tests and benchmarks.

Every byte that would cross the network is made and read; only the network is missing.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch.errors import PlanningError, ProtocolError, RoundFailed
from linsketch.rings import Contribution, Ring
from linsketch.securesum import helper, masked
from linsketch.securesum.base import MemoryLedger
from linsketch.securesum.parameters import Parameters, choose_parameters
from linsketch.tails import smallest_bound

STAGES = 4  # of the masked protocol, in each of which a client may drop out


@dataclass
class LocalSum:
    """What both protocols share: who drops out, and how many bytes went through."""

    dropout: float = 0.0
    seed: bytes = b""
    vector_bytes: int = field(default=0, init=False)  # largest of a client, in any round
    up_bytes: int = field(default=0, init=False)
    down_bytes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.dropout < 1:
            raise PlanningError(f"The share of dropouts lies in 0 .. 1, not {self.dropout}.")

    def _last_stages(self, clients: int, stages: int, context: bytes) -> list[int]:
        """Return up to which stage each client stays; `stages` for those who stay to the end."""
        digest = hashlib.sha256(b"dropout" + self.seed + context).digest()
        rng = np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))
        gone = rng.random(clients) < self.dropout
        return [int(s) for s in np.where(gone, rng.integers(0, stages, clients), stages)]

    def weights(self) -> dict[str, int]:
        """Return the bytes of the largest round, if there was one."""
        names = ("vector_bytes", "up_bytes", "down_bytes")
        return {name: getattr(self, name) for name in names} if self.up_bytes else {}

    def _count(self, ring: Ring, up: int, down: int) -> None:
        self.vector_bytes = max(self.vector_bytes, ring.wire_bytes)
        self.up_bytes, self.down_bytes = max(self.up_bytes, up), max(self.down_bytes, down)


def _single(contributions: Iterable[Contribution]) -> list[Contribution]:
    """Return contributions of one user each: a secure sum hides users, not crowds."""
    given = list(contributions)
    if any(each.users != 1 for each in given):
        raise ProtocolError("A secure sum takes one vector a user, not sums of several users.")
    return given


@dataclass
class MaskedSum(LocalSum):
    """The masked protocol; parameters for the number of clients unless they are given."""

    parameters: Parameters | None = None
    campaign: bytes = b""

    def __call__(
        self, ring: Ring, contributions: Iterable[Contribution], context: bytes
    ) -> Contribution:
        """Run all stages; clients drop out where chance says so."""
        given = _single(contributions)
        parameters = self.parameters or self.planned(len(given))
        session = masked.MaskedSession(ring, context, parameters, self.campaign)
        last = self._last_stages(len(given), STAGES, context)
        clients = [
            masked.MaskedClient(session, number, each.vector, MemoryLedger())
            for number, each in enumerate(given)
        ]
        server = masked.MaskedServer(session, range(len(given)))
        answers = {client.number: client.start() for client in clients}
        for stage in range(STAGES):
            for number, answer in answers.items():
                if last[number] > stage:
                    server.receive(number, answer)
            messages = server.advance()
            answers = {
                number: clients[number].receive(message)
                for number, message in messages.items()
                if last[number] > stage
            }
        traffic = session.traffic
        self._count(ring, traffic.up, traffic.down)
        assert server.result is not None  # noqa: S101  # advance would have raised
        return server.result

    def planned(self, clients: int) -> Parameters:
        """Return parameters for so many clients, with room for a bad day's dropouts (1%)."""
        gone = max(0.1, smallest_bound(clients, self.dropout, 0.01) / clients)
        try:
            return choose_parameters(clients, dropout=min(gone, 0.99))
        except PlanningError as error:
            raise RoundFailed(str(error)) from None


@dataclass
class HelperSum(LocalSum):
    """The two-server protocol, with a helper of its own."""

    smallest_cohort: int = 3
    campaign: bytes = b""
    _helper: Any = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._helper = helper.Helper(X25519PrivateKey.generate(), MemoryLedger())
        self._first = 0  # client numbers are those of the campaign: no number comes twice

    def __call__(
        self, ring: Ring, contributions: Iterable[Contribution], context: bytes
    ) -> Contribution:
        """Mask, send, ask the helper, take the masks off."""
        given = _single(contributions)
        session = helper.HelperSession(
            ring, context, self._helper.public_key, self.smallest_cohort, self.campaign
        )
        numbers = range(self._first, self._first + len(given))
        self._first += len(given)
        last = self._last_stages(len(given), 1, context)
        server = helper.HelperServer(session, numbers)
        for number, each, stay in zip(numbers, given, last, strict=True):
            if stay:
                client = helper.HelperClient(session, number, each.vector, MemoryLedger())
                server.receive(number, client.contribute())
        result = server.finish(self._helper.answer(session, server.request()))
        self._count(ring, session.client_bytes, 0)
        return result
