"""Secure sums, one thread: clients, server, masks, bytes.

python bench/securesum.py               about 5 minutes; writes docs/benchmarks-securesum.md
"""

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from linsketch import Ring, RingVector, Segment
from linsketch.rings import largest_prime
from linsketch.securesum import MemoryLedger, choose_parameters, helper, masked
from linsketch.securesum.masks import add_mask

PAGE = Path(__file__).parents[1] / "docs/benchmarks-securesum.md"
CELLS = 5000 * 16 // (14 + 9 + 17)
RING = Ring((Segment(CELLS, 2**14), Segment(CELLS, 509), Segment(CELLS, largest_prime(17))))


def best(function: Callable[[], object], runs: int = 5, repeat: int = 20) -> float:
    """Return the best time of a call."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        for _ in range(repeat):
            function()
        times.append((time.perf_counter() - start) / repeat)
    return min(times)


def random_vector(ring: Ring, seed: int) -> RingVector:
    """Return a vector with entries all over the ring."""
    rng = np.random.default_rng(seed)
    return ring.vector(rng.integers(0, s.modulus, s.length) for s in ring.segments)


def masked_round(clients: int, dropout: float) -> tuple[float, float, masked.MaskedSession]:
    """Run a round; return the seconds of a client, of the server, and the session.

    Clients live one after the other, as they would on machines of their own: what they send is
    kept, and the time is theirs alone. They drop out before they send their vector.
    """
    session = masked.MaskedSession(RING, b"bench", choose_parameters(clients))
    vector = random_vector(RING, 1)
    parties = [masked.MaskedClient(session, i, vector, MemoryLedger()) for i in range(clients)]
    server = masked.MaskedServer(session, range(clients))
    gone = set(np.random.default_rng(2).permutation(clients)[: int(dropout * clients)].tolist())
    client_time = server_time = 0.0
    answers: dict[int, bytes] = {}
    start = time.perf_counter()
    answers = {party.number: party.start() for party in parties}
    client_time += time.perf_counter() - start
    for stage in range(4):
        start = time.perf_counter()
        for number, answer in answers.items():
            if stage < 2 or number not in gone:
                server.receive(number, answer)
        messages = server.advance()
        server_time += time.perf_counter() - start
        start = time.perf_counter()
        answers = {number: parties[number].receive(m) for number, m in messages.items()}
        client_time += time.perf_counter() - start
    assert server.result is not None
    assert server.result.users == clients - len(gone)
    expected = RING.vector(
        (array * np.uint64(clients - len(gone))) % np.uint64(s.modulus)
        for array, s in zip(vector.arrays, RING.segments, strict=True)
    )
    assert server.result.vector == expected
    return client_time / clients, server_time, session


def masked_table() -> list[str]:
    """Time rounds of several sizes, each in a process of its own, for its memory."""
    lines = [
        "| clients | neighbours, threshold | a client | server | peak memory, all in one process | "
        "bytes up | times the vector | bytes down |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for clients in (100, 1_000, 10_000):
        command = [sys.executable, __file__, str(clients)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  # ours
        lines.append(done.stdout.strip())
        print(lines[-1], flush=True)
    return lines


def one_line(clients: int) -> str:
    """Return a round's line of the table."""
    client, server, session = masked_round(clients, 0.1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    p, t = session.parameters, session.traffic
    return (
        f"| {clients:,} | {p.neighbours}, {p.threshold} | **{1e3 * client:.1f} ms** | "
        f"**{server:.2f} s** | {memory:.2f} GiB | {t.up:,} | {t.up / t.vector:.2f} | {t.down:,} |"
    )


def mask_table() -> list[str]:
    """Compare the expansion of masks with AES-CTR on a buffer of as many 64-bit words."""
    lines = [
        "| entries | modulus | AES-CTR | mask | ratio | target |",
        "|---:|---|---:|---:|---:|---:|",
    ]
    for length in (5_000, 100_000, 1_000_000):
        zeros, out = bytes(8 * length), bytearray(8 * length + 15)

        def raw(zeros: bytes = zeros, out: bytearray = out) -> None:
            Cipher(algorithms.AES(b"k" * 32), modes.CTR(bytes(16))).encryptor().update_into(
                zeros, out
            )

        reference = best(raw)
        for name, q, target in (
            ("2^14", 2**14, 0.5),
            ("509", 509, 0.25),
            ("2^17 − 1", largest_prime(17), 0.25),
            ("2^61 − 1", largest_prime(61), 0.25),
        ):
            total = Ring((Segment(length, q),)).zeros()
            taken = best(lambda total=total: add_mask(total, b"k" * 32))  # type: ignore[misc]
            lines.append(
                f"| {length:,} | {name} | {1e6 * reference:,.0f} µs | {1e6 * taken:,.0f} µs | "
                f"**{reference / taken:.2f}** | {target} |"
            )
    return lines


def helper_lines(clients: int = 10_000) -> list[str]:
    """Time the two-server sum beside the bare expansion of as many masks."""
    party = helper.Helper(X25519PrivateKey.generate(), MemoryLedger())
    session = helper.HelperSession(RING, b"bench", party.public_key)
    vector = random_vector(RING, 1)
    start = time.perf_counter()
    messages = [
        helper.HelperClient(session, i, vector, MemoryLedger()).contribute() for i in range(clients)
    ]
    a_client = (time.perf_counter() - start) / clients
    server = helper.HelperServer(session, range(clients))
    start = time.perf_counter()
    for number, message in enumerate(messages):
        server.receive(number, message)
    request = server.request()
    serving = time.perf_counter() - start
    start = time.perf_counter()
    reply = party.answer(session, request)
    helping = time.perf_counter() - start
    start = time.perf_counter()
    server.finish(reply)
    serving += time.perf_counter() - start
    total = RING.zeros()
    start = time.perf_counter()
    for number in range(clients):
        add_mask(total, number.to_bytes(32, "little"))
    bare = time.perf_counter() - start
    ephemeral = X25519PrivateKey.generate()
    start = time.perf_counter()
    for number in range(clients):
        key, _ = session.keys(ephemeral, session.helper_key, number, session.helper_key)
        add_mask(total, key)
    agreed = time.perf_counter() - start
    both = serving + helping
    return [
        "| | seconds |",
        "|---|---:|",
        f"| server, {clients:,} clients | {serving:.2f} |",
        f"| helper | {helping:.2f} |",
        f"| generating the masks once, from agreed keys | {agreed:.2f} |",
        f"| expanding the masks alone, from given keys | {bare:.2f} |",
        "",
        f"Server and helper together take **{both / agreed:.2f}** times the time of generating the",
        f"masks once with their key agreements (target: at most 3), {both / bare:.2f} times that "
        "of expanding",
        f"them from keys that are there already. A client takes {1e3 * a_client:.2f} ms and sends "
        f"{session.client_bytes - RING.wire_bytes}",
        "bytes beside its vector.",
    ]


def against_2017() -> list[str]:
    """Compare bytes with the figure that Bonawitz et al. (2017) give.

    It is for 2**20 inputs of 16 bits, whose sum over 2**10 clients takes 26 bits an entry.
    """
    ring, plain = Ring((Segment(2**20, 2**26),)), 2 * 2**20
    lines = [
        "| clients | graph | bytes up | times the plain inputs | times the ring's vector | down |",
        "|---:|---|---:|---:|---:|---:|",
    ]
    for complete in (True, False):
        p = choose_parameters(2**10, complete=complete)
        t = masked.MaskedSession(ring, b"", p).traffic
        name = "complete" if complete else f"{p.neighbours} neighbours"
        lines.append(
            f"| 1,024 | {name} | {t.up:,} | {t.up / plain:.3f} | {t.up / t.vector:.3f} | "
            f"{t.down:,} |"
        )
    return lines


def main() -> None:
    """Measure and write the page."""
    if len(sys.argv) > 1:
        print(one_line(int(sys.argv[1])))
        return
    masked_round(100, 0.1)  # compiled by now
    text = [
        "# Secure sums, measured",
        "",
        "Written by `python bench/securesum.py` (part of `make bench`), one thread.",
        "",
        "## masked",
        "",
        f"A vector of 5,000 words ({RING.wire_bytes:,} bytes: {CELLS:,} cells of 14, 9, 17 bits);",
        "10% of the clients drop out after key sharing; parameters for 20% corrupt clients, 40",
        "bits of security and 20 of correctness. Targets at 1,000 clients: a client at most 30 ms,",
        "the server 3 s.",
        "",
        *masked_table(),
        "",
        "Bytes for 2^20 inputs of 16 bits, where Bonawitz et al. (2017) report 1.73 times the",
        "plain inputs; 26 bits an entry, which the sum takes, are 1.625 times by themselves:",
        "",
        *against_2017(),
        "",
        "## Masks",
        "",
        *mask_table(),
        "",
        "## helper",
        "",
        *helper_lines(),
        "",
    ]
    PAGE.write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
