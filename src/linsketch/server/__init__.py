"""The server's side: it sees sums of rounds, never one client's vector."""

from linsketch.server.estimates import Estimate, FailedRounds
from linsketch.server.recover import Round
from linsketch.server.server import Server
from linsketch.server.tuning import Update, halfway

__all__ = ["Estimate", "FailedRounds", "Round", "Server", "Update", "halfway"]
