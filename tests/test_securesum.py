"""Secure sums: ledgers, keys, and whole protocols in one process."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch.errors import ProtocolError, RefusalError, RoundFailed
from linsketch.records.ledger import FileLedger
from linsketch.securesum import (
    ClearSum,
    Contribution,
    HelperSum,
    MaskedSum,
    MemoryLedger,
)
from linsketch.securesum.agreement import agree
from tests.sums import RING, vectors


def test_ledgers(tmp_path: Path) -> None:
    """Notes are all or nothing, and survive; a file that is no ledger is refused."""
    for ledger in (MemoryLedger(), FileLedger(tmp_path / "a")):
        ledger.note(b"1", b"2")
        for entries in ((b"2",), (b"3", b"1"), (b"4", b"4")):
            with pytest.raises(RefusalError):
                ledger.note(*entries)
        ledger.note(b"3", b"4")
    with pytest.raises(RefusalError):
        FileLedger(tmp_path / "a").note(b"4")
    (tmp_path / "text").write_text("hello " * 99)
    with pytest.raises(Exception, match="ledger"):
        FileLedger(tmp_path / "text")


def test_points_of_small_order_are_refused() -> None:
    """A public key that would make the shared secret known to all is no key."""
    with pytest.raises(ProtocolError, match="public key"):
        agree(X25519PrivateKey.generate(), bytes(32), b"x", b"")


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("kind", [MaskedSum, HelperSum])
def test_local_sums(kind: type[MaskedSum] | type[HelperSum], dropout: float) -> None:
    """Both protocols give the clear sum of those who stay, and say what they weigh."""
    given = [Contribution(vector) for vector in vectors(60)]
    clear = ClearSum()(RING, given, b"")
    secure = kind(dropout, b"seed")
    result = secure(RING, given, b"round")
    if dropout:
        assert result.users < 60
        assert secure(RING, given, b"other").users != 0
    else:
        assert result == Contribution(result.vector, 60)
        assert result.vector == clear.vector
    assert secure.up_bytes > secure.vector_bytes == RING.wire_bytes
    with pytest.raises(ProtocolError, match="one vector a user"):
        secure(RING, [Contribution(RING.zeros(), 5)] * 5, b"")
    with pytest.raises(RoundFailed):
        secure(RING, given[:2], b"few")
