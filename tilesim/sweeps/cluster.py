"""Points on a dask.distributed cluster. Its workers need tilesim; targets and points are sent to them as plain data.

The scheduler runs the points of a worker that dies on another one, and gives up one that killed several. A
result is given back to the cluster as soon as it is here, so that the death of a worker that had it does not
run its point again.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tilesim.sweeps.errors import SweepError
from tilesim.sweeps.events import Event, Job, Notice
from tilesim.sweeps.work import LOST, ended, outcome
from tilesim.workers.pool import Done, Ready

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 10
"""How long a scheduler may take to answer, and to have its first worker."""


def run_on_cluster(jobs: Sequence[Job], address: str) -> Iterator[Event]:
    """Run points on the workers of the scheduler at an address such as `tcp://host:8786`.

    Raises:
        SweepError: distributed is not installed, nobody answers, or there is no worker that has tilesim.
    """
    with _connected(address) as client:
        _check_workers(client, address)
        yield from _run(client, jobs)


def _run(client: Client, jobs: Sequence[Job]) -> Iterator[Event]:
    from distributed import as_completed  # noqa: PLC0415 - an extra

    numbers: dict[object, int] = {}
    waiting = as_completed(loop=client.loop)  # type: ignore[no-untyped-call]
    workers = worker_names(client)
    for job in jobs:
        task = job.task()
        if isinstance(task, Ready):
            yield Done(job.number, task.result)
            continue
        future = client.submit(outcome, task, pure=False)
        numbers[future.key] = job.number
        waiting.add(future)  # type: ignore[no-untyped-call]
        del future  # only `waiting` holds it, and only until it is done
    for future in waiting:
        number = numbers[future.key]
        yield Done(number, figures(future))
        future.release()
        now = worker_names(client)
        yield from (Notice(f"the worker {name} is gone") for name in sorted(workers - now))
        workers = now


def figures(future: Any) -> dict[str, Any]:
    """The result of a future that was done; if its worker died with it since, of the one that runs it again.

    Its status is not asked for: that may change at any time.
    """
    try:
        found: dict[str, Any] = future.result()
    except Exception as error:
        text = f"no worker finished it: {type(error).__name__}: {error}"
        return ended(LOST, " ".join(text.split())) | {"seconds": 0.0}
    return found


def worker_names(client: Client) -> set[str]:
    """The addresses of the scheduler's workers.

    The scheduler is asked: what the client keeps (`scheduler_info`) is at times a list without workers.
    """
    known: dict[str, Any] = client.sync(client.scheduler.identity)  # type: ignore[union-attr, no-untyped-call]
    return set(known["workers"])


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Client]:
    try:
        from distributed import Client  # noqa: PLC0415 - an extra, and it takes a second to load
    except ImportError as error:
        remedy = "pip install 'tilesim[cluster]' (from a checkout: pip install -e '.[cluster]')"
        raise SweepError("distributed is missing", where="--scheduler", remedy=remedy) from error
    with _quiet():
        try:
            _knock(address)
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, ValueError, TypeError) as error:
            remedy = "give the address that `dask scheduler` prints, such as tcp://host:8786"
            what, got = "no scheduler answers", f"{address} ({type(error).__name__})"
            raise SweepError(what, where="--scheduler", got=got, remedy=remedy) from error
        with client:
            yield client


def _knock(address: str) -> None:
    """See that somebody listens: a client that found nobody takes half a minute to give up.

    Raises:
        OSError: nobody does.
        ValueError: it is no address.
    """
    from distributed.comm.addressing import get_address_host_port, parse_address  # noqa: PLC0415

    if parse_address(address)[0] in ("tcp", "tls"):
        socket.create_connection(get_address_host_port(address, strict=True), CONNECT_SECONDS).close()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the library's own log of lost connections off stderr: what matters is told as events."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _check_workers(client: Client, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError as error:
        remedy = f"start one: dask worker {address}"
        raise SweepError(
            "the scheduler has no worker", where="--scheduler", got=address, remedy=remedy
        ) from error
    try:
        client.submit(ended, "ok", pure=False).result()
    except ImportError as error:
        remedy = "install it in the environment of `dask worker`"
        raise SweepError("a worker without tilesim", where="--scheduler", got=error, remedy=remedy) from error
