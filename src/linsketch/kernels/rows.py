"""Rows of (user, item, count): numbering and hashing texts, sorting and adding up rows."""

from typing import Any

import numpy as np
from numba import njit, uint64

from linsketch.kernels.integers import mix, prefetch_row

_AHEAD = 24  # rows for which memory is asked in advance
_SHORT = 48  # rows of one user up to which insertion sort is the fastest


@njit(cache=True)
def digest_texts(flat: Any, ends: Any, seed: int, digests: Any) -> None:
    """Compute `hashing.digest_bytes` of texts that lie one behind the other."""
    first = 0
    for text in range(len(ends)):
        end = ends[text]
        state = mix(uint64(seed) ^ uint64(end - first))
        while first < end:
            word = uint64(0)
            for byte in range(min(8, end - first)):
                word |= uint64(flat[first + byte]) << uint64(8 * byte)
            state = mix(state ^ word)
            first += 8
        first = end
        digests[text] = state


@njit(cache=True)
def number(hashes: Any, numbers: Any, first_rows: Any) -> int:
    """Give equal hashes one number, in the order of their first rows; return how many differ."""
    bits, known = 16, 0
    table = np.zeros((1 << bits, 2), np.uint64)  # hash, number + 1
    for row in range(len(hashes)):
        if 2 * known >= len(table):
            bits += 2
            table = np.zeros((1 << bits, 2), np.uint64)
            for old in range(known):
                at = _place(table, hashes[first_rows[old]], bits)
                table[at, 0], table[at, 1] = hashes[first_rows[old]], old + 1
        if row + _AHEAD < len(hashes):
            prefetch_row(table, hashes[row + _AHEAD] >> uint64(64 - bits))
        at = _place(table, hashes[row], bits)
        if table[at, 1] == 0:
            first_rows[known] = row
            known += 1
            table[at, 0], table[at, 1] = hashes[row], known
        numbers[row] = table[at, 1] - 1
    return known


@njit(inline="always")
def _place(table: Any, key: Any, bits: int) -> Any:
    """Return where a hash is in an open-addressed table, or the free place where it belongs."""
    at = key >> uint64(64 - bits)
    while table[at, 1] != 0 and table[at, 0] != key:
        at = (at + uint64(1)) & uint64(len(table) - 1)
    return at


@njit(cache=True)
def fingerprint(users: Any, starts: Any, items: Any, item_digests: Any, counts: Any) -> int:
    """Hash all rows and add the hashes up, so that their order does not matter."""
    total = uint64(0)
    for user in range(len(users)):
        for row in range(starts[user], starts[user + 1]):
            state = mix(users[user] ^ item_digests[items[row]])
            total += mix(state ^ uint64(counts[row]))
    return total


@njit(cache=True)
def by_user(users: Any, items: Any, counts: Any, starts: Any, sorted_rows: Any) -> int:
    """Sort rows by user and item and merge equal ones; return how many are left.

    `sorted_rows` takes (item, count); `starts` has one entry more than there are users, and
    becomes the first row of each.
    """
    starts[:] = 0
    for user in users:
        starts[user + 1] += 1
    for user in range(1, len(starts)):
        starts[user] += starts[user - 1]
    place = starts.copy()
    for row in range(len(users)):
        if row + _AHEAD < len(users):
            prefetch_row(sorted_rows, place[users[row + _AHEAD]])
        to = place[users[row]]
        sorted_rows[to, 0] = items[row]
        sorted_rows[to, 1] = counts[row]
        place[users[row]] += 1
    end = 0
    for user in range(len(starts) - 1):
        own = sorted_rows[starts[user] : starts[user + 1]]
        starts[user] = end
        if len(own) > _SHORT:
            own[:] = own[np.argsort(own[:, 0])]
        else:
            for row in range(1, len(own)):
                item, count = own[row, 0], own[row, 1]
                at = row
                while at > 0 and own[at - 1, 0] > item:
                    own[at, 0], own[at, 1] = own[at - 1, 0], own[at - 1, 1]
                    at -= 1
                own[at, 0], own[at, 1] = item, count
        for row in range(len(own)):
            if end > starts[user] and sorted_rows[end - 1, 0] == own[row, 0]:
                sorted_rows[end - 1, 1] += own[row, 1]
            else:
                sorted_rows[end, 0], sorted_rows[end, 1] = own[row, 0], own[row, 1]
                end += 1
    starts[-1] = end
    return end


@njit(cache=True)
def by_item(items: Any, values: Any, sums: Any, holders: Any) -> None:
    """Add up the values of each item, and count the rows that have any."""
    for row in range(len(items)):
        sums[items[row]] += values[row]
        holders[items[row]] += values[row] != 0
