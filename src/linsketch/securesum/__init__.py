"""Secure sums: vectors over Z_q in, their exact sum out, and nothing else shown.

`ClearSum` adds in the clear. `MaskedSum` (one server) and `HelperSum` (two that do not collude)
run the real protocols in one process; `masked` and `helper` are their parties, state machines
without I/O for whoever carries the messages.
"""

from linsketch.rings import Contribution
from linsketch.securesum import helper, masked
from linsketch.securesum.base import Ledger, MemoryLedger, SecureSum
from linsketch.securesum.clear import ClearSum
from linsketch.securesum.local import HelperSum, MaskedSum
from linsketch.securesum.parameters import Parameters, choose_parameters

__all__ = [
    "ClearSum",
    "Contribution",
    "HelperSum",
    "Ledger",
    "MaskedSum",
    "MemoryLedger",
    "Parameters",
    "SecureSum",
    "choose_parameters",
    "helper",
    "masked",
]
