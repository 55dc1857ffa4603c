"""What each instruction of a trace could have waited for: the edges that a critical path is walked along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simulator.results.critical.streams import Ints, paths_of
from simulator.results.trace import COST_COLUMNS, Trace
from targets.errors import TilesimError
from targets.schema import SCALAR, Target

if TYPE_CHECKING:
    from simulator.results.run import LaunchRecord


@dataclass(frozen=True)
class Waits:
    """A trace's rows with what they may wait for; a row's -1 is nothing.

    Attributes:
        trace, target, launches: of the run.
        begin: of each launch, the cycle at which its cores start: its own cost is over.
        before: the instruction issued before on the same core in the launch.
        ahead: the instruction before on the same engine in the launch.
        room: of an instruction whose queue was full, the one whose start made room for it.
        barrier, copy: what kind the row is.
        holds: the scalar unit goes on only when it has ended: a barrier, or what a blocking engine runs.
        free: when the scalar unit was free for it.
        begun: when its issue began.
        hidden: its start-up ran beside the stream of the copy `ahead`, which ended later.
        beside: its start-up may run beside that stream.
        shared: it touches a memory of the chip, so that a barrier waits for it.
    """

    trace: Trace
    target: Target
    launches: tuple[LaunchRecord, ...]
    begin: Ints
    before: Ints
    ahead: Ints
    room: Ints
    barrier: NDArray[np.bool_]
    copy: NDArray[np.bool_]
    holds: NDArray[np.bool_]
    free: Ints
    begun: Ints
    hidden: NDArray[np.bool_]
    beside: NDArray[np.bool_]
    shared: NDArray[np.bool_]

    @property
    def groups(self) -> Ints:
        """Groups of cores of each row's launch."""
        return _of_launches(self.trace, [launch.cores for launch in self.launches])


def waits_of(trace: Trace, target: Target, launches: Sequence[LaunchRecord]) -> Waits:
    """The edges of a trace.

    Raises:
        TilesimError: the trace says no costs, because an older version wrote it or it was made by hand.
    """
    if not COST_COLUMNS.keys() <= trace.columns().keys():
        raise TilesimError("the trace does not say what its instructions cost", remedy="run the call again")
    begin = np.array([launch.start + launch_cost(target, launch) for launch in launches], np.int64)
    segment = trace["launch"].astype(np.int64) * (int(trace["core"].max(initial=0)) + 1) + trace["core"]
    before = _before(segment)
    ahead = _before(segment * len(trace.engines) + trace["engine"])
    barrier = trace["engine"] == (trace.engines.index(SCALAR) if SCALAR in trace.engines else -1)
    holds = barrier | np.isin(trace["engine"], _blocking(trace, target))
    free = _free(trace, before, holds, begin)
    begun = trace["issued"] - trace["issue"]
    copy, beside, shared = _of_paths(trace, target)
    beside &= (ahead >= 0) & copy[ahead]
    late = trace["flow"] - trace["start"] > trace["setup"]
    hidden = copy & late & (ahead >= 0) & (trace["end"][ahead] == trace["flow"])
    room = _room(trace, ahead, np.flatnonzero((begun > free) & ~holds), begun)
    kinds = (barrier, copy, holds, free, begun, hidden, beside, shared)
    return Waits(trace, target, tuple(launches), begin, before, ahead, room, *kinds)


def launch_cost(target: Target, launch: LaunchRecord) -> int:
    """Cycles from a launch's start to that of its cores."""
    spec = target.launch.get(launch.kind, target.launch["default"])
    return spec.cycles + spec.cycles_per_core * launch.cores


def _before(group: Ints) -> Ints:
    """For each row the one before with the same number, -1 for the first."""
    order = np.argsort(group, kind="stable")
    found = np.full(len(group), -1, np.int64)
    same = group[order[1:]] == group[order[:-1]]
    found[order[1:][same]] = order[:-1][same]
    return found


def _blocking(trace: Trace, target: Target) -> list[int]:
    """Codes of the engines that hold the scalar unit."""
    blocking = {name.upper() for name, spec in target.engine.items() if spec.issue == "blocking"}
    return [code for code, lane in enumerate(trace.engines) if target.kind_of(lane) in blocking]


def _of_launches(trace: Trace, values: Sequence[int]) -> Ints:
    found: Ints = np.array([*values, 0], np.int64)[trace["launch"]]
    return found


def _free(trace: Trace, before: Ints, holds: NDArray[np.bool_], begin: Ints) -> Ints:
    """When the scalar unit had issued what comes before, set its flags, and waited where it has to."""
    if not len(trace):
        return np.zeros(0, np.int64)
    left = np.where(holds, trace["end"], trace["issued"]) + trace["signal"]
    found: Ints = np.where(before >= 0, left[before], begin[trace["launch"]])
    return found


def _of_paths(trace: Trace, target: Target) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Of each row: whether it goes along a path, whether that lets start-ups overlap, whether it is of the chip."""
    copy, overlap, shared = np.zeros((3, len(trace)), bool)
    for key, rows in paths_of(trace, target).items():
        copy[rows] = True
        overlap[rows] = target.path[key].overlap
        shared[rows] = any(target.memory[memory].scope == "chip" for memory in key.split("->"))
    return copy, overlap, shared


def _room(trace: Trace, ahead: Ints, rows: NDArray[Any], begun: Ints) -> Ints:
    """For rows that were issued later than the scalar unit was free: whose start made room in the queue."""
    found = np.full(len(trace), -1, np.int64)
    start, previous, at = trace["start"].tolist(), ahead.tolist(), begun.tolist()
    for row in rows.tolist():
        other = previous[row]
        while other >= 0 and start[other] > at[row]:
            other = previous[other]
        if other >= 0 and start[other] == at[row]:
            found[row] = other
    return found
