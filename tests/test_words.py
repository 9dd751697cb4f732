"""Ring arithmetic of the kernels against Python's integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linsketch.kernels.integers import add_mod, multiply_mod, reduce_mod, subtract_mod
from linsketch.kernels.peel import inverse
from linsketch.rings import largest_prime

U = np.uint64


def test_products_fold_for_every_width() -> None:
    """What docs/math.md needs of delta holds for all key moduli, 8 to 62 bits."""
    for bits in range(8, 63):
        delta = 2**bits - largest_prime(bits)
        assert delta**2 + 3 * delta <= 2**bits


@pytest.mark.parametrize("bits", range(8, 63))
def test_multiply_at_the_edges(bits: int) -> None:
    """The largest and smallest residues multiply exactly at every width."""
    p = largest_prime(bits)
    edges = [0, 1, 2, p // 2, p - 2, p - 1]
    for a in edges:
        for b in edges:
            assert multiply_mod(U(a), U(b), U(bits), U(2**bits - p)) == a * b % p


@given(st.integers(8, 62), st.integers(0, 2**62), st.integers(0, 2**62))
def test_field(bits: int, a: int, b: int) -> None:
    """Products, inverses, sums and differences are those of the field."""
    p = largest_prime(bits)
    a, b = a % p, b % p
    assert multiply_mod(U(a), U(b), U(bits), U(2**bits - p)) == a * b % p
    assert add_mod(U(a), U(b), U(p)) == (a + b) % p
    assert subtract_mod(U(a), U(b), U(p)) == (a - b) % p
    if a:
        assert inverse(U(a), U(p)) == pow(a, -1, p)


@given(st.integers(0, 2**64 - 1), st.sampled_from([2, 3, 251, 509, 2**31 - 1, 2**61 - 1]))
def test_reduce(x: int, q: int) -> None:
    """Any word reduces exactly."""
    assert reduce_mod(U(x), U(q), U((2**64 - 1) // q)) == x % q
