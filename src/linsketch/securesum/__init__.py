"""Secure sums: what stands between the clients and the server."""

from linsketch.securesum.base import Contribution, SecureSum
from linsketch.securesum.clear import ClearSum

__all__ = ["ClearSum", "Contribution", "SecureSum"]
