"""The trace of a run for ui.perfetto.dev.

A core is a process, an engine a thread, an instruction a slice with an arrow from what it waited for; launches have a
track of their own, and the links counters. Times are nanoseconds by the chip's clock, rounded; each slice has its
cycles beside it. What a memory holds is not in the trace of a run, so there is no counter of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reports.links import shared_links, sizes_on_links
from reports.load import SavedRun
from reports.names import core_label
from reports.perfetto_packets import PacketWriter, messages
from reports.rates import pieces, steps
from simulator.results.files import write_aside
from simulator.results.intervals import clip
from simulator.results.trace import Trace
from targets.errors import TilesimError
from targets.schema import Target

PERFETTO = "trace.pftrace"

MOST_ROWS = 200_000
"""Instructions up to which a report has this trace without being asked: some 30 MB, and 10 s to write."""

Ints = NDArray[np.int64]

_LAUNCHES, _LINKS, _FIRST = 1, 2, 10  # numbers of tracks; processes, threads and counters follow
_TIMES = ("issued", "ready", "start", "flow", "end")


@dataclass(frozen=True)
class Lanes:
    """Threads of a trace: instructions of one thread never overlap in part.

    Attributes:
        of_row: the thread of each row.
        core, engine: of each thread.
        layer: 0, or more for copies that start while the one before is under way.
    """

    of_row: Ints
    core: Ints
    engine: Ints
    layer: Ints


def write_perfetto(saved: SavedRun, path: Path) -> None:
    """Write the trace of a run, aside and then moved into place.

    Raises:
        TilesimError: the extra `perfetto` is not installed.
        RunFileError: the operating system refused.
    """
    messages()
    write_aside({path: perfetto_in_place(saved)})


def perfetto_in_place(saved: SavedRun, start: int | None = None, end: int | None = None) -> partial[None]:
    """A writer of the trace for `write_aside`, of a stretch of the run: what is cut has its bytes in proportion."""
    return partial(_write, saved, saved.window(start, end))


def left_out(saved: SavedRun, wanted: bool | None) -> str:
    """Why a report has no such trace, empty when it has one; `wanted` is None where nobody said.

    Raises:
        TilesimError: it is wanted, and the extra `perfetto` is not installed.
    """
    if wanted is None and len(saved.trace) > MOST_ROWS:
        return f"it would hold {len(saved.trace):,} instructions; `tilesim report --perfetto` writes it all the same"
    if wanted is False:
        return "`--no-perfetto` was given"
    try:
        messages()
    except TilesimError as error:
        if wanted:
            raise
        return f"{error.what}: {error.remedy}"
    return ""


def nanoseconds(target: Target, cycles: Ints) -> Ints:
    """Cycles as whole nanoseconds."""
    return np.asarray(np.rint(cycles * (1e3 / target.clock_mhz)), dtype=np.int64)


def _write(saved: SavedRun, window: tuple[int, int], path: Path) -> None:
    whole = window == (0, saved.cycles)
    trace = saved.shown if whole else clip(saved.shown, *window)
    lanes = lanes_of(trace)
    with path.open("wb") as file:
        writer = PacketWriter(file)
        _write_launches(writer, saved, window)
        threads, free = _write_threads(writer, saved, lanes)
        _write_slices(writer, saved.target, trace, lanes, threads)
        _write_counters(writer, saved, window, free)
        writer.close()


def lanes_of(trace: Trace) -> Lanes:
    """The threads of a trace: one for each engine of each core, and more where its copies overlap in part."""
    rows = np.lexsort((np.arange(len(trace)), trace["start"]))
    open_until: dict[tuple[int, int], list[int]] = {}
    layer = np.zeros(len(trace), dtype=np.int64)
    columns = (trace[name][rows].tolist() for name in ("core", "engine", "start", "end"))
    for row, core, engine, start, end in zip(rows.tolist(), *columns, strict=True):
        ends = open_until.setdefault((core, engine), [])
        place = next((i for i, until in enumerate(ends) if until <= start), len(ends))
        ends[place : place + 1] = [end]
        layer[row] = place
    keys = np.stack([trace["core"], trace["engine"], layer]).astype(np.int64)
    found, of_row = np.unique(keys, axis=1, return_inverse=True)
    return Lanes(of_row.reshape(-1), *found)


def _write_launches(writer: PacketWriter, saved: SavedRun, window: tuple[int, int]) -> None:
    writer.track(_LAUNCHES, "launches", description=f"{saved.operator} on {saved.target.name}")
    for launch in saved.launches:
        begin, end = (int(edge) for edge in np.clip((launch.start, launch.end), *window))
        if begin < end:
            facts: dict[str, int | str] = {
                "kind": launch.kind,
                "cores": launch.cores,
                "cycles": launch.cycles,
            }
            if launch.useful_macs:
                facts["useful_macs"] = launch.useful_macs
            first, last = nanoseconds(saved.target, np.array([begin, end])).tolist()
            writer.begin(first, _LAUNCHES, launch.name, facts)
            writer.end(last, _LAUNCHES)


def _write_threads(writer: PacketWriter, saved: SavedRun, lanes: Lanes) -> tuple[list[int], int]:
    """Describe processes and threads; the track of each lane, and the next free number."""
    cores = sorted(set(lanes.core.tolist()))
    processes = {core: (_FIRST + i, 1 + i) for i, core in enumerate(cores)}
    for core, (uuid, pid) in processes.items():
        writer.process(uuid, pid, core_label(saved.target, core))
    first = _FIRST + len(cores)
    for i, (core, engine, layer) in enumerate(
        zip(lanes.core.tolist(), lanes.engine.tolist(), lanes.layer.tolist(), strict=True)
    ):
        name = saved.trace.engines[engine] + (f" +{layer}" if layer else "")
        writer.thread(first + i, processes[core], 1 + len(cores) + i, name)
    return [first + i for i in range(len(lanes.core))], first + len(lanes.core)


def _write_slices(
    writer: PacketWriter, target: Target, trace: Trace, lanes: Lanes, threads: list[int]
) -> None:
    track = np.array(threads, dtype=np.int64)[lanes.of_row].tolist()
    begin, end = nanoseconds(target, trace["start"]), nanoseconds(target, trace["end"])
    names = [trace.names[code] for code in trace["name"].tolist()]
    leaving, facts = _Followers(trace["waited_row"]), Facts(trace)
    waits = trace["waited_row"].tolist()
    for row, ends in _events(begin, end):
        if ends:
            writer.end(int(end[row]), track[row])
        else:
            arrives = (row + 1,) if waits[row] >= 0 else ()
            writer.begin(int(begin[row]), track[row], names[row], facts.of(row), (leaving(row), arrives))


def _events(begin: Ints, end: Ints) -> Iterator[tuple[int, bool]]:
    """Rows as they begin and, then true, end, by time: at one time what ends comes before what begins."""
    rank = np.empty(len(begin), dtype=np.int64)
    rank[np.lexsort((np.arange(len(begin)), begin))] = np.arange(len(begin))
    ends = np.repeat([False, True], len(begin))
    brief = np.tile(begin == end, 2)  # begins and ends at once, in this order, among what begins
    late = ~ends | brief
    order = np.lexsort((ends, np.tile(rank, 2), late, np.concatenate([begin, end])))
    rows = order % max(1, len(begin))
    return zip(rows.tolist(), ends[order].tolist(), strict=True)


class _Followers:
    """The numbers of the arrows that leave each row: one more than the row that waited for it."""

    def __init__(self, waited: Ints) -> None:
        self._rows = np.argsort(waited, kind="stable")
        self._sorted = waited[self._rows]

    def __call__(self, row: int) -> list[int]:
        first, last = np.searchsorted(self._sorted, (row, row + 1))
        return (self._rows[first:last] + 1).tolist() if last > first else []


class Facts:
    """What is said about an instruction: its cycles, tile coordinates, bytes and what it waited for last."""

    def __init__(self, trace: Trace) -> None:
        """The facts of a trace's rows."""
        self._trace = trace
        self._times = {f"cycle {name}": trace[name].tolist() for name in _TIMES}
        self._axes = {f"tile {axis}": trace[axis].tolist() for axis in trace.axes}
        self._bytes, self._name = trace["bytes"].tolist(), trace["name"].tolist()
        self._source, self._destination = trace["source"].tolist(), trace["destination"].tolist()
        self._waited, self._reason = trace["waited_row"].tolist(), trace["waited_reason"].tolist()

    def of(self, row: int) -> dict[str, int | str]:
        """The facts of one row."""
        facts: dict[str, int | str] = {name: times[row] for name, times in self._times.items()}
        facts |= {name: at[row] for name, at in self._axes.items() if at[row] >= 0}
        if self._bytes[row]:
            facts["bytes"] = self._bytes[row]
            facts["path"] = f"{self._memory(self._source[row])}->{self._memory(self._destination[row])}"
        reason = self._trace.reasons[self._reason[row]]
        waited = self._waited[row]
        if waited >= 0:
            facts["waited for"] = f"{reason}: {self._trace.names[self._name[waited]]}"
        elif reason != "none":
            facts["waited for"] = reason
        return facts

    def _memory(self, code: int) -> str:
        return self._trace.memories[code] if code >= 0 else "?"


def _write_counters(writer: PacketWriter, saved: SavedRun, window: tuple[int, int], first: int) -> None:
    """Bandwidth and active transfers of each shared link, wherever they change."""
    trace, target = saved.trace, saved.target
    sizes, parts = sizes_on_links(trace, target), pieces(saved)
    writer.track(_LINKS, "links", rank=1)
    for link, moved in zip(shared_links(target), sizes.T, strict=True):
        if not moved.any():
            continue
        share = (moved / np.maximum(trace["bytes"], 1))[parts.row]
        mine = share > 0
        times, rates = steps(parts.start[mine], parts.end[mine], (parts.rate * share)[mine])
        writer.counter_track(first, f"{link} bandwidth", "GB/s", _LINKS)
        _write_steps(writer, target, first, (times, rates * target.clock_mhz / 1e3), window)
        rows = np.flatnonzero(moved)
        count = steps(trace["start"][rows], trace["end"][rows], np.ones(len(rows)))
        writer.counter_track(first + 1, f"{link} active transfers", "copies", _LINKS)
        _write_steps(writer, target, first + 1, count, window)
        first += 2


def _write_steps(
    writer: PacketWriter,
    target: Target,
    track: int,
    stepped: tuple[Ints, NDArray[np.float64]],
    window: tuple[int, int],
) -> None:
    """A counter's values from where they change; at one nanosecond the last."""
    times, values = stepped
    before = max(0, int(np.searchsorted(times, window[0], side="right")) - 1)
    kept = slice(before, int(np.searchsorted(times, window[1], side="right")))
    time = nanoseconds(target, np.maximum(times[kept], window[0]))
    last = np.append(time[1:] != time[:-1], np.ones(min(1, len(time)), dtype=bool))
    for at, value in zip(time[last].tolist(), values[kept][last].tolist(), strict=True):
        writer.count(at, track, value)
