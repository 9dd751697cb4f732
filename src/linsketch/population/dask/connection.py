"""A cluster at an address, and what can go wrong with it, in one line."""

from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager

from distributed import Client, KilledWorker, get_client
from distributed.comm import CommClosedError

import linsketch
from linsketch.errors import ClusterError

_SECONDS = 10  # for a scheduler to answer, and for a first worker


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Make the cluster at an address the current one."""
    try:
        client = Client(address, timeout=_SECONDS)
    except (OSError, RuntimeError, ValueError) as error:
        raise ClusterError(
            f"No Dask scheduler answers at {address!r} (one is like tcp://127.0.0.1:8786): {error}."
        ) from None
    with client:
        _check_workers(client)
        try:
            yield
        except KilledWorker as error:
            raise ClusterError(
                f"The cluster gave up. {error} Closed rounds are kept: see to the workers' "
                "memory, then run the same command again."
            ) from None
        except (CancelledError, CommClosedError):
            raise ClusterError(
                f"The cluster at {address} went away. Closed rounds are kept: run the same "
                "command again."
            ) from None


def current_client() -> Client:
    """Return the client that was made last."""
    try:
        return get_client()
    except ValueError:
        raise ClusterError(
            "There is no cluster: make a client first, distributed.Client(address)."
        ) from None


def _check_workers(client: Client) -> None:
    try:
        client.wait_for_workers(1, timeout=_SECONDS)
    except TimeoutError:
        raise ClusterError("The cluster has no workers: start some with `dask worker`.") from None
    workers = client.get_versions(packages=["linsketch"])["workers"].values()
    others = {worker["packages"]["linsketch"] for worker in workers} - {linsketch.__version__}
    if others:
        raise ClusterError(
            f"Workers have linsketch {', '.join(map(str, others))}, this machine has "
            f"{linsketch.__version__}. Install the same everywhere: pip install '.[dask]' in a "
            "clone."
        )
