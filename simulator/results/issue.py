"""The scalar unit's time: what it spends on issuing, as rows of its lane."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.results.trace import CACHE_COLUMNS, COLUMNS, COST_COLUMNS, Trace

ISSUE = "issue"
"""The name of the rows."""

_NOTHING = {"source": -1, "destination": -1, "waited_row": -1, "needed_row": -1}


def with_issue(trace: Trace) -> Trace:
    """The trace, and behind it a row on the lane SCALAR of each core for every stretch in which it issues.

    An instruction is issued in the cycles before it enters its queue, and the flags after it are set in those behind;
    what follows without a break is one row. A trace that does not say what its instructions cost stays as it is.
    """
    if not len(trace) or "SCALAR" not in trace.engines or not COST_COLUMNS.keys() <= trace.columns().keys():
        return trace
    first, start, end = _stretches(trace)
    return Trace.concat([trace, _rows(trace, first, start, end)]) if len(first) else trace


def _stretches(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The first row of each stretch, its start and its end; rows lie by launch, core and order of issue."""
    issued = trace["issued"].astype(np.int64)
    start, end = issued - trace["issue"], issued + trace["signal"]
    rows = np.flatnonzero(end > start)
    start, end = start[rows], end[rows]
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (trace["core"][rows[1:]] != trace["core"][rows[:-1]]) | (start[1:] != end[:-1])
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(rows))[: len(first)] - 1
    return rows[first], start[first], end[last]


def _rows(trace: Trace, first: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]) -> Trace:
    """Rows of the scalar unit's lane, without bytes, tile or anything that they waited for."""
    every: dict[str, Any] = {**COLUMNS, **COST_COLUMNS}
    every |= {name: kind for name, kind in CACHE_COLUMNS.items() if name in trace.columns()}
    columns = {name: np.full(len(first), _NOTHING.get(name, 0), kind) for name, kind in every.items()}
    columns |= {axis: np.full(len(first), -1) for axis in trace.axes}
    columns |= {name: trace[name][first] for name in ("launch", "core")}
    columns |= dict.fromkeys(("issued", "ready", "start", "flow"), start)
    columns |= {"end": end, "engine": np.full(len(first), trace.engines.index("SCALAR"))}
    return Trace(columns, **{**trace.lists(), "names": (ISSUE,)})
