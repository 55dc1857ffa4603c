"""The trace as the page reads it: typed arrays in one compressed block, and what their codes mean."""

import base64
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.colours import OTHER, ink_on, instruction_colours
from reports.load import SavedRun
from reports.names import core_label
from simulator.results.critical.path import REASONS, CriticalPath, critical_path
from simulator.results.critical.waits import waits_of
from simulator.results.trace import COST_COLUMNS, Trace

PATH_COLOURS = {
    "work": "#d1495b",
    "start-up": "#94bf6a",
    "stream": "#1d6fa5",
    "link contention": "#5a4fa2",
    "scalar issue": "#e9c46a",
    "queue full": "#f4a261",
    "dependency": "#b08968",
    "barrier": "#7b6fb0",
    "launch": "#8fb3c9",
    "unknown": OTHER,
}
"""A colour for each reason of the critical path."""


@dataclass(frozen=True)
class Columns:
    """What a page holds of a trace.

    Attributes:
        meta: lists that codes point to, lanes, launches, colours and where each array lies; values of JSON.
        packed: all arrays behind one another, deflated, in base64.
    """

    meta: dict[str, Any]
    packed: str


def path_of(saved: SavedRun) -> CriticalPath | None:
    """The critical path of a run; None where its trace does not say what instructions cost."""
    if not COST_COLUMNS.keys() <= saved.trace.columns().keys():
        return None
    return critical_path(saved.trace, saved.target, saved.launches, saved.cycles)


def columns(saved: SavedRun, path: CriticalPath | None) -> Columns:
    """The trace of a run for its page, its rows ordered by core, engine and start."""
    trace = saved.shown
    lane = trace["core"].astype(np.int64) * len(trace.engines) + trace["engine"]
    order = np.lexsort((trace["end"], trace["start"], lane))
    arrays = _arrays(saved, order, path)
    lanes, arrays["lane"] = _lanes(trace, lane[order])
    described, block = _packed(arrays)
    meta = {**_lists(saved), "lanes": lanes, "columns": described}
    return Columns(meta, base64.b64encode(zlib.compress(block, 6)).decode("ascii"))


def _arrays(saved: SavedRun, order: NDArray[Any], path: CriticalPath | None) -> dict[str, NDArray[Any]]:
    """Every array of the page, in the page's order of rows."""
    trace = saved.shown
    place = np.empty(len(order) + 1, np.int64)
    place[order], place[-1] = np.arange(len(order)), -1  # the last entry serves -1, no row
    found = {name: trace[name][order] for name in ("start", "end", "issued", "flow", "bytes")}
    codes = {"name": "name", "reason": "waited_reason", "source": "source", "destination": "destination"}
    found.update({to: trace[name][order].astype(np.int16) for to, name in codes.items()})
    found.update({f"axis{i}": trace[axis][order] for i, axis in enumerate(trace.axes)})
    causes = np.full(len(order), -1, np.int64)  # the scalar unit's own time waits for nothing
    causes[: len(saved.trace)] = _causes(saved)
    found["cause"] = place[causes[order]]
    on_path = np.zeros(len(order), np.uint8)
    segments = () if path is None else path.segments
    on_path[[segment.row for segment in segments if segment.row >= 0]] = 1
    found["onPath"] = on_path[order]
    found["pathStart"] = np.array([segment.start for segment in segments], np.int64)
    found["pathEnd"] = np.array([segment.end for segment in segments], np.int64)
    found["pathReason"] = np.array([REASONS.index(segment.reason) for segment in segments], np.uint8)
    return found


def _causes(saved: SavedRun) -> NDArray[np.int64]:
    """For each row the one that set its start: what it waited for, or what was issued, or made room, before it."""
    trace = saved.trace
    waited = trace["waited_row"].astype(np.int64)
    waited = np.where(waited == np.arange(len(trace)), -1, waited)
    if not COST_COLUMNS.keys() <= trace.columns().keys():
        return waited
    waits = waits_of(trace, saved.target, saved.launches)
    return np.where(waited >= 0, waited, np.where(waits.room >= 0, waits.room, waits.before))


def _lanes(trace: Trace, lane: NDArray[np.int64]) -> tuple[list[dict[str, object]], NDArray[Any]]:
    """The lanes that have rows, each with the places of its rows, and the lane of each row."""
    numbers, first, which = np.unique(lane, return_index=True, return_inverse=True)
    last = [*first[1:].tolist(), len(lane)]
    cores = {core: place for place, core in enumerate(trace.cores())}
    lanes = [
        {"core": cores[core], "name": trace.engines[engine], "first": begin, "last": end}
        for number, begin, end in zip(numbers.tolist(), first.tolist(), last, strict=False)
        for core, engine in [divmod(number, len(trace.engines))]
    ]
    return lanes, which.astype(np.int16).reshape(-1)


def _lists(saved: SavedRun) -> dict[str, Any]:
    """What the codes of the arrays mean, and how things are coloured."""
    trace, colours = saved.shown, instruction_colours(saved.shown)
    own = [colours.get(name, OTHER) for name in trace.names]
    launches = [{"name": each.name, "start": each.start, "end": each.end} for each in saved.launches]
    return {
        "cycles": max(1, saved.cycles),
        "clockMhz": saved.target.clock_mhz,
        "names": trace.names,
        "colours": own,
        "inks": [ink_on(colour) for colour in own],
        "legend": list(colours.items()),
        "memories": trace.memories,
        "reasons": trace.reasons,
        "axes": trace.axes,
        "cores": [core_label(saved.target, core) for core in trace.cores()],
        "launches": launches,
        "pathReasons": REASONS,
        "reasonColours": [PATH_COLOURS[reason] for reason in REASONS],
    }


def _packed(arrays: dict[str, NDArray[Any]]) -> tuple[list[tuple[str, str, int, int]], bytes]:
    """The arrays in one block, each at a multiple of 8 bytes: (name, type, offset, length) of each, and the block."""
    described, parts, offset = [], [], 0
    for name, array in arrays.items():
        kind = _kind(array)
        data = np.ascontiguousarray(array.astype(f"<{kind}")).tobytes()
        described.append((name, kind, offset, len(array)))
        padding = -len(data) % 8
        parts += [data, b"\0" * padding]
        offset += len(data) + padding
    return described, b"".join(parts)


def _kind(array: NDArray[Any]) -> str:
    """The type in which a browser reads an array: 64-bit integers as 32 where they fit, else as floats."""
    if array.dtype.itemsize < 8:
        return f"{array.dtype.kind}{array.dtype.itemsize}"
    small = not len(array) or max(abs(int(array.min())), abs(int(array.max()))) < 1 << 31
    return "i4" if small else "f8"
