"""Entries of a fixed number of bits in a little-endian stream of 64-bit integers."""

from typing import Any

from numba import njit, uint64


@njit(cache=True)
def pack(entries: Any, bits: int, first_bit: int, stream: Any) -> None:
    """Write entries (each below 2**bits) to a stream that is zero from first_bit on."""
    position = uint64(first_bit)
    width = uint64(bits)
    for i in range(len(entries)):
        word, shift = position >> uint64(6), position & uint64(63)
        stream[word] |= entries[i] << shift
        if shift + width > uint64(64):
            stream[word + uint64(1)] |= entries[i] >> (uint64(64) - shift)
        position += width


@njit(cache=True)
def unpack(stream: Any, first_bit: int, bits: int, entries: Any) -> None:
    """Read as many entries as the array holds; the stream has a spare word at its end."""
    position = uint64(first_bit)
    width = uint64(bits)
    mask = (uint64(1) << width) - uint64(1)
    for i in range(len(entries)):
        word, shift = position >> uint64(6), position & uint64(63)
        entry = stream[word] >> shift
        if shift + width > uint64(64):
            entry |= stream[word + uint64(1)] << (uint64(64) - shift)
        entries[i] = entry & mask
        position += width
