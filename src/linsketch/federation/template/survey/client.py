"""The clients: fill in where their items come from."""

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from linsketch.federation.flower import client_app


def local_items(node: Mapping[str, Any]) -> Iterable[str]:
    """Return this client's items; `node` is what its operator gave as --node-config.

    As it stands: the lines of the file `data`, or made-up ones for a simulation.
    """
    if "data" in node:
        return Path(node["data"]).read_text(encoding="utf-8").splitlines()
    taste = random.Random(node["partition-id"])  # noqa: S311  # made up, not secret
    drinks = ["tea", "coffee", "milk", "water", "juice", "cocoa", "maté", "kefir", "chai", "soda"]
    return taste.choices(drinks, weights=[1 / rank for rank in range(1, 11)], k=3)


app = client_app(Path(__file__).with_name("terms.json"), local_items)
