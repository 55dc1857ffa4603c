"""`tilesim.sweep`: run an operator at many points, and return their table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape
from reports.sweeps.table import SweepTable
from simulator.results.files import make_directory
from targets.schema import Target
from tilesim.sweeps.call import SweptCall
from tilesim.sweeps.errors import SweepError
from tilesim.sweeps.events import Event, Job, Notice, run_here
from tilesim.sweeps.fields import check_call, check_fields
from tilesim.sweeps.given import listed_points, place_of, swept_shape, varied_values
from tilesim.sweeps.local import run_local
from tilesim.sweeps.points import Point, points_of
from tilesim.sweeps.store import Store
from tilesim.sweeps.values import Value
from tilesim.workers.pool import Done

Told = Callable[[int, int, Mapping[str, Any]], None]
"""Called with each row as it is done: how many are, of how many, and the row."""


def sweep(
    operator: str,
    *,
    target: str | Path | Target,
    shape: str | ConvShape | DeformShape | tuple[int, int, int] | Mapping[str, int],
    vary: Mapping[str, Value | Sequence[Value]] | None = None,
    points: str | Path | Sequence[Mapping[str, Value]] = (),
    sample: int | None = None,
    seed: int = 0,
    dtype: str | None = None,
    grads: str | Sequence[str] | None = None,
    cores: int | None = None,
    tiling: Mapping[str, object] | None = None,
    overrides: Mapping[str, object] | None = None,
    out: str | PathLike[str] | None = None,
    workers: int | None = 1,
    scheduler: str | None = None,
    on_row: Told | None = None,
    on_notice: Callable[[str], None] | None = None,
) -> SweepTable:
    """Run an operator at many points, timed only, and return their table.

    Args:
        operator: as of `tilesim run`.
        target: a target's name, a TOML file, or a Target.
        shape: a shape text or a mapping of its keys, in which `shape.KEY` can be varied, or a geometry.
        vary: values by field: `cores`, `dtype`, `shape.KEY`, `tile.KEY` or a field of the target, as a sequence
            or a text as of `--vary` ("1:16:*2"); one value alone too. All combinations are run.
        points: values by field, one mapping a point, or a CSV file of them; with `vary`, each with all
            its combinations.
        sample: take so many points of `vary` instead, a Latin hypercube (extra `sweep`).
        seed: of the sample.
        dtype: what all points compute in, as of `tilesim run`.
        grads: the gradients of all points, a name or several.
        cores: of all points.
        tiling: fields of the tiling of all points.
        overrides: fields of the target of all points.
        out: the Parquet file of the results. What it holds already is not run again; a stopped sweep goes on.
        workers: processes of this computer; 1: this one; None: one for each processor.
        scheduler: the address of a dask.distributed scheduler, whose workers run the points instead (extra
            `cluster`).
        on_row: called with each row as it is done.
        on_notice: called with what went wrong without ending the sweep.

    Raises:
        TilesimError: a field is not known, the points are none, or the file or the cluster is not to be used. A value
            that the chip, the geometry or the tiling refuses ends its point alone: see `SweepTable.failed`.
    """
    asked = (grads,) if isinstance(grads, str) else tuple(grads or ()) or None
    problem = swept_shape(operator, shape)
    call = SweptCall(operator, target, problem, dtype, asked, cores, tiling or {}, overrides or {})
    made = points_of(varied_values(vary), listed_points(points), sample, seed)
    check_call(call)
    check_fields(call, made[0])
    path = place_of(out)
    if path is not None:
        make_directory(path.parent)
    with Store(call, made, path) as store:
        _fill(store, runner(workers, scheduler), on_row, on_notice)
    return store.table


Runner = Callable[[list[Job]], Iterator[Event]]


def runner(workers: int | None, scheduler: str | None) -> Runner:
    """Who runs the points.

    Raises:
        SweepError: there are to be no workers.
    """
    if workers is not None and workers < 1:
        raise SweepError("no workers", where="--workers", got=workers, limit="1 or more")
    if scheduler is not None:
        from tilesim.sweeps.cluster import run_on_cluster  # noqa: PLC0415 - loads an extra

        return lambda jobs: run_on_cluster(jobs, scheduler)
    count = workers or len(os.sched_getaffinity(0))
    if count == 1:
        return run_here
    return lambda jobs: run_local(jobs, count)


def _fill(store: Store, run: Runner, on_row: Told | None, on_notice: Callable[[str], None] | None) -> None:
    """Run what is not stored."""
    jobs = [_job(store.call, number, point) for number, point in store.todo]
    if not jobs:
        return
    events = run(jobs)
    try:
        for event in events:
            if isinstance(event, Notice):
                if on_notice:
                    on_notice(event.text)
            else:
                _keep(store, event, on_row)
    finally:
        events.close()  # type: ignore[attr-defined]  # generators: it ends the workers


def _keep(store: Store, event: Done, on_row: Told | None) -> None:
    row = store.add(event.number, event.result)
    if on_row:
        on_row(len(store.rows), len(store.points), row)


def _job(call: SweptCall, number: int, point: Point) -> Job:
    return Job(number, lambda: call.task(dict(point.values)))
