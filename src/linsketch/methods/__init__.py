"""The methods: one object each, from the plan to the answer. `base` says what a method is."""

from linsketch.methods.adaptive import Adaptive
from linsketch.methods.base import Forecast, Method
from linsketch.methods.count_median import CountMedian
from linsketch.methods.fixed import Fixed
from linsketch.methods.proven import Proven
from linsketch.methods.slots import Slots
from linsketch.methods.unsampled import Unsampled

__all__ = [
    "Adaptive",
    "CountMedian",
    "Fixed",
    "Forecast",
    "Method",
    "Proven",
    "Slots",
    "Unsampled",
]
