"""Vectors over segments of Z_q: their arithmetic, and their exact size and form on the wire.

Laws: addition is that of the ring, exact and entry by entry, so it commutes with every linear
sketch; `Ring.unpack(vector.pack(context), context) == vector`; `len(vector.pack())` is
`ring.wire_bytes` plus `HEADER_BYTES`, whatever the entries. `docs/wire.md` is the format.
"""

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from linsketch import kernels
from linsketch.arrays import Uint64s
from linsketch.errors import PlanningError, VectorError, WireError
from linsketch.validation import whole_number

MAGIC = b"LSKV"
VERSION = 1
_HEAD = struct.Struct("<4sI16sQ")  # magic, version, tag of ring and context, body length
_CHECKSUM_BYTES = 8
HEADER_BYTES = _HEAD.size + _CHECKSUM_BYTES
MAX_MODULUS = 1 << 63  # the sum of two entries must fit into 64 bits
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


@cache
def is_prime(n: int) -> bool:
    """Tell whether n < 2**64 is prime: Miller and Rabin, exact with these witnesses."""
    if n < 2 or any(n % small == 0 for small in _WITNESSES):
        return n in _WITNESSES
    twos = ((n - 1) & -(n - 1)).bit_length() - 1
    for witness in _WITNESSES:
        x = pow(witness, n >> twos, n)
        if x != 1 and n - 1 not in (pow(x, 1 << i, n) for i in range(twos)):
            return False
    return True


@cache
def largest_prime(bits: int) -> int:
    """Return the largest prime below 2**bits; it wastes nothing on the wire."""
    return next(p for p in range((1 << bits) - 1, 0, -1) if is_prime(p))


@dataclass(frozen=True)
class Segment:
    """`length` entries of Z_modulus."""

    length: int
    modulus: int

    def __post_init__(self) -> None:
        whole_number(self, "length", 1, 1 << 40)
        whole_number(self, "modulus", 2, MAX_MODULUS)
        q = self.modulus
        if q & (q - 1) and not is_prime(q):
            raise PlanningError(f"The modulus {q} is neither a prime nor a power of two.")

    @property
    def bits(self) -> int:
        """Bits of one entry on the wire."""
        return (self.modulus - 1).bit_length()


@dataclass(frozen=True)
class Ring:
    """A product of segments: what a vector's entries are, and how much it weighs on the wire."""

    segments: tuple[Segment, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", tuple(self.segments))
        if not self.segments:
            raise PlanningError("A ring needs at least one segment.")

    @property
    def wire_bits(self) -> int:
        """Size of a vector in bits, without header: exact, not an estimate."""
        return sum(segment.length * segment.bits for segment in self.segments)

    @property
    def wire_bytes(self) -> int:
        """Size of a vector in bytes, without header."""
        return -(-self.wire_bits // 8)

    @property
    def wire_words(self) -> int:
        """Size of a vector in the paper's unit of communication, 16-bit words."""
        return -(-self.wire_bits // 16)

    @cached_property
    def _description(self) -> bytes:
        return b"".join(struct.pack("<QQ", s.length, s.modulus) for s in self.segments)

    def tag(self, context: bytes = b"") -> bytes:
        """Return 16 bytes that name this ring and the caller's context (plan, round, ...)."""
        head = b"linsketch/ring/1" + struct.pack("<I", len(self.segments))
        return hashlib.sha256(head + self._description + context).digest()[:16]

    def zeros(self) -> "RingVector":
        """Return the neutral element."""
        return RingVector(self, tuple(np.zeros(s.length, np.uint64) for s in self.segments))

    def vector(self, arrays: Iterable[NDArray[np.integer]]) -> "RingVector":
        """Check foreign integer arrays, one a segment, and make a vector of them."""
        given = tuple(np.asarray(array) for array in arrays)
        if len(given) != len(self.segments):
            raise VectorError(f"{len(given)} arrays given; the ring has {len(self.segments)}.")
        for number, (segment, array) in enumerate(zip(self.segments, given, strict=True)):
            if array.dtype.kind not in "iu":
                raise VectorError(f"Segment {number} holds {array.dtype}, not integers.")
            if array.shape != (segment.length,):
                raise VectorError(
                    f"Segment {number} has shape {array.shape}, not ({segment.length},)."
                )
            if array.min() < 0 or array.max() >= segment.modulus:
                raise VectorError(
                    f"Segment {number} has entries outside 0 .. {segment.modulus - 1}."
                )
        return RingVector(self, tuple(array.astype(np.uint64) for array in given))

    def sum(self, vectors: Iterable["RingVector"]) -> "RingVector":
        """Add any number of vectors, holding one at a time."""
        total = self.zeros()
        for vector in vectors:
            total = total + vector
        return total

    def unpack(self, data: bytes, context: bytes = b"") -> "RingVector":
        """Read a vector that was packed for this ring and context, or say why it cannot be."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise WireError(f"Bytes are wanted, not {type(data).__name__}.")
        data = bytes(data)
        if len(data) < HEADER_BYTES:
            raise WireError(f"Truncated: {len(data)} bytes are fewer than a header.")
        magic, version, tag, body_bytes = _HEAD.unpack_from(data)
        if magic != MAGIC:
            raise WireError("Not a linsketch vector: the first four bytes are wrong.")
        if version != VERSION:
            raise WireError(f"Format version {version}; this release reads version {VERSION}.")
        excess = len(data) - HEADER_BYTES - body_bytes
        if excess:
            what = "Truncated" if excess < 0 else "Over-long"
            raise WireError(f"{what}: {abs(excess)} bytes too {'few' if excess < 0 else 'many'}.")
        content, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
        if hashlib.sha256(content).digest()[:_CHECKSUM_BYTES] != checksum:
            raise WireError("Damaged or tampered with: the checksum does not match.")
        if tag != self.tag(context):
            raise WireError(
                f"Made for another plan, round or table: tag {tag.hex()}, "
                f"expected {self.tag(context).hex()}."
            )
        return self.unpack_body(content[_HEAD.size :])

    def unpack_body(self, body: bytes) -> "RingVector":
        """Read the bare entries of a vector, as `RingVector.pack_body` writes them."""
        if len(body) != self.wire_bytes:
            raise WireError(f"The body has {len(body)} bytes; this ring needs {self.wire_bytes}.")
        padded = np.zeros(-(-len(body) // 8) + 1, "<u8")
        padded.view(np.uint8)[: len(body)] = np.frombuffer(body, np.uint8)
        if int.from_bytes(body[-1:], "little") >> ((self.wire_bits - 1) % 8 + 1):
            raise WireError("The unused bits at the end are not zero.")
        arrays = []
        first_bit = 0
        for number, segment in enumerate(self.segments):
            array = np.empty(segment.length, np.uint64)
            kernels.packing.unpack(padded, first_bit, segment.bits, array)
            if array.max() >= segment.modulus:
                raise WireError(f"Segment {number} has an entry outside its modulus.")
            arrays.append(array)
            first_bit += segment.length * segment.bits
        return RingVector(self, tuple(arrays))


@dataclass(frozen=True, eq=False)
class RingVector:
    """An element of a ring. Use `Ring.zeros`, `Ring.vector`, `Ring.unpack` or a sketch."""

    ring: Ring
    arrays: tuple[Uint64s, ...]

    def _same_ring(self, other: "RingVector") -> None:
        if self.ring != other.ring:
            raise VectorError("The vectors belong to different rings: same plan, same sizes?")

    def __add__(self, other: "RingVector") -> "RingVector":
        """Add entry by entry in the ring."""
        if not isinstance(other, RingVector):
            return NotImplemented
        self._same_ring(other)
        sums = (a + b for a, b in zip(self.arrays, other.arrays, strict=True))
        return RingVector(
            self.ring,
            tuple(
                np.minimum(s, s - np.uint64(segment.modulus))
                for s, segment in zip(sums, self.ring.segments, strict=True)
            ),
        )

    def __radd__(self, other: int) -> "RingVector":
        """Let the built-in sum() begin with its 0."""
        return self if other == 0 else NotImplemented

    def __neg__(self) -> "RingVector":
        """Return the vector that adds up with this one to zero."""
        return RingVector(
            self.ring,
            tuple(
                np.where(a == 0, a, np.uint64(segment.modulus) - a)
                for a, segment in zip(self.arrays, self.ring.segments, strict=True)
            ),
        )

    def __sub__(self, other: "RingVector") -> "RingVector":
        """Subtract entry by entry in the ring."""
        if not isinstance(other, RingVector):
            return NotImplemented
        return self + -other

    def __eq__(self, other: object) -> bool:
        """Tell whether ring and entries are equal."""
        return (
            isinstance(other, RingVector)
            and self.ring == other.ring
            and all(map(np.array_equal, self.arrays, other.arrays))
        )

    __hash__ = None  # type: ignore[assignment]  # arrays inside: equal, but not hashable

    def pack_body(self) -> bytes:
        """Write the bare entries: `ring.wire_bytes` bytes."""
        padded = np.zeros(-(-self.ring.wire_bits // 64) + 1, "<u8")
        first_bit = 0
        for segment, array in zip(self.ring.segments, self.arrays, strict=True):
            kernels.packing.pack(array, segment.bits, first_bit, padded)
            first_bit += segment.length * segment.bits
        return padded.view(np.uint8)[: self.ring.wire_bytes].tobytes()

    def pack(self, context: bytes = b"") -> bytes:
        """Write the vector for the wire, bound to its ring and to `context`."""
        body = self.pack_body()
        content = _HEAD.pack(MAGIC, VERSION, self.ring.tag(context), len(body)) + body
        return content + hashlib.sha256(content).digest()[:_CHECKSUM_BYTES]


@dataclass(frozen=True)
class Contribution:
    """A vector, and how many users it speaks for: one, or as many as have been added up."""

    vector: RingVector
    users: int = 1
