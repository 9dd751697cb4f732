"""Shamir's secret sharing over the field of 2**127 - 1 elements: shares of 16 bytes."""

import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache

from linsketch.errors import ProtocolError

PRIME = (1 << 127) - 1
SHARE_BYTES = 16


def new_secret() -> int:
    """Return a random element of the field: 127 bits that keys are derived from."""
    return secrets.randbelow(PRIME)


def to_bytes(element: int) -> bytes:
    """Write an element."""
    return element.to_bytes(SHARE_BYTES, "little")


def from_bytes(data: bytes) -> int:
    """Read an element."""
    element = int.from_bytes(data, "little")
    if len(data) != SHARE_BYTES or element >= PRIME:
        raise ProtocolError("A share is 16 bytes below 2**127 - 1.")
    return element


def share(secret: int, threshold: int, holders: int) -> list[int]:
    """Return one share for each of the holders 1, 2, ...; any `threshold` of them give the secret.

    The shares are the values at 1, 2, ... of a random polynomial whose value at 0 is the secret.
    """
    others = [secrets.randbelow(PRIME) for _ in range(threshold - 1)]
    shares = []
    for x in range(1, holders + 1):
        value = 0
        for coefficient in others:
            value = (value + coefficient) * x % PRIME
        shares.append((value + secret) % PRIME)
    return shares


def reconstruct(shares: Mapping[int, int], threshold: int) -> int:
    """Return the secret from the shares of any `threshold` holders, {holder: share}."""
    if len(shares) < threshold:
        raise ProtocolError(f"{len(shares)} shares are fewer than the {threshold} it takes.")
    holders = tuple(sorted(shares)[:threshold])
    weights = _weights(holders)
    return sum(shares[x] * weight for x, weight in zip(holders, weights, strict=True)) % PRIME


@lru_cache(maxsize=256)
def _weights(holders: Sequence[int]) -> tuple[int, ...]:
    """Return Lagrange's weights at 0: the product of x / (x - own) over the others' x."""
    denominators, product = [], 1
    for own in holders:
        product = product * own % PRIME
        below = own
        for x in holders:
            if x != own:
                below = below * (x - own) % PRIME
        denominators.append(below)
    return tuple(product * pow(below, -1, PRIME) % PRIME for below in denominators)
