"""The nodes of a campaign: clients with data, and the helper. They answer letters, one by one.

A node's process may end between two letters: what it must know then is its memory, which its
transport keeps for it. The ledger is on its own disk.
"""

import json
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch.client import report
from linsketch.errors import LinsketchError, ProtocolError, RefusalError, TaskError
from linsketch.federation.letters import Answer, Opening, Request
from linsketch.federation.terms import HelperTerms, MaskedTerms, Terms
from linsketch.markup import printable
from linsketch.rings import RingVector
from linsketch.round import RoundTask
from linsketch.securesum import Ledger, MemoryLedger, helper, masked
from linsketch.securesum.base import own_entry

Items = Callable[[Mapping[str, Any]], Iterable[Any]]
"""Given a node's configuration, returns its items."""
_SAYABLE = (ProtocolError, TaskError)  # say nothing of the client's data
_log = logging.getLogger("linsketch")


class Node(ABC):
    """Bytes in, bytes out: a node answers every letter, if only with a refusal."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def answer(self, letter: bytes, memory: bytes) -> tuple[bytes, bytes]:
        """Answer a letter; return what to remember for the next one, too."""

        def ask() -> tuple[bytes, bytes]:
            answer, after = self._answer(Request.from_bytes(letter), memory)
            return answer.to_bytes(), after

        return tactful(ask, memory)

    @abstractmethod
    def _answer(self, request: Request, memory: bytes) -> tuple[Answer, bytes]: ...


class Device(Node):
    """A client: it reports its items once in a campaign, in rounds that its terms allow."""

    def __init__(self, terms: Terms, items: Callable[[], Iterable[Any]], ledger: Ledger) -> None:
        super().__init__(terms)
        self._items = items
        self._ledger = ledger

    def _answer(self, request: Request, memory: bytes) -> tuple[Answer, bytes]:
        if request.kind == "role":
            return Answer(), memory
        if request.kind == "open":
            return self._open(request.opening)
        if request.kind == "step" and memory and isinstance(self.terms.secure_sum, MaskedTerms):
            known = json.loads(memory)
            opening = Opening.from_text(known["opening"], self.terms)
            session = self.terms.secure_sum.session(self.terms, opening.task, opening.nonce)
            client = masked.MaskedClient.recalled(session, known["client"].encode(), self._ledger)
            frame = client.receive(request.frame)
            return Answer(frame), _memory(known["opening"], client)
        raise ProtocolError("This client takes part in no round, and is no helper.")

    def _open(self, text: str) -> tuple[Answer, bytes]:
        terms, opening = self.terms, Opening.from_text(text, self.terms)
        if self._ledger.has(own_entry(terms.campaign)):
            raise RefusalError("This client has made its contribution to the campaign.")
        vector = self._vector(opening.task)
        if isinstance(terms.secure_sum, HelperTerms):
            session = terms.secure_sum.session(terms, opening.task, opening.nonce)
            sender = helper.HelperClient(session, opening.number, vector, self._ledger)
            return Answer(sender.contribute()), b""
        tied = terms.secure_sum.session(terms, opening.task, opening.nonce)
        client = masked.MaskedClient(tied, opening.number, vector, self._ledger)
        return Answer(client.start()), _memory(text, client)

    def _vector(self, task: RoundTask) -> RingVector:
        histogram = Counter(self._items())
        if not histogram:
            raise LinsketchError("local_items() returned nothing: this client has no data.")
        plan = self.terms.plan
        mine = report(histogram, plan, task)
        if mine.beyond_bound or mine.outside_keys:
            _log.warning(
                "Left out: %d items beyond the bound of %d a client, %d kinds of items that %s "
                "cannot hold.",
                mine.beyond_bound,
                plan.items_per_user,
                mine.outside_keys,
                plan.keys.name,
            )
        return mine.vector


class HelperNode(Node):
    """The helper: it has no data, a private key, and a ledger of whom it has counted."""

    def __init__(self, terms: Terms, private: X25519PrivateKey, ledger: Ledger) -> None:
        super().__init__(terms)
        self._helper = helper.Helper(private, ledger)
        if not isinstance(terms.secure_sum, HelperTerms):
            raise LinsketchError("The terms are for a secure sum without a helper.")
        if self._helper.public_key != terms.secure_sum.key:
            raise LinsketchError("The helper's key is not the one of the terms.")
        self._session = terms.secure_sum.session

    def _answer(self, request: Request, memory: bytes) -> tuple[Answer, bytes]:  # noqa: ARG002  # it needs none
        if request.kind == "role":
            proof = self._helper.prove(request.frame, self.terms.terms_id.encode())
            return Answer(proof), b""
        if request.kind != "masks":
            raise ProtocolError("This is the helper: it has no data.")
        opening = Opening.from_text(request.opening, self.terms)
        session = self._session(self.terms, opening.task, opening.nonce)
        return Answer(self._helper.answer(session, request.frame)), b""


def configured(
    terms: Terms, local_items: Items, config: Mapping[str, Any], *, virtual: bool = False
) -> Node:
    """Make the node that its operator set up.

    `accept` holds the ids of accepted terms, `ledger` an absolute path; `role` "helper" has the
    path of its private `key`. Virtual clients have no operator, and no disk of their own.
    """
    if virtual and not {"accept", "ledger", "role"} & config.keys():
        return Device(terms, lambda: local_items(config), MemoryLedger())
    if terms.terms_id not in str(config.get("accept", "")).split():
        raise RefusalError(
            f"The operator of this node has not accepted the terms {terms.terms_id} (`linsketch "
            "terms` says what they are; --node-config 'accept=\"ID\"' accepts them)."
        )
    ledger = _ledger(config)
    if config.get("role") == "helper":
        return HelperNode(terms, read_key(Path(str(config.get("key", "")))), ledger)
    return Device(terms, lambda: local_items(config), ledger)


def _ledger(config: Mapping[str, Any]) -> Ledger:
    from linsketch.records.ledger import FileLedger  # loads sqlite3, for those with a disk

    path = Path(str(config.get("ledger", "")))
    if not path.is_absolute():
        raise RefusalError(
            "This node needs a ledger with an absolute path: --node-config 'ledger=\"/a/path\"'."
        )
    return FileLedger(path)


def read_key(path: Path) -> X25519PrivateKey:
    """Read the helper's private key, as `linsketch helper-key` wrote it."""
    try:
        return X25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text().strip()))
    except (OSError, ValueError):
        raise RefusalError("This helper's key cannot be read: see linsketch helper-key.") from None


def _memory(opening: str, client: masked.MaskedClient) -> bytes:
    return json.dumps({"opening": opening, "client": client.memory().decode()}).encode()


def tactful(answer: Callable[[], tuple[bytes, bytes]], memory: bytes) -> tuple[bytes, bytes]:
    """Turn what goes wrong into a refusal that says nothing of the client's data."""
    try:
        return answer()
    except _SAYABLE as error:
        _log.error("Refused: %s", printable(error))
        return Answer(refusal=str(error)).to_bytes(), memory
    except Exception as error:
        _log.error(
            "This node takes no part: %s", error, exc_info=not isinstance(error, LinsketchError)
        )
        said = "The node could not take part; its own log says why."
        return Answer(refusal=said).to_bytes(), memory
