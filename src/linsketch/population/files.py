"""Files of who-has-what: Parquet, CSV, TSV and JSON lines, plain or gzipped, read by polars."""

import gzip
import re
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from linsketch import kernels
from linsketch.errors import DataError
from linsketch.keys import BytesKeys, KeySpace, Utf8Keys, parse_keys
from linsketch.population.simulated import Population
from linsketch.randomness import user_ids

_MOST_COUNT = 10**9


@dataclass(frozen=True, eq=False)
class Data:
    """The rows of a file: distinct users and items, and the numbers of each row's."""

    keys: KeySpace[Any]
    users: list[str]
    user_of_row: NDArray[np.uint32]
    items: list[Any]
    item_of_row: NDArray[np.uint32]
    counts: NDArray[np.integer]

    def population(self, rounds: int, seed: bytes) -> Population:
        """Split the users into rounds."""
        return Population.from_rows(
            self.keys,
            self.items,
            self.item_of_row,
            user_ids(self.users, seed),
            self.user_of_row,
            self.counts,
            rounds,
            seed,
        )

    def item_totals(self) -> dict[Any, int]:
        """Add up the counts of each item: the truth, apart from users, bounds and sketches."""
        rows = pl.DataFrame({"item": self.item_of_row, "count": self.counts})
        sums = rows.group_by("item").agg(pl.col("count").sum())
        return {self.items[item]: count for item, count in sums.iter_rows()}


def read_data(
    path: Path, *, user: str, item: str, count: str | None = None, keys: str | None = None
) -> Data:
    """Read the columns of a file. Without keys, items are texts up to the longest of them.

    Whatever cannot be right is refused: missing columns, nulls, counts that are no positive
    whole numbers, texts that are no UTF-8, items that the keys cannot hold.
    """
    with _errors(path):
        rows = _scan(path)
        checked_columns(rows.collect_schema().names(), path, user, item, count)
    table = who_has_what(rows, path, user=user, item=item, count=count, keys=keys)
    if not len(table):
        raise DataError(f"{path} has no rows.")
    return numbered(table, path, keys)


def checked_columns(known: Collection[str], where: object, *wanted: str | None) -> list[str]:
    """Return the wanted columns, each once; refuse one that is not there."""
    names = list(dict.fromkeys(name for name in wanted if name is not None))
    for name in names:
        if name not in known:
            has = ", ".join(map(repr, known))
            raise DataError(f"{where} has no column {name!r}. It has: {has}.")
    return names


def who_has_what(
    rows: pl.LazyFrame,
    where: object,
    *,
    user: str,
    item: str,
    count: str | None,
    keys: str | None,
) -> pl.DataFrame:
    """Return checked columns user, item (texts; bytes in hex) and, if asked for, count.

    `where` names the rows in refusals.
    """
    with _errors(where):
        schema = rows.collect_schema()
        columns = {name: pl.nth(number) for number, name in enumerate(schema)}
        items_as = _hex if _kind(keys) == "bytes" else _text
        wanted = [_text(columns[user]).alias("user"), items_as(columns[item]).alias("item")]
        if count is not None:
            wanted.append(_number(columns[count], count, schema[count]).alias("count"))
        table = rows.select(wanted).collect()
    for name, column in {"user": user, "item": item, "count": count}.items():
        if column is not None and (nulls := table[name].null_count()):
            raise DataError(
                f"{where}: column {column!r} has {nulls:,} empty values. Leave such rows out; in "
                'CSV an empty text is written "".'
            )
    if count is not None:
        table = table.with_columns(_checked_counts(where, count, table["count"]))
    return table


def numbered(table: pl.DataFrame, where: object, keys: str | None) -> Data:
    """Give users and items of `who_has_what` numbers; refuse items that the keys cannot hold."""
    counts: NDArray[np.integer] = np.ones(len(table), np.int8)
    if "count" in table.columns:
        counts = table["count"].to_numpy()
    users, user_of_row = number_texts(table["user"])
    items, item_of_row = number_texts(table["item"])
    space, things = _items(where, items, keys)
    numbers = {thing: number for number, thing in enumerate(dict.fromkeys(things))}
    if len(numbers) < len(things):  # 7 and 07 are one integer
        item_of_row = np.array([numbers[thing] for thing in things], np.uint32)[item_of_row]
    return Data(space, users, user_of_row, list(numbers), item_of_row, counts)


def _scan(path: Path) -> pl.LazyFrame:
    if not path.is_file():
        raise DataError(f"There is no file {path}.")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = suffixes[-1:] == [".gz"]
    kind = "".join(suffixes[-2:-1] if zipped else suffixes[-1:])
    if kind in (".csv", ".tsv"):  # every column as text, so that 007 stays what it is
        separator = "," if kind == ".csv" else "\t"
        return pl.scan_csv(path, separator=separator, infer_schema=False, glob=False)
    if kind in (".jsonl", ".ndjson"):
        pattern = any(sign in str(path) for sign in "*?[")  # which polars would follow
        return pl.scan_ndjson(path.read_bytes() if pattern else path, infer_schema_length=None)
    if kind in (".parquet", ".pq"):
        source = gzip.decompress(path.read_bytes()) if zipped else path
        return pl.scan_parquet(source, glob=False)
    raise DataError(
        f"{path.name}: what is it? Parquet (.parquet), CSV (.csv), TSV (.tsv) and JSON lines "
        "(.jsonl) are read, with .gz too."
    )


@contextmanager
def _errors(where: object) -> Iterator[None]:
    """Turn what polars says about a file into one line."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError, EOFError, zlib.error) as error:
        reason = " ".join(str(error).split("\n\n")[0].split())
        raise DataError(f"Cannot read {where}: {reason}.") from None


def _text(column: pl.Expr) -> pl.Expr:
    return column.cast(pl.String)


def _hex(column: pl.Expr) -> pl.Expr:
    return column.cast(pl.Binary).bin.encode("hex")


def _number(column: pl.Expr, name: str, kind: pl.DataType) -> pl.Expr:
    """Return counts as integers; numbers that may be fractions stay, to be looked at."""
    if kind.is_integer():
        return column.cast(pl.Int64)
    if kind.is_float() or kind.is_decimal() or kind == pl.String:
        return column.cast(pl.Float64)
    raise DataError(f"Column {name!r} holds {kind}, not counts.")


def number_texts(column: pl.Series) -> tuple[list[str], NDArray[np.uint32]]:
    """Return the distinct texts of a column and each row's number among them.

    Equal texts are found by polars' hashes, which nothing else rests on: should two texts ever
    share one, another seed tells them apart.
    """
    numbers, first_rows = np.empty(len(column), np.uint32), np.empty(len(column), np.int64)
    texts, seed = column[:0], 0
    while len(column) and not (len(texts) and (texts.gather(numbers) == column).all()):
        known = kernels.rows.number(column.hash(seed).to_numpy(), numbers, first_rows)
        texts, seed = column.gather(first_rows[:known]), seed + 1
    return texts.to_list(), numbers


def _checked_counts(where: object, column: str, given: pl.Series) -> pl.Series:
    counts = given.to_numpy()
    bad = (counts < 1) | (counts > _MOST_COUNT) | (counts != np.floor(counts))
    if bad.any():
        raise DataError(
            f"{where}: column {column!r} has {counts[bad][0]} in row {int(np.argmax(bad)) + 1:,}; "
            f"counts are whole numbers from 1 to {_MOST_COUNT:,}."
        )
    return given.cast(pl.Int64)


def _kind(keys: str | None) -> str:
    return (keys or "utf8").partition(":")[0]


def _items(where: object, texts: list[str], keys: str | None) -> tuple[KeySpace[Any], list[Any]]:
    """Return the key space and the items as it knows them."""
    if keys is None:
        longest = max((len(text.encode()) for text in texts), default=0)
        if longest > 1024:
            raise DataError(f"{where}: an item has {longest:,} bytes; keys hold up to 1,024.")
        return Utf8Keys(max(longest, 1)), texts
    space, kind = parse_keys(keys), _kind(keys)
    if isinstance(space, Utf8Keys | BytesKeys):
        things = (
            [text.encode() for text in texts] if kind == "utf8" else list(map(bytes.fromhex, texts))
        )
        longest = max(map(len, things), default=0)
        if longest > space.max_bytes:
            raise DataError(
                f"{where}: an item has {longest:,} bytes; --keys {keys} holds {space.max_bytes}. "
                f"Take --keys {kind}:{longest}, or leave such items out."
            )
        return space, things if kind == "bytes" else texts
    if kind == "int":
        wrong = next((text for text in texts if not re.fullmatch("-?[0-9]{1,400}", text)), None)
        if wrong is not None:
            raise DataError(
                f"{where}: the item {wrong[:40]!r} is no integer, as --keys {keys} asks for."
            )
        return space, [int(text) for text in texts]
    return space, texts
