"""The loop that lists the entries of a table."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import int64, njit, uint64

from linsketch.kernels.integers import (
    ONE,
    mix,
    multiply_mod,
    prefetch_row,
    reduce_mod,
    scale,
    subtract_mod,
)
from linsketch.kernels.table import CHECK, HALF, LIMBS, WEIGHT, Table, check_of, offset_in_segment

BATCH = 16  # entries taken out, or cells scanned, before cells are tested
INVERSES = uint64(1024)  # inverses of small weights are kept, larger ones computed each time


@njit(inline="always")
def _signed(residue: int, modulus: int, negative: bool) -> int:
    """Return a residue or its negative."""
    return subtract_mod(uint64(0), residue, modulus) if negative else residue


@njit(cache=True)
def inverse(a: int, p: int) -> int:
    """Return 1 / a in Z_p for 0 < a < p, p prime, by Euclid; the coefficients' signs alternate."""
    before, now = uint64(0), uint64(1)
    rest_before, rest = p, a
    negative = False
    while rest > ONE:
        quotient = rest_before // rest
        rest_before, rest = rest, rest_before - quotient * rest
        before, now = now, before + quotient * now
        negative = not negative
    return p - now if negative else now


@cache
def peeler(k: int, limbs: int, valued: bool) -> Callable[..., tuple[int, int, int, bool]]:
    """Return the loop that lists a table's entries and takes them out of it.

    It returns how many it listed, how many cells are left, how many tests it made, and:
    `reappeared`, whether entries of equal keys must be added up.

    The arrays keys, weights, values and ways are the peel list: entries 0 .. listed-1 are out of
    the table, head .. tail-1 wait. What holds (docs/math.md, "The peel", has the proofs):

    1. An entry waits together with the cell that showed it (its way). It is taken out only if
       that cell still holds this entry and nothing else, and that cell is zero from then on.
    2. A cell is tested when it is scanned and when a removal has changed it, so every cell that
       comes to hold one key is seen: only the removal of that key can change it again.
    3. A test can err, rarely. A key is listed twice only after some cell that was zero has
       become non-zero again, which `reappeared` tells.
    4. Each test adds at most one entry, each listed entry causes at most 2 * (k - 1) tests, and
       the list has room for `len(weights)`: the loop ends on any table.

    Work is done in batches without branches on data, since those would be coin tosses, and with
    the cells of a batch on their way to the cache before they are needed.
    """
    fields = value_field = LIMBS + limbs  # a value, if there is one, comes last

    @njit(cache=True)
    def peel(
        table: Any, keys: Any, weights: Any, values: Any, ways: Any, bounds: Any, t: Table
    ) -> tuple[int, int, int, bool]:
        p = (ONE << t.key_bits) - t.key_delta
        inverses = np.ones(int64(INVERSES), np.uint64)
        for a in range(uint64(2), min(INVERSES, t.max_weight + ONE)):
            inverses[a] = p - multiply_mod(p // a, inverses[p % a], t.key_bits, t.key_delta)
        cells = np.empty((BATCH, k), np.uint64)
        starts = np.empty(BATCH, np.uint64)
        taken = np.empty((BATCH, fields), np.uint64)
        changed = np.empty(2 * k * BATCH, np.uint64)
        changed_segment = np.empty(2 * k * BATCH, np.uint64)
        changed_sign = np.empty(2 * k * BATCH, np.bool_)
        magnitudes = np.empty(2 * k * BATCH, np.uint64)
        shown = np.empty((2 * k * BATCH, limbs), np.uint64)
        shown_way = np.empty(2 * k * BATCH, np.uint64)
        home = np.empty(2 * k * BATCH, np.uint64)
        check_sum = np.empty(2 * k * BATCH, np.uint64)
        listed = head = tail = uint64(0)
        tests = 0
        reappeared = False
        # Negative weights come from subtraction, or from having taken out a key that was not
        # there. They are looked for in a second pass, since they double the tests.
        signed = False
        scanned = uint64(0)
        segment = uint64(0)
        while True:
            to_test = uint64(0)
            if scanned < uint64(len(table)):
                # Scan a batch of cells.
                stop = min(scanned + uint64(BATCH), (segment + ONE) * t.segment_cells)
                for cell in range(scanned, stop):
                    if table[cell, WEIGHT] == 0:
                        continue
                    for sign in range(1 + signed):
                        changed[to_test] = cell
                        changed_segment[to_test] = segment
                        changed_sign[to_test] = sign
                        to_test += ONE
                scanned = stop
                segment += uint64(stop == (segment + ONE) * t.segment_cells)
            elif head < tail:
                # Take out a batch of entries: hash them (SIMD: a loop of its own), fetch, remove.
                batch = min(uint64(BATCH), tail - head)
                for i in range(batch):
                    digest = t.seed
                    for limb in range(limbs):
                        digest = mix(digest ^ keys[head + i, limb])
                    word = mix(digest ^ t.tweak_2)
                    starts[i] = scale(word >> HALF, t.starts)
                    for way in range(k):
                        cells[i, way] = (starts[i] + uint64(way)) * t.segment_cells
                        cells[i, way] += offset_in_segment(t, digest, way)
                    taken[i, WEIGHT] = uint64(abs(weights[head + i]))
                    taken[i, CHECK] = taken[i, WEIGHT] * check_of(t, word)
                for i in range(batch):
                    for way in range(k):
                        prefetch_row(table, int64(cells[i, way]))
                    negative = weights[head + i] < 0
                    for limb in range(limbs):
                        limb_sum = multiply_mod(
                            taken[i, WEIGHT], keys[head + i, limb], t.key_bits, t.key_delta
                        )
                        taken[i, LIMBS + limb] = _signed(limb_sum, p, negative)
                    check = reduce_mod(taken[i, CHECK], t.check_modulus, t.check_reciprocal)
                    taken[i, CHECK] = _signed(check, t.check_modulus, negative)
                    taken[i, WEIGHT] = _signed(taken[i, WEIGHT], t.weight_modulus, negative)
                for i in range(batch):
                    source = cells[i, ways[head + i]]
                    left = table[source, WEIGHT] ^ taken[i, WEIGHT]
                    for field in range(CHECK, fields):
                        left |= table[source, field] ^ taken[i, field]
                    if left != 0:
                        continue
                    for limb in range(limbs):
                        keys[listed, limb] = keys[head + i, limb]
                    weights[listed] = weights[head + i]
                    value = uint64(0)
                    if valued:
                        value = table[source, value_field]
                        values[listed] = value
                    listed += ONE
                    for way in range(k):
                        cell = cells[i, way]
                        held = table[cell, WEIGHT] | table[cell, CHECK]
                        table[cell, WEIGHT] = subtract_mod(
                            table[cell, WEIGHT], taken[i, WEIGHT], t.weight_modulus
                        )
                        table[cell, CHECK] = subtract_mod(
                            table[cell, CHECK], taken[i, CHECK], t.check_modulus
                        )
                        for field in range(LIMBS, fields):
                            held |= table[cell, field]
                            table[cell, field] = subtract_mod(
                                table[cell, field], taken[i, field], p
                            )
                        if valued:
                            table[cell, value_field] = subtract_mod(
                                table[cell, value_field], value, t.weight_modulus
                            )
                        reappeared |= held == 0
                        for sign in range(1 + signed):
                            changed[to_test] = cell
                            changed_segment[to_test] = starts[i] + uint64(way)
                            changed_sign[to_test] = sign
                            to_test += uint64(table[cell, WEIGHT] != 0)
                head += batch
            elif not signed:
                signed = True
                scanned = segment = uint64(0)
            else:
                break
            if tail + to_test > uint64(len(weights)):
                # Close the gap that entries shown twice have left, if there is one.
                for i in range(tail - head):
                    for limb in range(limbs):
                        keys[listed + i, limb] = keys[head + i, limb]
                    weights[listed + i] = weights[head + i]
                    ways[listed + i] = ways[head + i]
                tail -= head - listed
                head = listed
                if tail > uint64(len(weights) // 2):
                    break
            # Test the cells: read each as one key, hash it (SIMD again), keep it if it fits.
            for i in range(to_test):
                residue = table[changed[i], WEIGHT]
                magnitude = t.weight_modulus - residue if changed_sign[i] else residue
                if magnitude < INVERSES:
                    reciprocal = inverses[magnitude]
                else:
                    reciprocal = inverse(magnitude % p, p)
                magnitudes[i] = magnitude
                for limb in range(limbs):
                    key = multiply_mod(
                        table[changed[i], LIMBS + limb], reciprocal, t.key_bits, t.key_delta
                    )
                    shown[i, limb] = _signed(key, p, changed_sign[i])
            for i in range(to_test):
                digest = t.seed
                for limb in range(limbs):
                    digest = mix(digest ^ shown[i, limb])
                word = mix(digest ^ t.tweak_2)
                shown_way[i] = changed_segment[i] - scale(word >> HALF, t.starts)
                home[i] = changed_segment[i] * t.segment_cells + offset_in_segment(
                    t, digest, shown_way[i]
                )
                check_sum[i] = magnitudes[i] * check_of(t, word)
            for i in range(to_test):
                check = reduce_mod(check_sum[i], t.check_modulus, t.check_reciprocal)
                pure = table[changed[i], CHECK] == _signed(check, t.check_modulus, changed_sign[i])
                pure &= magnitudes[i] - ONE < t.max_weight  # neither zero nor too large
                pure &= (shown_way[i] < uint64(k)) & (home[i] == changed[i])
                for limb in range(limbs):
                    pure &= shown[i, limb] < bounds[limb]
                    keys[tail, limb] = shown[i, limb]
                weights[tail] = -int64(magnitudes[i]) if changed_sign[i] else int64(magnitudes[i])
                ways[tail] = shown_way[i]
                tail += uint64(pure)
            tests += int64(to_test)
        cells_left = 0
        for cell in range(uint64(len(table))):
            held = uint64(0)
            for field in range(fields + valued):
                held |= table[cell, field]
            cells_left += held != 0
        return int64(listed), cells_left, tests, reappeared

    return peel
