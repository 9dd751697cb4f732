"""The masked sum: one server, many clients that may drop out (Bell et al. 2020)."""

from linsketch.securesum.masked.client import MaskedClient
from linsketch.securesum.masked.server import MaskedServer
from linsketch.securesum.masked.session import MaskedSession, Traffic

__all__ = ["MaskedClient", "MaskedServer", "MaskedSession", "Traffic"]
