"""The helper sum: a server and a helper that do not collude; one message a client."""

from linsketch.securesum.helper.parties import Client, Helper, Server, Session

__all__ = ["Client", "Helper", "Server", "Session"]
