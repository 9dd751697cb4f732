"""Slow, readable tables on Python integers: what the fast code must agree with.

Cells are lists of plain sums, not residues, and hashing is written out once more from
docs/wire.md, so that a mistake in the fast code has nothing here to agree with.
"""

import hashlib
import struct
from collections.abc import Iterable

import numpy as np

from linsketch import IBLT, RingVector

Key = tuple[int, ...]
M = 2**64


def mix(z: int) -> int:
    """Return the mixer of docs/wire.md."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % M
    z = (z ^ z >> 27) * 0x94D049BB133111EB % M
    return z ^ z >> 31


def words(table: IBLT) -> list[int]:
    """Derive the table's digest seed and tweaks."""
    seeds = table.seeds
    round_ = 0xFFFFFFFF if seeds.round is None else seeds.round
    head = b"linsketch/1/iblt\0" + struct.pack("<III", round_, seeds.repetition, len(seeds.seed))
    return list(struct.unpack("<4Q", hashlib.sha256(head + seeds.seed + bytes(4)).digest()))


def places(table: IBLT, key: Key) -> tuple[list[int], int]:
    """Return the cells and the check of a key."""
    seed, *tweaks = words(table)
    digest = seed
    for limb in key:
        digest = mix(digest ^ limb)
    halves = [half for tweak in tweaks for half in divmod(mix(digest ^ tweak), 2**32)]
    size = table.size
    start = halves[4] * size.starts >> 32
    cells = [
        (start + way) * size.segment_cells + (halves[way] * size.segment_cells >> 32)
        for way in range(size.k)
    ]
    return cells, 1 + (halves[5] * (table.ring.segments[1].modulus - 1) >> 32)


def encode(table: IBLT, entries: Iterable[tuple[Key, int]]) -> RingVector:
    """Sum each (key, value) into its cells, one insertion each, and reduce at the very end."""
    sums = [[0] * len(table.ring.segments) for _ in range(table.size.cells)]
    for key, value in entries:
        cells, check = places(table, key)
        fields = (
            [1, check, *key, value]
            if table.layout == "paper"
            else [value * x for x in (1, check, *key)]
        )
        for cell in cells:
            sums[cell] = [a + b for a, b in zip(sums[cell], fields, strict=True)]
    return table.ring.vector(
        np.array([s % segment.modulus for s in column], np.uint64)
        for column, segment in zip(zip(*sums, strict=True), table.ring.segments, strict=True)
    )


def peels(table: IBLT, keys: set[Key]) -> bool:
    """Tell whether peeling empties the hypergraph of a set of keys."""
    edges = {key: places(table, key)[0] for key in keys}
    while edges:
        holders: dict[int, list[Key]] = {}
        for key, cells in edges.items():
            for cell in cells:
                holders.setdefault(cell, []).append(key)
        alone = {inside[0] for inside in holders.values() if len(inside) == 1}
        if not alone:
            return False
        edges = {key: cells for key, cells in edges.items() if key not in alone}
    return True
