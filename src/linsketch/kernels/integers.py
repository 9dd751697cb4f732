"""64-bit integers: wide products, ring arithmetic, the mixer, prefetch.

Everything here is inlined into the loops of the other kernels.
"""

from typing import Any

from llvmlite import ir
from numba import njit, types, uint64
from numba.core import cgutils
from numba.extending import intrinsic

MIX_1 = uint64(0xBF58476D1CE4E5B9)
MIX_2 = uint64(0x94D049BB133111EB)
ONE = uint64(1)
LOW_32 = uint64(0xFFFFFFFF)


@intrinsic
def wide_product(typing_context: Any, a: Any, b: Any) -> Any:
    """Return (high, low) of the 128-bit product of two uint64."""
    pair = types.UniTuple(types.uint64, 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        high = builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))
        low = builder.trunc(product, ir.IntType(64))
        return context.make_tuple(builder, pair, (high, low))

    return pair(types.uint64, types.uint64), generate


@intrinsic
def prefetch_row(typing_context: Any, table: Any, row: Any) -> Any:
    """Ask for the cache line where a row of a C-contiguous uint64 table begins."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        width = cgutils.unpack_tuple(builder, array.shape)[1]
        address = builder.gep(array.data, [builder.mul(args[1], width)])
        byte_pointer = ir.IntType(8).as_pointer()
        i32 = ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte_pointer, i32, i32, i32]),
            "llvm.prefetch.p0",
        )
        builder.call(function, [builder.bitcast(address, byte_pointer), i32(1), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(table, types.int64), generate


@njit(inline="always")
def mix(z: int) -> int:
    """Stafford's mix 13, the finaliser of SplitMix64: a bijection of 64-bit integers."""
    z = (z ^ (z >> uint64(30))) * MIX_1
    z = (z ^ (z >> uint64(27))) * MIX_2
    return z ^ (z >> uint64(31))


@njit(inline="always")
def scale(half: int, size: int) -> int:
    """Map a 32-bit half word to 0 .. size-1."""
    return (half * size) >> uint64(32)


@njit(inline="always")
def add_mod(a: int, b: int, q: int) -> int:
    """Return a + b in Z_q for a, b < q <= 2**63; the minimum picks the sum that did not wrap."""
    total = a + b
    return min(total, total - q)


@njit(inline="always")
def subtract_mod(a: int, b: int, q: int) -> int:
    """Return a - b in Z_q for a, b < q <= 2**63."""
    difference = a - b
    return min(difference, difference + q)


@njit(inline="always")
def reduce_mod(x: int, q: int, reciprocal: int) -> int:
    """Return x mod q; with reciprocal = (2**64 - 1) // q the quotient is one short at most."""
    rest = x - wide_product(x, reciprocal)[0] * q
    return min(rest, rest - q)


@njit(inline="always")
def multiply_mod(a: int, b: int, bits: int, delta: int) -> int:
    """Return a * b in Z_p for a, b < p = 2**bits - delta, the largest prime of 8 to 62 bits.

    2**bits = delta mod p, so the high part folds into the low one, twice; what is left is
    below 3p (docs/math.md, "Arithmetic").
    """
    p = (ONE << bits) - delta
    mask = (ONE << bits) - ONE
    high, low = wide_product(a, b)
    fold_high, fold_low = wide_product((high << (uint64(64) - bits)) | (low >> bits), delta)
    top = (fold_high << (uint64(64) - bits)) | (fold_low >> bits)
    rest = top * delta + (fold_low & mask) + (low & mask)
    rest = min(rest, rest - p)
    return min(rest, rest - p)
