"""Find the popular items of a population without seeing anybody's items.

Campaigns: `plan_campaign`, `campaign.run`, `Server.heavy_hitters`, with a `Rehearsal` over
`Clients` or a `Population`. Sketches: encode a histogram on one machine, add the vectors anywhere,
list the items of the sum on another. What a client's process needs is loaded at once, all else
when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from linsketch import methods as methods  # so that every plan finds its method
from linsketch.client import Report, report
from linsketch.errors import LinsketchError
from linsketch.hashing import Seeds
from linsketch.keys import ROOT, BytesKeys, IntKeys, TextKeys, Utf8Keys
from linsketch.plan import Plan
from linsketch.rings import Contribution, Ring, RingVector, Segment
from linsketch.round import RoundSketch, RoundTask
from linsketch.sketch.countsketch import CountMin, CountSketch
from linsketch.sketch.hybrid import HybridSketch
from linsketch.sketch.iblt import IBLT
from linsketch.sketch.peel import Peel, Status
from linsketch.sketch.sizing import Size

if TYPE_CHECKING:
    from linsketch import campaign
    from linsketch.history import Estimate
    from linsketch.methods import Forecast, Method
    from linsketch.planner import plan_campaign, plan_histogram
    from linsketch.population import Clients, Population, Rehearsal
    from linsketch.records.ledger import FileLedger
    from linsketch.records.transcript import Transcript
    from linsketch.results.outcome import Outcome
    from linsketch.securesum import ClearSum, HelperSum, MaskedSum
    from linsketch.server import Server

__version__ = "0.2.0"

_LATER = {
    "ClearSum": "securesum",
    "Clients": "population",
    "Estimate": "history",
    "FileLedger": "records.ledger",
    "Forecast": "methods",
    "HelperSum": "securesum",
    "MaskedSum": "securesum",
    "Method": "methods",
    "Outcome": "results.outcome",
    "Population": "population",
    "Rehearsal": "population",
    "Server": "server",
    "Transcript": "records.transcript",
    "plan_campaign": "planner",
    "plan_histogram": "planner",
}


def __getattr__(name: str) -> Any:
    if name == "campaign":
        return import_module("linsketch.campaign")
    if name in _LATER:
        return getattr(import_module(f"linsketch.{_LATER[name]}"), name)
    raise AttributeError(f"module 'linsketch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "IBLT",
    "ROOT",
    "BytesKeys",
    "ClearSum",
    "Clients",
    "Contribution",
    "CountMin",
    "CountSketch",
    "Estimate",
    "FileLedger",
    "Forecast",
    "HelperSum",
    "HybridSketch",
    "IntKeys",
    "LinsketchError",
    "MaskedSum",
    "Method",
    "Outcome",
    "Peel",
    "Plan",
    "Population",
    "Rehearsal",
    "Report",
    "Ring",
    "RingVector",
    "RoundSketch",
    "RoundTask",
    "Seeds",
    "Segment",
    "Server",
    "Size",
    "Status",
    "TextKeys",
    "Transcript",
    "Utf8Keys",
    "campaign",
    "methods",
    "plan_campaign",
    "plan_histogram",
    "report",
]
