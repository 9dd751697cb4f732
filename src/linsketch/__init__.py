"""Find the popular items of a population without seeing anybody's items.

Campaigns: `plan_campaign`, `campaign.run`, `Server.heavy_hitters`, with `Clients` or a
`Population`. Sketches: encode a histogram on one machine, add the vectors anywhere, list the
items of the sum on another.
"""

from linsketch import campaign
from linsketch.errors import LinsketchError
from linsketch.hashing import Seeds
from linsketch.keys import ROOT, BytesKeys, IntKeys, TextKeys, Utf8Keys
from linsketch.ledger import FileLedger
from linsketch.plan import Plan
from linsketch.planner import Forecast, plan_campaign, plan_histogram
from linsketch.population import Clients, Population
from linsketch.rings import Ring, RingVector, Segment
from linsketch.securesum import ClearSum, HelperSum, MaskedSum
from linsketch.server import Server
from linsketch.sketch.countsketch import CountMin, CountSketch
from linsketch.sketch.hybrid import HybridSketch
from linsketch.sketch.iblt import IBLT
from linsketch.sketch.peel import Peel, Status
from linsketch.sketch.sizing import Size
from linsketch.task import RoundTask
from linsketch.transcript import Transcript

__version__ = "0.1.0"

__all__ = [
    "IBLT",
    "ROOT",
    "BytesKeys",
    "ClearSum",
    "Clients",
    "CountMin",
    "CountSketch",
    "FileLedger",
    "Forecast",
    "HelperSum",
    "HybridSketch",
    "IntKeys",
    "LinsketchError",
    "MaskedSum",
    "Peel",
    "Plan",
    "Population",
    "Ring",
    "RingVector",
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
    "plan_campaign",
    "plan_histogram",
]
