"""The helper sum: a server and a helper that do not collude; one message a client."""

from linsketch.securesum.helper.parties import Challenge, Client, Helper, Server, Session

__all__ = ["Challenge", "Client", "Helper", "Server", "Session"]
