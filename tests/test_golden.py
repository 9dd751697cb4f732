"""The same bytes, tasks and lists as before the code was rebuilt."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden.cases import FILE, HEAVY, HISTOGRAMS, cases

GOLDEN: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))


def same(found: Any, expected: Any, where: str) -> None:
    """Compare values of JSON; fractions to nine digits."""
    if isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9), where
    elif isinstance(expected, dict):
        assert list(found) == list(expected), where
        for name, value in expected.items():
            same(found[name], value, f"{where}, {name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for place, value in enumerate(expected):
            same(found[place], value, f"{where}, {place}")
    else:
        assert found == expected, where


@pytest.mark.parametrize("name", list(GOLDEN))
def test_same_as_ever(name: str, tmp_path: Path) -> None:
    """Sums, tasks, lists and estimates are those of version 0.1.0."""
    same(json.loads(json.dumps(cases(tmp_path)[name]())), GOLDEN[name], name)


def test_every_case_is_recorded(tmp_path: Path) -> None:
    """No case was dropped from the file, and none was added to the code alone."""
    assert list(cases(tmp_path)) == list(GOLDEN)
    assert len(GOLDEN) == 3 * len(HEAVY) - 1 + 2 * len(HISTOGRAMS) + 14


def test_ways_of_summing_agree() -> None:
    """In the file itself: clear, masked, helper, and stopped after each round are the same."""
    for method in ("slots", "adaptive"):
        clear, *others = (GOLDEN[f"{method}: {way}"] for way in ("clear", "masked", "helper"))
        assert others == [clear, clear]
    for name in (*HEAVY, "drift"):
        if name != "count-median":
            assert GOLDEN[f"{name}: interrupted"] == GOLDEN[name]
