"""Masks, shares, parameters: the parts of a secure sum."""

import itertools
import math
import os
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from linsketch import Ring, Segment
from linsketch.errors import PlanningError, ProtocolError
from linsketch.rings import largest_prime
from linsketch.securesum import Parameters, choose_parameters, masked, shamir
from linsketch.securesum.masks import _CHUNK, add_into, add_mask, derive, mask
from linsketch.securesum.parameters import disconnection
from linsketch.tails import hypergeometric_tail

RING = Ring((Segment(40, 2**14), Segment(40, 509), Segment(40, largest_prime(17)), Segment(3, 2)))


def stream(key: bytes, words: int) -> list[int]:
    """Return the words of a key's stream: the readable reference."""
    cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return [int(word) for word in np.frombuffer(cipher.update(bytes(8 * words)), "<u8")]


def reference(ring: Ring, key: bytes) -> list[list[int]]:
    """Return a mask entry by entry, in Python's integers."""
    total = sum(segment.length for segment in ring.segments)
    words = stream(key, 2 * total + 50)
    spare = iter(words[total:])
    first, entries, late = 0, [], []
    for number, segment in enumerate(ring.segments):
        q, row = segment.modulus, []
        for i, word in enumerate(words[first : first + segment.length]):
            if q & (q - 1) == 0:
                row.append(word % q)
            elif word * q % 2**64 >= 2**64 % q:
                row.append(word * q >> 64)
            else:
                row.append(-1)
                late.append((number, i, q))
        entries.append(row)
        first += segment.length
    for number, i, q in late:
        word = next(w for w in spare if w * q % 2**64 >= 2**64 % q)
        entries[number][i] = word * q >> 64
    return entries


@pytest.mark.parametrize("q", [2, 2**14, 2**63, 509, largest_prime(61), 3 * 2**61 + 11])
def test_masks_are_what_the_document_says(q: int) -> None:
    """Every entry is that of the reference, rejected words included; long vectors too."""
    q = q if q & (q - 1) == 0 else next(p for p in itertools.count(q) if _prime(p))
    for length in (7, _CHUNK + 3):
        ring = Ring((Segment(length, q), Segment(3, 17)))
        key = os.urandom(32)
        assert [array.tolist() for array in mask(ring, key).arrays] == reference(ring, key)


def _prime(n: int) -> bool:
    from linsketch.rings import is_prime

    return is_prime(n)


def test_masks_come_off_again() -> None:
    """What is added and taken off leaves the vector; two masks add up."""
    rng = np.random.default_rng(1)
    vector = RING.vector(rng.integers(0, s.modulus, s.length) for s in RING.segments)
    total = RING.vector(vector.arrays)
    one, two = os.urandom(32), os.urandom(32)
    add_mask(total, one)
    add_mask(total, two, negative=True)
    assert total == vector + mask(RING, one) - mask(RING, two)
    add_mask(total, one, negative=True)
    add_mask(total, two)
    assert total == vector
    add_into(total, mask(RING, one))
    assert total == vector + mask(RING, one)


@pytest.mark.parametrize("q", [2**4, 13, 251])
def test_masks_are_uniform(q: int) -> None:
    """All residues are equally likely: chi square of a million entries, false alarm 1e-7."""
    counts = np.bincount(mask(Ring((Segment(10**6, q),)), b"k" * 32).arrays[0], minlength=q)
    expected = 10**6 / q
    chi = float(((counts - expected) ** 2 / expected).sum())
    assert abs(chi - (q - 1)) < 5.3 * math.sqrt(2 * (q - 1)) + 15


def test_keys_have_one_purpose() -> None:
    """Another secret, purpose or context gives another key."""
    keys = {derive(s, p, c) for s in (b"a", b"b") for p in (b"x", b"y") for c in (b"1", b"2")}
    assert len(keys) == 8


@given(st.integers(2, 9), st.integers(0, 4), st.integers(0, shamir.PRIME - 1))
def test_any_threshold_of_shares_reconstructs(threshold: int, more: int, secret: int) -> None:
    """Every subset of threshold size gives the secret; one share less is refused."""
    shares = dict(enumerate(shamir.share(secret, threshold, threshold + more), 1))
    for subset in itertools.islice(itertools.combinations(shares, threshold), 30):
        assert shamir.reconstruct({x: shares[x] for x in subset}, threshold) == secret
    fewer = dict(list(shares.items())[: threshold - 1])
    with pytest.raises(ProtocolError, match="fewer"):
        shamir.reconstruct(fewer, threshold)


def test_fewer_shares_say_nothing() -> None:
    """With one share missing, every secret is as likely: each fits some last share."""
    shares = dict(enumerate(shamir.share(5, 3, 3), 1))
    seen = {shamir.reconstruct({**shares, 3: guess}, 3) for guess in range(50)}
    assert len(seen) == 50


def test_shares_on_the_wire() -> None:
    """A share is 16 bytes below the prime."""
    assert shamir.from_bytes(shamir.to_bytes(shamir.PRIME - 1)) == shamir.PRIME - 1
    for bad in (b"", bytes(15), b"\xff" * 16, shamir.to_bytes(shamir.PRIME - 1)[:-1] + b"\xff"):
        with pytest.raises(ProtocolError):
            shamir.from_bytes(bad)


@given(st.integers(1, 30), st.data())
def test_hypergeometric_tails_are_exact(population: int, data: st.DataObject) -> None:
    """The tail equals the count of subsets."""
    marked, draws = data.draw(st.integers(0, population)), data.draw(st.integers(0, population))
    k = data.draw(st.integers(-1, population + 1))
    ways = sum(
        math.comb(marked, i) * math.comb(population - marked, draws - i)
        for i in range(max(k, 0), min(marked, draws) + 1)
        if draws - i >= 0
    )
    exact = ways / math.comb(population, draws)
    assert hypergeometric_tail(population, marked, draws, k) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("clients", [10, 100, 1000, 10_000])
def test_parameters_keep_their_targets(clients: int, split: bool) -> None:
    """The conditions hold with the chosen numbers, and with no fewer neighbours."""
    p = choose_parameters(clients, split_view_safe=split)
    bad, gone = math.ceil(clients / 5), math.ceil(clients / 10)

    def holds(k: int, t: int) -> bool:
        most = 2 * t - k if split else t
        if most <= 0:
            return False
        others = max(clients - 1 - gone, bad)
        corrupt = clients * hypergeometric_tail(others, bad, min(k, others), most)
        cut = disconnection(clients, k, bad + gone) if k < clients - 1 else 0.0
        lost = clients * hypergeometric_tail(clients - 1, gone, k, k - t + 1)
        return corrupt + cut <= 2.0**-40 and lost <= 2.0**-20

    assert holds(p.neighbours, p.threshold)
    fewer = range(2, p.neighbours - 1, 2) if clients <= 100 else [p.neighbours - 2]
    assert not any(holds(k, t) for k in fewer for t in range(1, k + 1))


def test_connectivity_is_what_it_says() -> None:
    """On small circles, no removal cuts the others in two more often than the bound says."""
    n, k, removed = 9, 4, 4
    cut = 0
    for gone in itertools.combinations(range(n), removed):
        left = [i for i in range(n) if i not in gone]
        reached, todo = {left[0]}, [left[0]]
        while todo:
            own = todo.pop()
            for step in (-2, -1, 1, 2):
                other = (own + step) % n
                if other not in gone and other not in reached:
                    reached.add(other)
                    todo.append(other)
        cut += len(reached) < len(left)
    assert 0 < cut / math.comb(n, removed) <= disconnection(n, k, removed)
    assert disconnection(n, k, 3) == 0


def test_parameters_that_cannot_be() -> None:
    """Too few clients, too many neighbours, or shares that leave no threshold are refused."""
    for bad in (
        {"clients": 2},
        {"clients": 100, "corrupt": 0.5, "dropout": 0.5},
        {"clients": 5, "corrupt": 1.0},
    ):
        with pytest.raises(PlanningError):
            choose_parameters(**bad)
    for numbers in ((2, 1, 1), (10, 10, 3), (10, 4, 5), (10, 3, 2), (10, 4, 1)):
        with pytest.raises(PlanningError):
            Parameters(*numbers)
    assert choose_parameters(50, complete=True).neighbours == 49


def test_the_table_in_the_docs() -> None:
    """docs/security.md has the parameters that are chosen, and what they weigh."""
    page = (Path(__file__).parents[1] / "docs/security.md").read_text(encoding="utf-8")
    for clients in (10**2, 10**3, 10**4, 10**5, 10**6):
        cells = [f"{clients:,}"]
        for split in (False, True):
            p = choose_parameters(clients, split_view_safe=split)
            traffic = masked.MaskedSession(RING, b"", p).traffic
            extra = f"{traffic.up - traffic.vector:,} / {traffic.down:,}"
            cells += [str(p.neighbours), str(p.threshold), extra]
        assert f"| {' | '.join(cells)} |" in page
