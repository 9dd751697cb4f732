"""Write wire.json, the committed test vectors. Command: python tests/vectors/make.py.

Run it only when the format changes on purpose, together with its version.
"""

import hashlib
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch import (
    IBLT,
    ROOT,
    BytesKeys,
    CountMin,
    CountSketch,
    IntKeys,
    Plan,
    Ring,
    Seeds,
    Segment,
    Server,
    Size,
    TextKeys,
    Utf8Keys,
    report,
)
from linsketch.federation.letters import Answer, Opening, Request
from linsketch.federation.terms import HelperTerms, Terms
from linsketch.keys import KeySpace
from linsketch.methods import Proven, Unsampled
from linsketch.plan import canonical
from linsketch.randomness import SimulatedRandomness, cohorts, user_ids
from linsketch.round import RoundSketch
from linsketch.securesum import MemoryLedger, helper
from linsketch.securesum.agreement import public_bytes
from linsketch.securesum.masks import mask
from linsketch.sketch.iblt import Layout

FILE = Path(__file__).with_name("wire.json")
SEED = b"linsketch test vectors"
SPACES: dict[str, tuple[KeySpace[Any], list[Any]]] = {
    "int:17": (IntKeys(17), [0, 1, 131071]),
    "int:64": (IntKeys(64), [0, 2**32, 2**64 - 1]),
    "text:3": (TextKeys(ROOT, 3), ["aaa", "the", "___"]),
    "text:21": (TextKeys(ROOT, 21), ["a" * 21, "federated-analytics.."]),
    "bytes:4": (BytesKeys(4), [b"", b"\0", b"a\0\0", b"\xff" * 4]),
    "utf8:20": (Utf8Keys(20), ["", "naïve ", "🙂", "x" * 20]),
    "utf8:100": (Utf8Keys(100), ["https://example.org/" + "y" * 80]),
}
TABLES: dict[str, tuple[str, Size, Layout, Seeds]] = {
    "compact, k=3, standard": ("utf8:20", Size(3, 3, 5), "compact", Seeds(SEED, 2, 1)),
    "compact, k=4, fuse": ("int:64", Size(4, 9, 3), "compact", Seeds(SEED)),
    "compact, k=3, fuse": ("text:21", Size(3, 7, 2), "compact", Seeds(SEED, 3, 9)),
    "paper, k=4, standard": ("text:3", Size(4, 4, 4), "paper", Seeds(SEED, 0)),
}


def plain(item: Any) -> Any:
    """Make an item fit for JSON: bytes as hex, large integers as text."""
    return item.hex() if isinstance(item, bytes) else str(item) if isinstance(item, int) else item


def histogram(items: list[Any]) -> dict[Any, int]:
    """Give each item a count."""
    return {item: 3 + 1000 * i for i, item in enumerate(items)}


def must_fail() -> dict[str, Any]:
    """Damage one message in every way that a reader has to notice."""
    ring = Ring((Segment(3, 2**5), Segment(2, 509)))
    message = ring.vector([np.array([1, 2, 31]), np.array([508, 0])]).pack(b"plan")

    def sealed(content: bytes) -> bytes:
        return content + hashlib.sha256(content).digest()[:8]

    body = int.from_bytes(message[32:-8], "little")
    head = message[:24] + (4).to_bytes(8, "little")
    too_large = (body | 0b111111111 << 15).to_bytes(5, "little")
    filling = (body | 1 << 39).to_bytes(5, "little")
    flipped = bytearray(message)
    flipped[34] ^= 4
    return {
        "segments": [[s.length, s.modulus] for s in ring.segments],
        "context": b"plan".hex(),
        "good": message.hex(),
        "bad": [
            ["empty", "", "Truncated"],
            ["truncated header", message[:20].hex(), "Truncated"],
            ["truncated body", message[:-1].hex(), "Truncated"],
            ["over-long", (message + b"\0").hex(), "Over-long"],
            ["one bit flipped", bytes(flipped).hex(), "Damaged"],
            ["other magic", (b"LSKX" + message[4:]).hex(), "Not a linsketch vector"],
            ["other version", sealed(message[:4] + b"\2" + message[5:-8]).hex(), "version 2"],
            ["other plan", ring.zeros().pack(b"plan 2").hex(), "another plan"],
            ["other ring", Ring((Segment(5, 2**5),)).zeros().pack(b"plan").hex(), "another plan"],
            ["other body size", sealed(head + message[32:36]).hex(), "The body has 4 bytes"],
            ["entry too large", sealed(message[:32] + too_large).hex(), "outside its modulus"],
            ["filling not zero", sealed(message[:32] + filling).hex(), "unused bits"],
        ],
    }


def campaign() -> dict[str, Any]:
    """Return a plan, its first task, and the reports of two simulated users."""
    plan = Plan(
        method=Proven(sampling_threshold=1.5, repetitions=2, sketch_rows=3, sketch_width=5),
        rounds=3,
        users_per_round=50,
        items_per_user=4,
        keys=Utf8Keys(20),
        budget=4000,
        seed=SEED,
        error=40,
        failure_probability=1.5e-5,
    )
    task = Server(plan).open_round()
    users, seed = ["alice", "bøb 🙂"], b"simulation"
    ids = user_ids(users, seed)
    own = {"tea": 3, "": 1, "naïve ": 2, "x" * 20: 1, "milk": 1}
    return {
        "plan": canonical(plan.to_json()).decode(),
        "plan_id": plan.plan_id,
        "task": RoundSketch.of(plan, task).context.decode(),
        "simulation_seed": seed.hex(),
        "histogram": own,
        "users": [
            {
                "user": user,
                "id": str(id_),
                "round": round_,
                "message": report(own, plan, task, SimulatedRandomness(seed, ids[i : i + 1]))
                .vector.pack(RoundSketch.of(plan, task).context)
                .hex(),
            }
            for i, (user, id_, round_) in enumerate(
                zip(users, ids.tolist(), cohorts(ids, 3, seed).tolist(), strict=True)
            )
        ],
    }


def secure_sums() -> dict[str, Any]:
    """Return masks, and a federated round as the parties with these keys would write it."""
    # Modulo the last prime more than a fifth of all integers is skipped.
    ring = Ring((Segment(9, 2**11), Segment(9, 509), Segment(40, 4755801206503243927)))
    key = bytes(range(32))
    plan = Plan(
        method=Unsampled(),
        rounds=2,
        users_per_round=9,
        items_per_user=2,
        keys=IntKeys(8),
        budget=100,
        seed=SEED,
        threshold=4,
    )
    private = [X25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2, 3)]
    terms = Terms.helper(plan, public_bytes(private[0]))
    tied = Terms.masked(plan)
    task, nonce = Server(plan).open_round(), bytes(range(16))
    own = terms.secure_sum
    assert isinstance(own, HelperTerms)
    session = own.session(terms, task, nonce)
    vector = report({7: 1, 200: 1}, plan, task).vector
    with patch.object(X25519PrivateKey, "generate", lambda: private[1]):
        sent = helper.HelperClient(session, 5, vector, MemoryLedger()).contribute()
    return {
        "mask": {
            "key": key.hex(),
            "segments": [[s.length, str(s.modulus)] for s in ring.segments],
            "body": mask(ring, key).pack_body().hex(),
        },
        "terms": canonical(terms.to_json()).decode(),
        "terms_id": terms.terms_id,
        "masked_terms": canonical(tied.to_json()).decode(),
        "opening": Opening(task, nonce, 5).to_text(terms),
        "request": Request("open", "{}", b"frame").to_bytes().hex(),
        "answer": Answer(b"frame").to_bytes().hex(),
        "refusal": Answer(refusal="naïve").to_bytes().hex(),
        "helper_tag": session.tag.hex(),
        "masked_tag": tied.secure_sum.session(tied, task, nonce).tag.hex(),
        "helper_private": private[0].private_bytes_raw().hex(),
        "ephemeral_private": private[1].private_bytes_raw().hex(),
        "histogram": {"7": 1, "200": 1},
        "contribution": sent.hex(),
    }


def vectors() -> dict[str, Any]:
    """Collect everything that docs/wire.md describes."""
    out: dict[str, Any] = {"seed": SEED.hex(), "must_fail": must_fail(), "campaign": campaign()}
    out["secure_sums"] = secure_sums()
    out["integers"] = [
        {
            "label": "iblt",
            "round": round_,
            "repetition": repetition,
            "integers": [str(each) for each in Seeds(SEED, round_, repetition).integers("iblt", 6)],
        }
        for round_, repetition in ((None, 0), (0, 0), (7, 3))
    ]
    out["keys"] = {
        name: {
            "bounds": [str(bound) for bound in space.bounds],
            "items": [plain(item) for item in items],
            "keys": [[str(limb) for limb in key] for key in space.encode(items).keys.tolist()],
        }
        for name, (space, items) in SPACES.items()
    }
    out["tables"] = {}
    for name, (space_name, size, layout, seeds) in TABLES.items():
        space, items = SPACES[space_name]
        table = IBLT(space, size, 9_999, seeds, layout)
        cells, checks = table.positions(space.encode(items).keys)
        out["tables"][name] = {
            "name": table.name,
            "keys": space_name,
            "size": [size.k, size.segments, size.segment_cells],
            "layout": layout,
            "max_count": table.max_count,
            "round": seeds.round,
            "repetition": seeds.repetition,
            "segments": [[s.length, str(s.modulus)] for s in table.ring.segments],
            "cells": cells.tolist(),
            "checks": checks.tolist(),
            "counts": list(histogram(items).values()),
            "message": table.encode(histogram(items)).pack(b"plan").hex(),
        }
    space, items = SPACES["utf8:20"]
    fresh = Seeds(SEED, 4, 1)
    for name, sketch in {
        "count sketch": CountSketch(space, 3, 7, 9_999, Seeds(SEED), fresh),
        "count-min": CountMin(space, 3, 7, 9_999, fresh),
    }.items():
        out[name] = {
            "name": sketch.name,
            "keys": "utf8:20",
            "rows": 3,
            "width": 7,
            "max_count": 9_999,
            "locations_round": sketch.locations.round,
            "locations_repetition": sketch.locations.repetition,
            "signs_round": fresh.round,
            "signs_repetition": fresh.repetition,
            "counts": list(histogram(items).values()),
            "message": sketch.encode(histogram(items)).pack(b"plan").hex(),
        }
    return out


if __name__ == "__main__":
    FILE.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
