"""The methods: one object each, from the plan to the answer. `base` says what a method is.

For authors of methods: `Method`, and `TableMethod`, `ListingMethod` and `Practical` to derive from.
"""

from linsketch.methods.adaptive import Adaptive
from linsketch.methods.base import Forecast, Method
from linsketch.methods.count_median import CountMedian
from linsketch.methods.fixed import Fixed
from linsketch.methods.practical import Practical
from linsketch.methods.proven import Proven
from linsketch.methods.slots import Slots
from linsketch.methods.tables import ListingMethod, TableMethod
from linsketch.methods.unsampled import Unsampled

__all__ = [
    "Adaptive",
    "CountMedian",
    "Fixed",
    "Forecast",
    "ListingMethod",
    "Method",
    "Practical",
    "Proven",
    "Slots",
    "TableMethod",
    "Unsampled",
]
