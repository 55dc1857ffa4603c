"""Where the time of one engine goes when it computes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from simulator.results.intervals import Ints, running_end
from simulator.results.trace import Trace
from targets.errors import TilesimError

LAUNCH = "launch"
NO_WORK = "no work"


class Span(Protocol):
    """A stretch of cycles, as of a launch."""

    @property
    def start(self) -> int:
        """First cycle."""

    @property
    def end(self) -> int:
        """Cycle after the last."""


@dataclass(frozen=True)
class StallTable:
    """The time of an engine's lanes by core: busy, and lost to each reason; together they are all the time.

    Attributes:
        engine: kind of the engine.
        cores: ids of the cores, idle ones too.
        reasons: the greatest loss first: "waits for DMA0" (a result of that lane), "issue" (the scalar unit
            came late), "barrier", "flag", "engine", "launch" (before the first instruction of a launch on any
            core), "no work" (after a core's last instruction of a launch, and on idle cores).
        cycles: time of one core's lanes, what a row of `busy` and `lost` adds up to.
        busy: cycles, one a core.
        lost: cycles, [core, reason].
        awaited: by the reasons that are a lane's results, the name of the instruction that was waited for longest.
    """

    engine: str
    cores: tuple[int, ...]
    reasons: tuple[str, ...]
    cycles: int
    busy: Ints
    lost: Ints
    awaited: Mapping[str, str] = field(default_factory=dict)

    def shares(self) -> dict[str, float]:
        """The share of all cores' time that is lost to each reason."""
        whole = max(1, self.cycles * len(self.cores))
        return {
            reason: int(lost) / whole
            for reason, lost in zip(self.reasons, self.lost.sum(axis=0), strict=True)
        }


def stall_table(
    trace: Trace,
    engine: str,
    lanes: Sequence[int],
    cores: Sequence[int],
    lanes_per_core: int,
    cycles: int,
    launches: Sequence[Span],
) -> StallTable:
    """The losses of a kind of engine.

    A gap before an instruction belongs to what that instruction waited for last.

    Args:
        trace: the rows of the whole run.
        engine: name of the kind.
        lanes: codes of its lanes in the trace's list of engines.
        cores: the cores whose time is looked at; all with rows of these lanes are among them.
        lanes_per_core: how many such lanes a core has.
        cycles: length of the run.
        launches: when each launch of the trace began and ended.

    Raises:
        TilesimError: the trace has a launch that is not in `launches`.
    """
    opened, closed = _open_times(trace, launches)
    rows, segment = _ordered_rows(trace, lanes)
    core = np.searchsorted(np.array(cores, dtype=np.int64), trace["core"][rows])
    free = _free_since(trace, rows, segment, opened)
    gap = np.maximum(trace["start"][rows] - free, 0)
    busy = _sums(core, np.maximum(trace["end"][rows] - np.maximum(trace["start"][rows], free), 0), len(cores))
    labels = [*(f"waits for {lane}" for lane in trace.engines), *_PLAIN]
    label = _labels(trace, rows)
    waited = _sums(core * len(labels) + label, gap, len(cores) * len(labels)).reshape(len(cores), len(labels))
    ran = lanes_per_core * int((closed - opened).sum())
    no_work = np.maximum(ran - busy - waited.sum(axis=1), 0)
    launch = np.full(len(cores), lanes_per_core * cycles - ran)
    lost = np.column_stack([waited, launch, no_work])
    table = _sorted_table(engine, cores, [*labels, LAUNCH, NO_WORK], lanes_per_core * cycles, busy, lost)
    return replace(table, awaited=_awaited(trace, rows, gap))


def _awaited(trace: Trace, rows: NDArray[Any], gap: Ints) -> dict[str, str]:
    """For each lane whose results were waited for, the name that the longest waits, in sum, were for."""
    known = (trace["waited_row"][rows] >= 0) & _by_dependency(trace, rows)
    waited = trace["waited_row"][rows][known]
    names = len(trace.names)
    cell = trace["engine"][waited].astype(np.int64) * names + trace["name"][waited]
    total = _sums(cell, gap[known], len(trace.engines) * names).reshape(len(trace.engines), names)
    return {
        f"waits for {lane}": trace.names[int(own.argmax())]
        for lane, own in zip(trace.engines, total, strict=True)
        if own.any()
    }


def _by_dependency(trace: Trace, rows: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(trace["waited_reason"][rows] == trace.reasons.index("dependency"))


# What a gap is called when it is not a result of a lane that was waited for.
_PLAIN = ("a result", "issue", "engine", "barrier", "flag")
_CALLED = {"none": "issue", "dependency": "a result"}  # nothing to wait for: it started when it was issued


def _open_times(trace: Trace, launches: Sequence[Span]) -> tuple[Ints, Ints]:
    """When programs began to run in each launch, and when the launch ended; equal where nothing ran."""
    if len(trace) and int(trace["launch"].max()) >= len(launches):
        got = int(trace["launch"].max())
        raise TilesimError("the trace has a launch that is not recorded", got=got, limit=len(launches) - 1)
    closed = np.array([launch.end for launch in launches], dtype=np.int64)
    first = closed.copy()
    np.minimum.at(first, trace["launch"], np.minimum(trace["issued"], trace["start"]))
    begun = np.array([launch.start for launch in launches], dtype=np.int64)
    return np.maximum(first, begun), closed


def _ordered_rows(trace: Trace, lanes: Sequence[int]) -> tuple[NDArray[np.intp], Ints]:
    """Rows of some lanes by core, lane, launch, start, and for each the number of the first three."""
    rows = np.flatnonzero(np.isin(trace["engine"], lanes))
    launches = int(trace["launch"].max(initial=0)) + 1
    lane = trace["core"][rows].astype(np.int64) * len(trace.engines) + trace["engine"][rows]
    segment = lane * launches + trace["launch"][rows]
    order = np.lexsort((trace["start"][rows], segment))
    return rows[order], segment[order]


def _free_since(trace: Trace, rows: NDArray[Any], segment: Ints, opened: Ints) -> Ints:
    """For each row, since when its lane had nothing to do: the end before it, or the launch's first cycle."""
    free: Ints = opened[trace["launch"][rows]]
    reached = running_end(segment, np.maximum(trace["end"][rows], free))
    follows = np.flatnonzero(segment[1:] == segment[:-1]) + 1
    free[follows] = reached[follows - 1]
    return free


def _labels(trace: Trace, rows: NDArray[Any]) -> Ints:
    """For each row, the index of what its gap is called: lanes first, then `_PLAIN`."""
    named = [_CALLED.get(reason, reason) for reason in trace.reasons]
    index = np.array([len(trace.engines) + _PLAIN.index(name) for name in named], dtype=np.int64)
    reason, waited = trace["waited_reason"][rows], trace["waited_row"][rows]
    known = (waited >= 0) & _by_dependency(trace, rows)
    # Row 0 stands in where no row was waited for; `known` leaves it out again.
    return np.asarray(np.where(known, trace["engine"][np.maximum(waited, 0)], index[reason]), dtype=np.int64)


def _sums(index: Ints, values: Ints, length: int) -> Ints:
    """Sums of values by index; exact below 2**53 cycles."""
    return np.bincount(index, weights=values, minlength=length).astype(np.int64)


def _sorted_table(
    engine: str, cores: Sequence[int], reasons: Sequence[str], cycles: int, busy: Ints, lost: Ints
) -> StallTable:
    total = lost.sum(axis=0)
    order = [i for i in np.argsort(-total, kind="stable").tolist() if total[i] > 0]
    return StallTable(engine, tuple(cores), tuple(reasons[i] for i in order), cycles, busy, lost[:, order])
