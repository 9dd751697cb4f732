"""Seeded hash families, the same in every process and language (docs/wire.md).

A key is first absorbed into a 64-bit digest; every family (positions, checks, signs, ...) then
reads halves of that digest, each with a tweak of its own. Digest seeds and tweaks come out of
SHA-256. The functions here are the readable reference in numpy; the loops in `kernels` compute
the same integers.
"""

import hashlib
import struct
from dataclasses import dataclass

import numpy as np

from linsketch.arrays import Uint64s
from linsketch.errors import PlanningError
from linsketch.validation import whole_number

SHARED = 0xFFFFFFFF  # stands for "the same in every round" in a derivation
_HALF = np.uint64(32)
_LOW_32 = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Seeds:
    """Where hash functions come from: a public seed, and the round and repetition they are for.

    Without a round they are shared by all rounds.
    """

    seed: bytes
    round: int | None = None
    repetition: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.seed, bytes) or not self.seed:
            raise PlanningError("The seed must be bytes, at least one.")
        if self.round is not None:
            whole_number(self, "round", 0, SHARED - 1)
        whole_number(self, "repetition", 0, SHARED - 1)

    @property
    def name(self) -> str:
        """One line for the name of a sketch."""
        round_ = "shared" if self.round is None else self.round
        return f"seed={self.seed.hex()},round={round_},repetition={self.repetition}"

    def integers(self, label: str, count: int) -> tuple[int, ...]:
        """Derive `count` 64-bit integers for one purpose."""
        round_ = SHARED if self.round is None else self.round
        head = b"linsketch/1/" + label.encode() + b"\0"
        head += struct.pack("<III", round_, self.repetition, len(self.seed)) + self.seed
        stream = b"".join(
            hashlib.sha256(head + struct.pack("<I", block)).digest()
            for block in range(-(-count // 4))
        )
        return struct.unpack_from(f"<{count}Q", stream)


def mix(z: Uint64s) -> Uint64s:
    """Return the finaliser of SplitMix64 (Stafford's mix 13), a bijection of 64-bit integers."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def digest(keys: Uint64s, seed: int) -> Uint64s:
    """Absorb the limbs of each key (a row), in order."""
    state = np.full(len(keys), seed, np.uint64)
    for limb in keys.T:
        state = mix(state ^ limb)
    return state


def digest_bytes(text: bytes, seed: int) -> int:
    """Absorb the length of a byte string and its pieces of eight bytes, the last one padded."""
    pieces = np.frombuffer(text.ljust(-(-len(text) // 8) * 8, b"\0"), "<u8")
    return int(digest(np.array([[len(text), *pieces]], np.uint64), seed)[0])


def halves(digests: Uint64s, tweak: int) -> tuple[Uint64s, Uint64s]:
    """Return the high and low 32 bits of the digests' word for a tweak."""
    word = mix(digests ^ np.uint64(tweak))
    return word >> _HALF, word & _LOW_32


def scale(half: Uint64s, size: int) -> Uint64s:
    """Map 32-bit numbers to 0 .. size-1, as evenly as 2**32 allows."""
    scaled: Uint64s = (half * np.uint64(size)) >> _HALF
    return scaled


def high_product(a: Uint64s, b: int) -> Uint64s:
    """Return the high 64 bits of a * b."""
    a_high, a_low = a >> _HALF, a & _LOW_32
    b_high, b_low = np.uint64(b >> 32), np.uint64(b & 0xFFFFFFFF)
    middle = a_high * b_low + ((a_low * b_low) >> _HALF)
    carry = (a_low * b_high + (middle & _LOW_32)) >> _HALF
    product: Uint64s = a_high * b_high + (middle >> _HALF) + carry
    return product
