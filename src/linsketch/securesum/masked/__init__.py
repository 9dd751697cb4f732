"""The masked sum: one server, many clients that may drop out (Bell et al. 2020)."""

from linsketch.securesum.masked.client import Client
from linsketch.securesum.masked.server import Server
from linsketch.securesum.masked.session import Session, Traffic

__all__ = ["Client", "Server", "Session", "Traffic"]
