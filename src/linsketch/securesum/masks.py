"""Masks: from a secret seed to a vector that is uniform over the ring.

The seed becomes an AES-256 key by HKDF-SHA256, and the key a stream of 64-bit integers in counter
mode. Entry i of a vector takes word i: modulo a power of two as it is, modulo a prime q as the
high half of integer * q. For a prime, integers that would make some value likelier than others are
left out, and their entries take the next word behind the vector's that is not. So masks are
uniform over the ring, with no bias but that of AES (docs/security.md).
"""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from linsketch import kernels
from linsketch.arrays import Uint64s
from linsketch.rings import Ring, RingVector

_CHUNK = 1 << 14  # integers that stay in the cache between cipher and addition
_ZEROS = memoryview(bytes(8 * _CHUNK))


def derive(secret: bytes, purpose: bytes, context: bytes, length: int = 32) -> bytes:
    """Return key material for one purpose."""
    info = b"linsketch/securesum/1/" + purpose + b"\0" + context
    return HKDF(SHA256(), length, None, info).derive(secret)


class _Stream:
    """The integers of a key's stream, in order."""

    def __init__(self, key: bytes) -> None:
        self._cipher: CipherContext = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._buffer = bytearray(8 * _CHUNK + 15)

    def integers(self, count: int) -> Uint64s:
        """Return the next integers, at most a chunk; they last until the next call."""
        self._cipher.update_into(_ZEROS[: 8 * count], self._buffer)
        return np.frombuffer(self._buffer, "<u8", count)


def add_mask(total: RingVector, key: bytes, negative: bool = False) -> None:
    """Add a key's mask to a vector, in place, or take it off again."""
    stream = _Stream(key)
    skipped: list[tuple[Uint64s, np.uint64]] = []
    rejected = np.empty(_CHUNK + 1, np.int64)
    for segment, array in zip(total.ring.segments, total.arrays, strict=True):
        q = np.uint64(segment.modulus)
        for first in range(0, segment.length, _CHUNK):
            part = array[first : first + _CHUNK]
            drawn = stream.integers(len(part))
            if q & (q - 1) == 0:
                kernels.masks.add_power(part, drawn, q, negative)
            else:
                many = kernels.masks.add_prime(part, drawn, q, negative, rejected)
                skipped += [(part[place : place + 1], q) for place in rejected[:many].tolist()]
    for entry, q in skipped:
        while kernels.masks.add_prime(entry, stream.integers(1), q, negative, rejected):
            pass


def mask(ring: Ring, key: bytes) -> RingVector:
    """Return a key's mask."""
    total = ring.zeros()
    add_mask(total, key)
    return total


def add_into(total: RingVector, vector: RingVector) -> None:
    """Add a vector to a running total, in place."""
    for segment, to, array in zip(total.ring.segments, total.arrays, vector.arrays, strict=True):
        kernels.masks.add_vector(to, array, np.uint64(segment.modulus))
