"""The work of one point: run the operator, timing only, and keep the figures. All that a worker needs."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from kernels.operators import run_operator, shape_from
from reports.links import shared_links, sizes_on_links
from simulator.results.metrics import SCALAR
from simulator.results.run import Run, plain
from targets.errors import TilesimError
from targets.schema import Target
from tilesim.sweeps.costs import costs

OK, REFUSED, FAULT, LOST = "ok", "refused", "fault", "lost"
"""How a point ended: with figures; refused by chip, geometry or tiling; by a fault of tilesim; its workers died."""

Row = dict[str, Any]
"""What is kept of a point: plain values by column."""


def outcome(task: Mapping[str, Any]) -> Row:
    """Run a task; whatever happens becomes a row: status, error text, figures, and the seconds that it took."""
    begin = time.perf_counter()
    try:
        row = ended(OK) | figures(run_task(task))
    except TilesimError as error:
        row = ended(REFUSED, str(error))
    except Exception as error:  # one point's fault is no reason to lose the others
        row = ended(FAULT, f"{type(error).__name__}: {error}")
    return row | {"seconds": time.perf_counter() - begin}


def ended(status: str, error: str | None = None) -> Row:
    """The columns that every row has."""
    return {"status": status, "error": error}


def run_task(task: Mapping[str, Any]) -> Run:
    """The run of a task.

    Raises:
        TilesimError: an argument is refused.
    """
    # Through JSON, where lists are the tuples that strict validation would ask for in Python.
    target = Target.model_validate_json(json.dumps(task["target"]))
    shape = task["shape"]
    return run_operator(
        task["operator"],
        shape=shape if isinstance(shape, str) else shape_from(shape),
        target=target,
        dtype=task["dtype"],
        grads=task["grads"],
        cores=task["cores"],
        tiling=task["tiling"],
        numerics=False,
        check=False,
    )


def figures(run: Run) -> Row:
    """The figures of a run that it has: times, rates in GFLOP/s, who bounds it, bytes by shared link, costs."""
    used = {kind: share for kind, share in run.metrics.utilisation.items() if kind != SCALAR and share}
    moved = sizes_on_links(run.trace, run.target).sum(axis=0).tolist()
    row = {
        "cycles": run.cycles,
        "time_ms": run.time_us / 1e3,
        "gflops": run.achieved_gflops,
        "peak_gflops": run.peak_gflops,
        "share_of_peak": run.achieved_gflops / run.peak_gflops if run.peak_gflops else None,
        "bound": max(used, key=used.__getitem__, default=None),
        "bound_text": run.metrics.bound,
        **{f"bytes.{link}": size for link, size in zip(shared_links(run.target), moved, strict=True)},
        **costs(run.target, run.cores, run.peak_flops_per_cycle),
    }
    return {name: plain(value) for name, value in row.items() if value is not None}
