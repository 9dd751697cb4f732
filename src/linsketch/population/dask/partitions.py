"""Rows in the partitions of a Dask data frame, read on the workers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from dask import delayed
from distributed import Client, Future
from pyarrow import parquet
from pyarrow.lib import ArrowException

from linsketch.arrays import Uint64s
from linsketch.errors import DataError
from linsketch.keys import KeySpace
from linsketch.population.dask.connection import current_client
from linsketch.population.dask.pieces import Pieces, added_up
from linsketch.population.files import Data, checked_columns, number_texts, numbered, who_has_what
from linsketch.population.simulated import Population
from linsketch.randomness import user_ids

_SUFFIXES = (".parquet", ".pq")
_SHARE = 10_000_000  # users that are compared at once: 80 MB


@dataclass(frozen=True, eq=False)
class Partitions:
    """To a cluster what `Data` is to one machine. It holds no rows: workers read them when asked.

    `keys` is the name of a key space; without it, items are texts up to the longest of them.
    """

    frame: Any  # a dask.dataframe.DataFrame
    user: str
    item: str
    count: str | None = None
    keys: str | None = None
    name: str = "The data frame"

    def __post_init__(self) -> None:
        known = list(self.frame.columns)
        wanted = checked_columns(known, self.name, self.user, self.item, self.count)
        object.__setattr__(self, "frame", self.frame[wanted])

    def population(self, rounds: int, seed: bytes) -> Pieces:
        """Split the users into rounds. Where users are split over partitions, rows move once."""
        client = current_client()
        data = self._read()
        facts: list[_Facts] = client.gather(client.map(_facts, data, pure=False))
        users = sum(each.users for each in facts)
        if not users:
            raise DataError(f"{self.name} has no rows.")
        if _any_user_split(client, data, users, seed):
            data = self._read_grouped(seed)
        keys = max((each.keys for each in facts), key=lambda keys: keys.most)
        pieces = client.map(_piece, data, keys=keys, rounds=rounds, seed=seed, pure=False)
        return Pieces(client, pieces, keys, seed)

    def item_totals(self) -> dict[Any, int]:
        """Add up the counts of each item: the truth. It reads all rows once more."""
        client = current_client()
        totals = client.map(Data.item_totals, self._read(), pure=False)
        result: dict[Any, int] = added_up(client, _sum_of_totals, totals).result()
        return result

    @property
    def _columns(self) -> dict[str, str | None]:
        return {"user": self.user, "item": self.item, "count": self.count, "keys": self.keys}

    def _read(self) -> list[Future]:
        """Return the `Data` of each partition."""
        return _computed(
            delayed(_data)(part, f"{self.name}, partition {number}", self._columns)
            for number, part in enumerate(self.frame.to_delayed(), 1)
        )

    def _read_grouped(self, seed: bytes) -> list[Future]:
        """Return the rows as `Data` again, each user's in one of them."""
        kinds = {"user": "str", "item": "str", "count": "int64", "place": "uint64"}
        if self.count is None:
            del kinds["count"]
        meta = pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in kinds.items()})
        placed = self.frame.map_partitions(_placed, self.name, self._columns, seed, meta=meta)
        parts = placed.shuffle(on="place").to_delayed()
        return _computed(delayed(_grouped)(part, self.name, self.keys) for part in parts)


def read_parquet(
    path: Path, *, user: str, item: str, count: str | None = None, keys: str | None = None
) -> Partitions:
    """Return the rows of a Parquet file, or of a folder of them, where all workers find it."""
    path = path.resolve()
    if not path.exists():
        raise DataError(f"There is no file or folder {path}.")
    files = [
        file
        for file in (sorted(path.rglob("*")) if path.is_dir() else [path])
        if file.suffix in _SUFFIXES
    ]
    if not files:
        raise DataError(f"{path}: a cluster reads a Parquet file or a folder of them (.parquet).")
    for file in files:  # here, where the file can be named
        with _arrow_errors(file):
            checked_columns(parquet.read_schema(file).names, file, user, item, count)
    with _arrow_errors(path):
        # In Arrow's own types users and items become the texts that one machine reads.
        frame = dd.read_parquet(
            path, index=False, dtype_backend="pyarrow", parquet_file_extension=_SUFFIXES
        )
    return Partitions(frame, user, item, count, keys, str(path))


@contextmanager
def _arrow_errors(where: object) -> Iterator[None]:
    """Turn what Arrow says about rows into one line."""
    try:
        yield
    except ArrowException as error:
        reason = " ".join(str(error).split())
        raise DataError(f"Cannot read {where}: {reason}.") from None


def _any_user_split(client: Client, data: Sequence[Future], users: int, seed: bytes) -> bool:
    """Tell whether a user has rows in several partitions.

    Users are compared by their ids of 8 bytes, a share of them at a time. Should two users ever
    have one id, rows move for nothing.
    """
    shares = -(-users // _SHARE)
    for share in range(shares):
        ids = client.map(_ids, data, seed=seed, share=share, shares=shares, pure=False)
        together = added_up(client, _merged, ids)
        if client.submit(_repeats, together, pure=False).result():
            return True
    return False


def _computed(parts: Iterable[Any]) -> list[Future]:
    futures: list[Future] = current_client().compute(list(parts))
    return futures


# What follows runs on the workers.


class _Facts(NamedTuple):
    keys: KeySpace[Any]
    users: int


def _facts(data: Data) -> _Facts:
    return _Facts(data.keys, len(data.users))


def _table(frame: pd.DataFrame, where: str, columns: dict[str, Any]) -> pl.DataFrame:
    with _arrow_errors(where):
        table = pa.Table.from_pandas(frame, preserve_index=False)
        table.validate(full=True)  # polars would trust that texts are UTF-8
    return who_has_what(pl.DataFrame(table).lazy(), where, **columns)


def _data(frame: pd.DataFrame, where: str, columns: dict[str, Any]) -> Data:
    return numbered(_table(frame, where, columns), where, columns["keys"])


def _placed(frame: pd.DataFrame, where: str, columns: dict[str, Any], seed: bytes) -> pd.DataFrame:
    """Return the rows, each with the id of its user: equal for equal texts, on all machines."""
    table = _table(frame, where, columns)
    users, user_of_row = number_texts(table["user"])
    ids = pl.Series("place", user_ids(users, seed)[user_of_row], pl.UInt64)
    return table.with_columns(ids).to_pandas()


def _grouped(frame: pd.DataFrame, where: str, keys: str | None) -> Data:
    return numbered(pl.from_pandas(frame), where, keys)


def _ids(data: Data, seed: bytes, share: int, shares: int) -> Uint64s:
    ids = user_ids(data.users, seed)
    return np.sort(ids[ids % np.uint64(shares) == share])


def _merged(parts: Sequence[Uint64s]) -> Uint64s:
    return np.sort(np.concatenate(parts), kind="stable")  # which is fast on sorted parts


def _repeats(ids: Uint64s) -> bool:
    return bool((ids[1:] == ids[:-1]).any())


def _piece(data: Data, keys: KeySpace[Any], rounds: int, seed: bytes) -> Population:
    return replace(data, keys=keys).population(rounds, seed)


def _sum_of_totals(parts: Sequence[dict[Any, int]]) -> dict[Any, int]:
    totals: Counter[Any] = Counter()
    for part in parts:
        totals.update(part)
    return dict(totals)
