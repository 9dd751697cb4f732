"""Adding masks to vectors: integers of a stream, reduced to a segment's modulus."""

from typing import Any

from numba import njit, uint64

from linsketch.kernels.integers import wide_product


@njit(cache=True)
def add_power(total: Any, drawn: Any, modulus: int, negative: bool) -> None:
    """Add (or subtract) integers modulo a power of two."""
    q = uint64(modulus)
    if negative:
        for i in range(len(drawn)):
            total[i] = (total[i] - drawn[i]) & (q - uint64(1))
    else:
        for i in range(len(drawn)):
            total[i] = (total[i] + drawn[i]) & (q - uint64(1))


@njit(cache=True)
def add_prime(total: Any, drawn: Any, modulus: int, negative: bool, rejected: Any) -> int:
    """Add high(integer * modulus) modulo a prime; skip those that would make some value likelier.

    Of the 2**64 integers, those whose low(integer * modulus) is below 2**64 mod modulus are
    skipped; every value then has as many integers (Lemire 2019). Return how many were skipped;
    their places go into `rejected`.
    """
    q, skipped = uint64(modulus), 0
    uneven = (uint64(0) - q) % q
    for i in range(len(drawn)):
        value, low = wide_product(drawn[i], q)
        added = total[i] + (q - value if negative else value)
        total[i] = total[i] if low < uneven else min(added, added - q)
        skipped += low < uneven
    if skipped:  # seldom: a second look is cheaper than a list that is kept all along
        found = 0
        for i in range(len(drawn)):
            if wide_product(drawn[i], q)[1] < uneven:
                rejected[found] = i
                found += 1
    return skipped


@njit(cache=True)
def add_vector(total: Any, vector: Any, modulus: int) -> None:
    """Add residues to residues."""
    q = uint64(modulus)
    for i in range(len(total)):
        added = total[i] + vector[i]
        total[i] = min(added, added - q)
