"""Find the popular items of a population without seeing anybody's items.

Typed, fast, exactly linear sketches over finite rings: encode a histogram on one machine, add
the vectors anywhere, list the items of the sum on another.
"""

from linsketch.errors import LinsketchError
from linsketch.hashing import Seeds
from linsketch.keys import ROOT, BytesKeys, IntKeys, TextKeys, Utf8Keys
from linsketch.rings import Ring, RingVector, Segment
from linsketch.sketch.countsketch import CountMin, CountSketch
from linsketch.sketch.hybrid import HybridSketch
from linsketch.sketch.iblt import IBLT
from linsketch.sketch.peel import Peel, Status
from linsketch.sketch.sizing import Size

__version__ = "0.1.0"

__all__ = [
    "IBLT",
    "ROOT",
    "BytesKeys",
    "CountMin",
    "CountSketch",
    "HybridSketch",
    "IntKeys",
    "LinsketchError",
    "Peel",
    "Ring",
    "RingVector",
    "Seeds",
    "Segment",
    "Size",
    "Status",
    "TextKeys",
    "Utf8Keys",
]
