"""How many keys went into a table that did not decode (section "Additional details on IBLT").

Peeling stops at the 2-core of the table's hypergraph, whose size grows with the number of keys.
`docs/math.md` derives the equations for k ways and any number of segments; with one start
segment (the standard table) they are those of the paper.
"""

import math
from dataclasses import dataclass

import numpy as np

from linsketch import kernels
from linsketch.sketch.sizing import Size

_LEAST_CORE = 0.1  # share of the cells; a smaller rest is taken for knots at once
_VAGUE = 0.075  # relative standard error from which on a lower bound is the better answer
_SATURATED = 3.0  # with no free cell left, no more than this were expected (95%)


@dataclass(frozen=True)
class Cardinality:
    """An estimated number of keys; `at_least` when the table can only tell a lower bound."""

    keys: float
    stderr: float
    at_least: bool = False


def free_cells(size: Size, keys: float) -> float:
    """Return how many cells are expected to be empty when peeling has stopped.

    A cell of segment i then holds Poisson(rates[i]) keys, and has been peeled if that is below 2.
    """
    rates, held = np.empty(size.segments), np.empty(size.segments)
    kernels.cores.core_rates(size.k, keys / (size.starts * size.segment_cells), rates, held)
    return float(size.segment_cells * (np.exp(-rates) * (1 + rates)).sum())


def estimate_keys(size: Size, left: int, listed: int, mass: float) -> Cardinality:
    """Estimate the keys of a table that has `left` non-empty cells after `listed` keys came out.

    Each key has a count of one or more, so the table's mass (its total count) bounds the answer.
    Where far less is left than the smallest core, it is a few knotted keys, two in each cell.
    """
    cells = size.cells
    knots = Cardinality(listed + math.ceil(2 * left / size.k), 0.0)
    if left < _LEAST_CORE * cells:
        return knots
    target = max(float(cells - left), min(_SATURATED, cells / 2))
    low, high = 0.5 * cells, 64.0 * cells  # any threshold load lies above half a key a cell
    while high / low > 1.0002:
        middle = math.sqrt(low * high)
        if free_cells(size, middle) > target:
            low = middle
        else:
            high = middle
    expected = free_cells(size, high)
    if left < 0.5 * (cells - expected):
        return knots
    if mass < high:
        return Cardinality(max(mass, listed), 0.0)
    slope = (expected - free_cells(size, 1.01 * high)) / (0.01 * high)
    stderr = math.sqrt(target) / slope if slope > 0 else high
    if stderr > _VAGUE * high:
        return Cardinality(max(high - 2 * stderr, listed), stderr, at_least=True)
    return Cardinality(high, stderr, at_least=cells - left < _SATURATED)
