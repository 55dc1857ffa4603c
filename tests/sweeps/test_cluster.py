"""A sweep on a cluster of this computer: the same table, also where a worker dies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import tilesim as ts
from reports.sweeps.table import SweepTable
from tests.sweeps.cluster import cluster
from tilesim.sweeps.cluster import figures, worker_names
from tilesim.sweeps.work import LOST, ended

CALL: dict[str, Any] = {
    "target": "mt7004",
    "shape": "n=1,cin=32,h=14,w=14,cout=32,kh=3,kw=3,pad=1",
    "grads": ("dx",),
}
VARY: dict[str, Any] = {"cores": [1, 2, 4, 5], "dtype": ["fp16", "fp32"]}


def without_seconds(table: SweepTable) -> list[Mapping[str, Any]]:
    """The rows, but for what depends on this computer."""
    return [{n: v for n, v in row.items() if n != "seconds"} for row in table.rows]


def check(folder: Path, vary: dict[str, Any], after: int) -> SweepTable:
    """Run a sweep on two workers, kill one when so many points are done, and compare with a sweep in this process."""
    path, told = folder / "a.parquet", list[str]()
    with cluster(folder, 2) as machines:

        def kill(done: int, *_: object) -> None:
            if done == after:
                machines.workers[0].kill()
                machines.workers[0].wait()

        table = ts.sweep(
            "conv_backward",
            **CALL,
            vary=vary,
            out=path,
            scheduler=machines.address,
            on_row=kill,
            on_notice=told.append,
        )
    here = ts.sweep("conv_backward", **CALL, vary=vary)
    assert without_seconds(table) == without_seconds(here)
    assert SweepTable.read(path).rows == table.rows
    assert len(told) == 1
    assert told[0].startswith("the worker tcp://127.0.0.1:")
    return table


class RunAgain:
    """A future that was done until its worker died with the result: it runs again on another."""

    status = "pending"

    def __init__(self, *errors: Exception) -> None:
        """What running again raises, if anything."""
        self.errors = errors

    def result(self) -> dict[str, object]:
        """The second worker's."""
        for error in self.errors:
            raise error
        return {"cycles": 7}


def test_a_result_that_was_lost_after_it_was_done_is_waited_for() -> None:
    """It is no lost point, unless nobody finishes it."""
    assert figures(RunAgain()) == {"cycles": 7}
    assert figures(RunAgain(RuntimeError("killed"))) == {
        **ended(LOST, "no worker finished it: RuntimeError: killed"),
        "seconds": 0.0,
    }


class Forgetful:
    """A client that has just dropped its list of workers, of a scheduler that has two."""

    scheduler: Any

    def __init__(self) -> None:
        """Its own scheduler."""
        self.scheduler = self

    def identity(self) -> dict[str, object]:
        """What the scheduler answers."""
        return {"workers": {"tcp://one:1": {}, "tcp://two:2": {}}}

    def scheduler_info(self, **_: object) -> dict[str, object]:
        """What the client keeps."""
        return {"workers": {}}

    def sync(self, ask: Any, **asked: object) -> object:
        """Wait for an answer."""
        return ask(**asked)


def test_workers_that_a_client_has_forgotten_are_not_gone() -> None:
    """The scheduler knows."""
    client: Any = Forgetful()
    assert worker_names(client) == {"tcp://one:1", "tcp://two:2"}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_worker_of_a_cluster_is_killed(tmp_path: Path) -> None:
    """80 points, one of two workers killed after the twentieth: none lost, none twice."""
    ddr = {"link.ddr.gigabytes_per_second": "12.8:102.4:10"}
    table = check(tmp_path, VARY | ddr, 20)
    assert len(table) == len({row["key"] for row in table.rows}) == 80


def test_a_cluster_gives_the_same_table(tmp_path: Path) -> None:
    """A worker, values that are refused among the points; then no worker, which is refused."""
    with cluster(tmp_path, 1) as machines:
        table = ts.sweep("conv_backward", **CALL, vary=VARY, scheduler=machines.address)
    assert without_seconds(table) == without_seconds(ts.sweep("conv_backward", **CALL, vary=VARY))
