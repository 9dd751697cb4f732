"""The ClientApp: a node's operator says in --node-config what it accepts, and where it notes."""

import sys
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from linsketch.federation.flower.records import memory_of, pack, remember, unpack
from linsketch.federation.node import Items, configured, tactful
from linsketch.federation.terms import Terms


def client_app(terms: Path, local_items: Items) -> ClientApp:
    """Return the ClientApp of a campaign.

    `local_items` is given the node's --node-config and returns this client's items (or a mapping
    of items to counts). They never leave the node but masked, sampled and added up.
    """
    app = ClientApp()

    @app.query()
    def answer(message: Message, context: Context) -> Message:
        before = memory_of(context)

        def ask() -> tuple[bytes, bytes]:
            accepted, config = Terms.read(terms), context.node_config
            node = configured(accepted, local_items, config, virtual=_simulated())
            return node.answer(unpack(message.content), before)

        letter, memory = tactful(ask, before)
        remember(context, memory)
        return Message(pack(letter), reply_to=message)

    return app


def _simulated() -> bool:
    """Tell whether this process is an actor of Flower's simulation; no server can say so."""
    ray = sys.modules.get("ray")
    return bool(ray and ray.is_initialized())
