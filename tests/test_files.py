"""Files of who-has-what: the same data in every format, and clear refusals."""

import gzip
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from linsketch.errors import DataError, LinsketchError
from linsketch.population.files import Data, read_data

ROWS = pl.DataFrame(
    {
        "who": ["7", "007", "x y", "7", "7", "ünï"],
        "what": ["tea", "", "naïve 🙂", "milk", "tea", "007"],
        "times": [1, 2, 3, 4, 5, 6],
    }
)


def read(path: Path, keys: str | None = None) -> Data:
    """Read the columns of ROWS."""
    return read_data(path, user="who", item="what", count="times", keys=keys)


def zipped(path: Path) -> Path:
    """Return a gzipped copy."""
    copy = path.with_name(path.name + ".gz")
    copy.write_bytes(gzip.compress(path.read_bytes()))
    return copy


WRITERS: dict[str, Callable[[Path], Any]] = {
    "a.parquet": ROWS.write_parquet,
    "a.csv": lambda path: ROWS.write_csv(path, quote_style="always"),
    "a.tsv": lambda path: ROWS.write_csv(path, separator="\t", quote_style="always"),
    "a.jsonl": ROWS.write_ndjson,
}


@pytest.mark.parametrize("name", WRITERS)
def test_formats_agree(name: str, tmp_path: Path) -> None:
    """Every format, zipped too, gives the same population, whatever the order of rows."""
    path = tmp_path / name
    WRITERS[name](path)
    shuffled = tmp_path / "reference.parquet"
    ROWS.reverse().write_parquet(shuffled)
    reference = read(shuffled).population(2, b"s").fingerprint
    for file in (path, zipped(path)):
        data = read(file)
        assert data.item_totals() == {"tea": 6, "": 2, "naïve 🙂": 3, "milk": 4, "007": 6}
        assert data.keys.name == "utf8:11"
        assert sorted(data.users) == ["007", "7", "x y", "ünï"]
        assert data.population(2, b"s").fingerprint == reference


def test_items_of_other_kinds(tmp_path: Path) -> None:
    """Integers and bytes are read as what the keys say."""
    path = tmp_path / "a.parquet"
    pl.DataFrame({"who": [1, 2, 2], "what": [5, 2**40, 5]}).write_parquet(path)
    data = read_data(path, user="who", item="what", keys="int:41")
    assert data.item_totals() == {5: 2, 2**40: 1}
    pl.DataFrame({"who": [1, 2], "what": [b"\xff\x00", b""]}).write_parquet(path)
    data = read_data(path, user="who", item="what", keys="bytes:2")
    assert data.item_totals() == {b"\xff\x00": 1, b"": 1}
    pl.DataFrame({"who": ["a"], "what": ["the"]}).write_parquet(path)
    assert read_data(path, user="who", item="what", keys="text:3").items == ["the"]


def test_names_are_no_patterns(tmp_path: Path) -> None:
    """A file is read by its name, also where that looks like a pattern; columns too."""
    for name, item in (("a[1]", "right"), ("a1", "wrong")):
        rows = pl.DataFrame({"*": ["u", "v"], "^what$": [item, item]})
        rows.write_csv(tmp_path / f"{name}.csv")
        rows.write_ndjson(tmp_path / f"{name}.jsonl")
        rows.write_parquet(tmp_path / f"{name}.parquet")
    for kind in ("csv", "jsonl", "parquet"):
        data = read_data(tmp_path / f"a[1].{kind}", user="*", item="^what$")
        assert data.items == ["right"]
        assert len(data.users) == 2


def test_one_integer_in_two_ways(tmp_path: Path) -> None:
    """7 and 07 are one integer; its counts are added up."""
    path = write(tmp_path / "a.csv", b"who,what,times\n1,7,1\n1,07,2\n2,8,4\n")
    data = read(path, "int:8")
    assert data.item_totals() == {7: 3, 8: 4}
    assert len(data.population(1, b"s").counts) == 2


def test_kinds_of_counts(tmp_path: Path) -> None:
    """Whole floats and decimals count; fractions and other things do not."""
    path = tmp_path / "a.parquet"
    good: list[Any] = [[2.0, 3.0], [Decimal("2.00"), Decimal("3.00")], [2, 3]]
    for times in good:
        pl.DataFrame({"who": ["a", "b"], "what": ["x", "x"], "times": times}).write_parquet(path)
        assert read(path).item_totals() == {"x": 5}
    bad: list[Any] = [
        [2.0, 2.5],
        [Decimal("2.50"), Decimal("3.00")],
        [True, False],
        [1.0, math.nan],
    ]
    for times in bad:
        pl.DataFrame({"who": ["a", "b"], "what": ["x", "x"], "times": times}).write_parquet(path)
        with pytest.raises(DataError):
            read(path)


def write(path: Path, text: bytes) -> Path:
    """Write bytes and return the path."""
    path.write_bytes(text)
    return path


BAD: dict[str, tuple[bytes, str]] = {
    "empty.csv": (b"", "empty"),
    "header.csv": (b"who,what,times\n", "no rows"),
    "column.csv": (b"who,what\n1,a\n", "no column 'times'"),
    "null.csv": (b"who,what,times\n1,,2\n", "empty values"),
    "user.csv": (b"who,what,times\n,a,2\n", "empty values"),
    "utf8.csv": (b"who,what,times\n1,\xff\xfe,2\n", "utf-8"),
    "negative.csv": (b"who,what,times\n1,a,-2\n", "whole numbers"),
    "zero.csv": (b"who,what,times\n1,a,1\n1,b,0\n", "row 2"),
    "fraction.csv": (b"who,what,times\n1,a,2.5\n", "2.5"),
    "huge.csv": (b"who,what,times\n1,a,99999999999999\n", "1,000,000,000"),
    "fraction.jsonl": (b'{"who":1,"what":"a","times":2.5}\n', "2.5"),
    "broken.jsonl": (b'{"who":1,"what":', "Cannot read"),
    "not.parquet": (b"hello", "Cannot read"),
    "cut.parquet.gz": (gzip.compress(b"x" * 500)[:20], "Cannot read"),
    "cut.csv.gz": (gzip.compress(b"who,what,times\n1,a,2\n")[:20], "Cannot read"),
    "data.xlsx": (b"", "Parquet"),
    "long.csv": (b"who,what,times\n1," + b"x" * 1025 + b",2\n", "1,024"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str, tmp_path: Path) -> None:
    """What cannot be right is refused in one line that says what is wrong."""
    text, says = BAD[name]
    with pytest.raises(DataError, match=says) as refusal:
        read(write(tmp_path / name, text))
    assert "\n" not in str(refusal.value)


def test_items_that_the_keys_cannot_hold(tmp_path: Path) -> None:
    """Items too long, of another alphabet or no integers are refused by name."""
    path = tmp_path / "a.parquet"
    ROWS.write_parquet(path)
    for keys, says in (
        ("utf8:3", "Take --keys utf8:11"),
        ("text:3", "characters"),
        ("int:8", "no integer"),
        ("word:3", "Keys are"),
        ("bytes:2", "bytes"),
    ):
        with pytest.raises(LinsketchError, match=says):
            read(path, keys).population(1, b"s")
    with pytest.raises(DataError, match="no file"):
        read(tmp_path / "none.csv")
    with pytest.raises(DataError, match="no file"):
        read(tmp_path)
