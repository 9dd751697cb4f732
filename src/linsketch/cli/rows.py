"""Where a campaign's rows come from: a file on this machine, or Parquet files on a cluster."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linsketch.errors import ClusterError, DataError, PlanningError
from linsketch.population.base import Rows
from linsketch.population.files import read_data


def refuse_cluster(cluster: str | None, secure: str) -> None:
    """Raise where a secure sum is asked for on a cluster."""
    if cluster is not None and secure != "clear":
        raise PlanningError(
            f"--secure {secure} takes users one by one, on this machine: leave out --cluster, or "
            "rehearse the secure sum on a smaller file."
        )


@contextmanager
def opened(
    path: Path,
    cluster: str | None,
    *,
    user: str,
    item: str,
    count: str | None,
    keys: str | None,
) -> Iterator[Rows]:
    """Read a file, or connect to a cluster that reads files while the campaign goes on."""
    if cluster is None:
        if path.is_dir():
            raise DataError(f"{path} is a folder, which a cluster reads: --cluster ADDRESS.")
        yield read_data(path, user=user, item=item, count=count, keys=keys)
        return
    try:
        from linsketch.population import dask
    except ImportError as error:
        raise ClusterError(
            f"--cluster needs Dask ({error}): pip install '.[dask]' in a clone."
        ) from None
    logging.getLogger("distributed.client").setLevel("CRITICAL")  # the error says it in a line
    with dask.connected(cluster):
        yield dask.read_parquet(path, user=user, item=item, count=count, keys=keys)
