"""Campaigns on Flower: `client_app` and `server_app` make the two halves of a Flower app.

`linsketch new-app DIR` writes an app around them; docs/flower.md goes from two laptops to a fleet.
"""

from linsketch.federation.flower.client import client_app
from linsketch.federation.flower.server import server_app

__all__ = ["client_app", "server_app"]
