"""The ClientApp: a node's operator says in --node-config what it accepts, and where it notes."""

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from linsketch.deploy.device import Device, HelperNode, tactful
from linsketch.deploy.flower.records import memory_of, pack, remember, unpack
from linsketch.deploy.letters import Answer, Request
from linsketch.deploy.terms import Terms
from linsketch.errors import RefusalError
from linsketch.ledger import FileLedger
from linsketch.securesum import Ledger, MemoryLedger

Items = Callable[[Mapping[str, Any]], Iterable[Any]]


def client_app(terms: Path, local_items: Items) -> ClientApp:
    """Return the ClientApp of a campaign.

    `local_items` is given the node's --node-config and returns this client's items (or a mapping
    of items to counts). They never leave the node but masked, sampled and added up.
    """
    app = ClientApp()

    @app.query()
    def answer(message: Message, context: Context) -> Message:
        before = memory_of(context)

        def ask() -> tuple[Answer, bytes]:
            node = _node(Terms.read(terms), local_items, context.node_config)
            return node.answer(unpack(Request, message.content), before)

        reply, memory = tactful(ask, before)
        remember(context, memory)
        return Message(pack(reply), reply_to=message)

    return app


def _node(terms: Terms, local_items: Items, config: Mapping[str, Any]) -> Device | HelperNode:
    """Make the node that its operator set up."""
    if _simulated() and not {"accept", "ledger", "role"} & config.keys():
        # Virtual clients have no operator, and no disk of their own.
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


def _simulated() -> bool:
    """Tell whether this process is an actor of Flower's simulation; no server can say so."""
    ray = sys.modules.get("ray")
    return bool(ray and ray.is_initialized())
