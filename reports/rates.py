"""How fast each copy of a trace moved its bytes at every moment, on the links that the copies share.

A trace has when a copy's bytes began to flow and when they ended. Between these cycles a link divides its bandwidth
max-min fairly among its flows, each capped by its core's port; `pieces` does the same division again for the flows of
the trace. Each copy keeps its own bytes, so that a rate is the link's share without what bursts add to it. Copies from
and to a memory with a cache are taken to move evenly: when they hit and when they miss is not in the trace.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reports.links import cached_rows, row_links, shared_links
from reports.load import SavedRun
from simulator.results.trace import Trace
from targets.schema import UNITS_PER_BYTE, PathSpec, Target

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_SHARES = 4_000_000
"""Shares of a link to be computed (two for each flow and each one beside it, equal cores counted once), some seconds;
beyond it each copy is taken to move its bytes evenly, and a sum of rates may be above the link's."""


@dataclass(frozen=True)
class Pieces:
    """Stretches of time in which a copy moves its bytes at one rate.

    Attributes:
        row: of the trace.
        start, end: cycles; a copy that takes no time is given one, so that its bytes are seen.
        rate: bytes a cycle.
    """

    row: Ints
    start: Ints
    end: Ints
    rate: Floats


@dataclass(eq=False)
class _Flow:
    """Equal copies of several cores: where they begin and end, what caps them, and their pieces so far."""

    start: int
    end: int
    cap: float
    port: tuple[int, str]
    weight: int
    rate: float = 0.0
    since: int = 0

    def __post_init__(self) -> None:
        self.pieces: list[tuple[int, int, float]] = []

    def change(self, now: int, rate: float) -> None:
        """Go on with another rate."""
        if self.rate and now > self.since:
            self.pieces.append((self.since, now, self.rate))
        self.rate, self.since = rate, now


@lru_cache(maxsize=1)  # the parts of one report ask for the same run
def pieces(saved: SavedRun) -> Pieces:
    """The pieces of all copies of a run."""
    trace = saved.trace
    rows = np.flatnonzero(trace["bytes"] > 0)
    shared = row_links(trace, saved.target)
    for mask in cached_rows(trace, saved.target).values():
        shared[mask] = -1
    shared = shared[rows]
    found = [_even(trace, rows[shared < 0])]
    for place, link in enumerate(shared_links(saved.target)):
        on_link = rows[shared == place]
        for launch in np.unique(trace["launch"][on_link]).tolist():
            own = on_link[trace["launch"][on_link] == launch]
            cores = saved.launches[launch].cores if launch < len(saved.launches) else saved.cores
            found.append(_divided(trace, saved.target, own, link, cores))
    return Pieces(*(np.concatenate(column) for column in zip(*found, strict=True)))


_Columns = tuple[Ints, Ints, Ints, Floats]


def _even(trace: Trace, rows: Ints) -> _Columns:
    """Each copy in one piece."""
    start, end = _stretch(trace, rows)
    return rows, start, end, trace["bytes"][rows] / (end - start)


def _stretch(trace: Trace, rows: Ints) -> tuple[Ints, Ints]:
    start = trace["flow"][rows]
    return start, np.maximum(trace["end"][rows], start + 1)


def _divided(trace: Trace, target: Target, rows: Ints, link: str, cores: int) -> _Columns:
    """The pieces of copies on one link in one launch."""
    start, end = _stretch(trace, rows)
    kinds = [trace[name][rows] for name in ("engine", "source", "destination", "bytes")]
    _, first, group, count = np.unique(
        np.stack([start, end, *kinds]), axis=1, return_index=True, return_inverse=True, return_counts=True
    )
    beside = (end - start)[first].sum() / max(1, end.max() - start.min())
    if 2 * len(first) * beside > MOST_SHARES:
        return _even(trace, rows)
    flows = [
        _flow(trace, target, int(rows[i]), (int(start[i]), int(end[i])), weight)
        for i, weight in zip(first.tolist(), count.tolist(), strict=True)
    ]
    divide(flows, target.link_units(link, cores) / UNITS_PER_BYTE)
    return _of_rows(trace, rows, flows, group.reshape(-1))


def _flow(trace: Trace, target: Target, row: int, times: tuple[int, int], weight: int) -> _Flow:
    """A row as a flow; rates are in the link's bytes, in which a direction may cost more."""
    path = target.path[f"{trace.memories[trace['source'][row]]}->{trace.memories[trace['destination'][row]]}"]
    cap = target.port_units(path.port) / UNITS_PER_BYTE * _cost(target, path)
    port = target.port[path.port].shares or path.port
    return _Flow(*times, cap, (int(trace["core"][row]), port), weight)


def _cost(target: Target, path: PathSpec) -> float:
    link = target.link[path.link]
    return link.read_cost if path.direction == "read" else link.write_cost


def divide(flows: Sequence[_Flow], rate: float) -> None:
    """Give every flow its pieces: rates change where one begins or ends."""
    begins = sorted(range(len(flows)), key=lambda i: flows[i].start)
    ends = sorted(range(len(flows)), key=lambda i: flows[i].end)
    active: dict[int, _Flow] = {}
    i = j = 0
    while j < len(ends):
        now = flows[ends[j]].end
        if i < len(begins):
            now = min(now, flows[begins[i]].start)
        while j < len(ends) and flows[ends[j]].end == now:
            active.pop(ends[j]).change(now, 0.0)
            j += 1
        while i < len(begins) and flows[begins[i]].start == now:
            active[begins[i]] = flows[begins[i]]
            i += 1
        for flow, share in fair(active.values(), rate):
            if share != flow.rate:
                flow.change(now, share)


def fair(flows: Iterable[_Flow], rate: float) -> list[tuple[_Flow, float]]:
    """The max-min fair share of each flow; flows of one port have equal parts of it."""
    listed = list(flows)
    users: dict[tuple[int, str], int] = {}
    for flow in listed:
        users[flow.port] = users.get(flow.port, 0) + 1
    caps = sorted(((flow.cap / users[flow.port], flow) for flow in listed), key=lambda pair: pair[0])
    left, waiting = rate, sum(flow.weight for flow in listed)
    shares = []
    for cap, flow in caps:
        share = min(cap, left / waiting)
        shares.append((flow, share))
        left -= share * flow.weight
        waiting -= flow.weight
    return shares


def _of_rows(trace: Trace, rows: Ints, flows: Sequence[_Flow], group: Ints) -> _Columns:
    """The pieces of the flows for each of their rows, scaled so that each row moves its bytes."""
    count = np.array([len(flow.pieces) for flow in flows], dtype=np.int64)
    table = np.array([piece for flow in flows for piece in flow.pieces], dtype=np.float64).reshape(-1, 3)
    moved = np.add.reduceat(table[:, 2] * (table[:, 1] - table[:, 0]), np.cumsum(count) - count)
    own = count[group]
    begin = np.repeat((np.cumsum(count) - count)[group] - (np.cumsum(own) - own), own)
    places = begin + np.arange(int(own.sum()))
    scale = np.repeat(trace["bytes"][rows] / moved[group], own)
    picked = table[places]
    start, end = picked[:, 0].astype(np.int64), picked[:, 1].astype(np.int64)
    return np.repeat(rows, own), start, end, picked[:, 2] * scale


def traffic_between(saved: SavedRun, first: int, last: int) -> dict[str, dict[str, int]]:
    """Bytes read from and written to each memory in a stretch of cycles, rounded: {memory: {read, write}}."""
    parts, trace = pieces(saved), saved.trace
    inside = np.minimum(parts.end, last) - np.maximum(parts.start, first)
    moved = np.maximum(inside, 0) * parts.rate
    sides = {"read": trace["source"][parts.row], "write": trace["destination"][parts.row]}
    return {
        memory: {side: round(float(moved[codes == code].sum())) for side, codes in sides.items()}
        for code, memory in enumerate(trace.memories)
    }


def steps(start: Ints, end: Ints, height: Floats) -> tuple[Ints, Floats]:
    """The sum of stretches over time: cycles at which it changes, and what it is from there on."""
    times, place = np.unique(np.concatenate([start, end]), return_inverse=True)
    change = np.bincount(place, weights=np.concatenate([height, -height]), minlength=len(times))
    total = np.cumsum(change)
    return times, np.where(np.abs(total) < 1e-9 * max(1.0, float(height.max(initial=0.0))), 0.0, total)
