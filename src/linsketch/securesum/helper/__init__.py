"""The helper sum: a server and a helper that do not collude; one message a client."""

from linsketch.securesum.helper.parties import (
    Challenge,
    Helper,
    HelperClient,
    HelperServer,
    HelperSession,
)

__all__ = ["Challenge", "Helper", "HelperClient", "HelperServer", "HelperSession"]
