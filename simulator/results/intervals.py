"""Busy intervals of the lanes of a trace, vectorised over its rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.results.trace import CACHE_COLUMNS, Trace

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Intervals:
    """Stretches of time in which a lane is busy without a break, ordered by core, engine, start.

    Attributes:
        core: core of each stretch.
        engine: code of its engine in the trace's list.
        start, end: cycles.
    """

    core: Ints
    engine: Ints
    start: Ints
    end: Ints


def busy_intervals(trace: Trace) -> Intervals:
    """The union of the rows' times, for each lane of each core; rows that take no time are left out."""
    rows = np.flatnonzero(trace["end"] > trace["start"])
    lane = trace["core"][rows].astype(np.int64) * len(trace.engines) + trace["engine"][rows]
    order = np.lexsort((trace["start"][rows], lane))
    rows, lane = rows[order], lane[order]
    start, reached = trace["start"][rows], running_end(lane, trace["end"][rows])
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (lane[1:] != lane[:-1]) | (start[1:] > reached[:-1])
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(rows))[: len(first)] - 1
    core, engine = np.divmod(lane[first], max(1, len(trace.engines)))
    return Intervals(core, engine, start[first], reached[last])


def running_end(segment: NDArray[Any], end: Ints) -> Ints:
    """The latest end so far within each segment (equal values that lie together); ends are not negative."""
    if not len(end):
        return end
    # Segments are lifted above one another, so that one running maximum serves them all.
    lift = np.cumsum(np.append(0, segment[1:] != segment[:-1])) * (int(end.max()) + 1)
    return np.asarray(np.maximum.accumulate(end + lift) - lift, dtype=np.int64)


def busy_cycles(trace: Trace) -> Ints:
    """Busy cycles of every lane: rows as in `trace.cores()`, columns as in `trace.engines`."""
    intervals = busy_intervals(trace)
    cores = np.array(trace.cores(), dtype=np.int64)
    busy = np.zeros((len(cores), len(trace.engines)), dtype=np.int64)
    np.add.at(
        busy, (np.searchsorted(cores, intervals.core), intervals.engine), intervals.end - intervals.start
    )
    return busy


def clip(trace: Trace, start: int, end: int) -> Trace:
    """What happened in the cycles from `start` to `end`: rows cut at both, their bytes in proportion."""
    inside = trace.select((trace["end"] > start) & (trace["start"] < end))
    cut = {name: np.clip(inside[name], start, end) for name in ("issued", "ready", "start", "flow", "end")}
    whole = inside["end"] - inside["flow"]
    part = np.where(whole > 0, (cut["end"] - cut["flow"]) / np.maximum(whole, 1), 1.0)
    sizes = ("bytes", *(name for name in CACHE_COLUMNS if name in inside.columns()))
    return inside.replaced(**cut, **{name: np.rint(inside[name] * part).astype(np.int64) for name in sizes})
