"""The nodes of a campaign: clients with data, and the helper. They answer requests, one by one.

A node's process may end between two requests: what it must know then is its memory, which its
transport keeps for it. The ledger is on its own disk.
"""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch.client.report import report
from linsketch.deploy.letters import Answer, Opening, Request
from linsketch.deploy.terms import Terms
from linsketch.errors import LinsketchError, ProtocolError, RefusalError, TaskError
from linsketch.rings import RingVector
from linsketch.securesum import Ledger, helper, masked
from linsketch.securesum.base import own_entry

_SAYABLE = (ProtocolError, TaskError)  # say nothing of the client's data
_log = logging.getLogger("linsketch")


class Device:
    """A client: it reports its items once in a campaign, in rounds that its terms allow."""

    def __init__(self, terms: Terms, items: Callable[[], Iterable[Any]], ledger: Ledger) -> None:
        self.terms = terms
        self._items = items
        self._ledger = ledger

    def answer(self, request: Request, memory: bytes) -> tuple[Answer, bytes]:
        """Answer a request; return what to remember for the next one, too."""
        return tactful(lambda: self._answer(request, memory), memory)

    def _answer(self, request: Request, memory: bytes) -> tuple[Answer, bytes]:
        if request.kind == "role":
            return Answer(), memory
        if request.kind == "open":
            return self._open(request.opening)
        if request.kind == "step" and memory:
            known = json.loads(memory)
            session = self._session(known["opening"])
            client = masked.Client.recalled(session, known["client"].encode(), self._ledger)
            frame = client.receive(request.frame)
            return Answer(frame), _memory(known["opening"], client)
        raise ProtocolError("This client takes part in no round, and is no helper.")

    def _open(self, text: str) -> tuple[Answer, bytes]:
        terms = self.terms
        opening = Opening.from_text(text, terms)
        if self._ledger.has(own_entry(terms.campaign)):
            raise RefusalError("This client has made its contribution to the campaign.")
        vector = self._vector(opening)
        if terms.protocol == "helper":
            session = terms.helper_session(opening.task, opening.nonce)
            return Answer(
                helper.Client(session, opening.number, vector, self._ledger).contribute()
            ), b""
        client = masked.Client(self._session(text), opening.number, vector, self._ledger)
        return Answer(client.start()), _memory(text, client)

    def _session(self, text: str) -> masked.Session:
        opening = Opening.from_text(text, self.terms)
        return self.terms.masked_session(opening.task, opening.nonce)

    def _vector(self, opening: Opening) -> RingVector:
        histogram = Counter(self._items())
        if not histogram:
            raise LinsketchError("local_items() returned nothing: this client has no data.")
        mine = report(histogram, self.terms.plan, opening.task)
        if mine.beyond_bound or mine.outside_keys:
            _log.warning(
                "Left out: %d items beyond the bound of %d a client, %d kinds of items that %s "
                "cannot hold.",
                mine.beyond_bound,
                self.terms.plan.items_per_user,
                mine.outside_keys,
                self.terms.plan.keys.name,
            )
        return mine.vector


class HelperNode:
    """The helper: it has no data, a private key, and a ledger of whom it has counted."""

    def __init__(self, terms: Terms, private: X25519PrivateKey, ledger: Ledger) -> None:
        self.terms = terms
        self._helper = helper.Helper(private, ledger)
        if self._helper.public_key != terms.helper_key:
            raise LinsketchError("The helper's key is not the one of the terms.")

    def answer(self, request: Request, memory: bytes) -> tuple[Answer, bytes]:
        """Answer a request."""
        return tactful(lambda: (self._answer(request), b""), memory)

    def _answer(self, request: Request) -> Answer:
        if request.kind == "role":
            proof = self._helper.prove(request.frame, self.terms.terms_id.encode())
            return Answer(proof)
        if request.kind != "masks":
            raise ProtocolError("This is the helper: it has no data.")
        opening = Opening.from_text(request.opening, self.terms)
        session = self.terms.helper_session(opening.task, opening.nonce)
        return Answer(self._helper.answer(session, request.frame))


def _memory(opening: str, client: masked.Client) -> bytes:
    return json.dumps({"opening": opening, "client": client.memory().decode()}).encode()


def tactful(answer: Callable[[], tuple[Answer, bytes]], memory: bytes) -> tuple[Answer, bytes]:
    """Turn what goes wrong into a refusal that says nothing of the client's data."""
    try:
        return answer()
    except _SAYABLE as error:
        _log.error("Refused: %s", error)
        return Answer(refusal=str(error)), memory
    except Exception as error:
        _log.error(
            "This node takes no part: %s", error, exc_info=not isinstance(error, LinsketchError)
        )
        return Answer(refusal="The node could not take part; its own log says why."), memory
