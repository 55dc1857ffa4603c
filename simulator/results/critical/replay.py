"""What a run would take with other numbers of its target: its waits done again with other costs, nothing simulated.

Every instruction keeps what it waits for; each of its times is the latest of those it waits for, and its costs follow
the target. With the target of the run this gives the run's own times exactly. What a replay cannot see: another order
of the flows on a link, other contents of a cache, a wait that was never among the last of an instruction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simulator.results.critical.streams import Floats, changed, paths_of, streams
from simulator.results.critical.waits import Waits, launch_cost, waits_of
from simulator.results.trace import Trace
from targets.schema import Target

if TYPE_CHECKING:
    from simulator.results.run import LaunchRecord


def replayed_cycles(trace: Trace, before: Target, after: Target, launches: Sequence[LaunchRecord]) -> float:
    """Cycles that a run on `before` takes on `after`, the same chip with other rates, start-ups, launches or clock.

    Raises:
        TilesimError: the trace does not say what its instructions cost.
    """
    replay = _Replay(waits_of(trace, before, launches), after)
    now = 0.0
    for number, launch in enumerate(launches):
        now = replay.launch(number, now + launch_cost(after, launch))
    return now


class _Replay:
    """The times of all rows, computed core by core in the order of their programs."""

    def __init__(self, waits: Waits, after: Target) -> None:
        trace, self.waits, self.latency = waits.trace, waits, waits.target.sync.flag_latency_cycles
        own = _own_clock(waits, after)
        self.issue, self.signal = ((trace[name] * own).tolist() for name in ("issue", "signal"))
        self.work = ((trace["end"] - trace["start"]) * np.where(waits.barrier, 1.0, own)).tolist()
        self.setup, self.floor = (_setups(waits, after) * own).tolist(), (trace["floor"] * own).tolist()
        self.stream = _streams(waits, after).tolist()
        self.before, self.ahead, self.room, self.gathering = (
            column.tolist() for column in (waits.before, waits.ahead, waits.room, _gatherings(waits))
        )
        self.barrier, self.copy, self.holds, self.beside, self.shared = (
            column.tolist() for column in (waits.barrier, waits.copy, waits.holds, waits.beside, waits.shared)
        )
        self.members = np.bincount(np.array(self.gathering) + 1).tolist()
        self.flag = np.where(_because(trace, "flag"), trace["waited_row"], -1).tolist()
        self.needed = trace["needed_row"].tolist()
        self.issued, self.start, self.flow, self.end = ([0.0] * len(trace) for _ in range(4))
        self.done = [False] * len(trace)
        self.arrived: dict[int, list[int]] = defaultdict(list)
        self.begin = 0.0

    def launch(self, number: int, begin: float) -> float:
        """Do a launch again whose cores start at `begin`; returns its end."""
        rows = np.flatnonzero(self.waits.trace["launch"] == number)
        cores = self.waits.trace["core"][rows]
        self.begin = begin
        left = [_Core(rows[cores == core].tolist(), begin) for core in np.unique(cores).tolist()]
        while left:
            moved = [self._advance(core) for core in left]
            if not any(moved):
                break
            left = [core for core in left if core.place < len(core.rows)]
        return float(max((self.end[row] for row in rows.tolist()), default=begin))

    def _advance(self, core: _Core) -> bool:
        """Go on with a core until it waits for another one; returns whether it got anywhere."""
        first = core.place
        while core.place < len(core.rows):
            row = core.rows[core.place]
            if self.barrier[row]:
                if not self.done[row] and not self._gather(row, core):
                    break
            elif self.flag[row] >= 0 and not self.done[self.flag[row]]:
                break
            else:
                self._run(row)
                if self.shared[row]:
                    core.shared = max(core.shared, self.end[row])
            core.place += 1
        return core.place > first or core.came

    def _gather(self, row: int, core: _Core) -> bool:
        """A core is at a barrier; returns whether all are, and then lets them go."""
        here = self.arrived[self.gathering[row]]
        core.came = row not in here
        if core.came:
            self._issue(row)
            self.start[row] = max(self.issued[row], core.shared)
            here.append(row)
        if len(here) < self.members[self.gathering[row] + 1]:
            return False
        opens = max(self.start[each] for each in here)
        for each in here:
            self.end[each], self.done[each] = opens + self.work[each], True
        return True

    def _issue(self, row: int) -> None:
        before, room = self.before[row], self.room[row]
        free = self.begin if before < 0 else self._set(before)
        self.issued[row] = max(free, self.start[room] if room >= 0 else 0.0) + self.issue[row]

    def _set(self, row: int) -> float:
        """When the scalar unit is done with a row, its flags included."""
        left = self.end[row] if self.holds[row] else self.issued[row]
        return float(left + self.signal[row])

    def _run(self, row: int) -> None:
        """An instruction is issued, waits, and runs."""
        self._issue(row)
        start, ahead, needed, flag = self.issued[row], self.ahead[row], self.needed[row], self.flag[row]
        if ahead >= 0:
            start = max(start, self.flow[ahead] if self.beside[row] else self.end[ahead])
        if needed >= 0:
            signalled = self._set(needed) if self.signal[needed] else 0.0
            start = max(start, max(self.end[needed], signalled) + self.latency)
        if flag >= 0:
            start = max(start, self.end[flag])
        self.start[row] = self.flow[row] = start
        self.end[row], self.done[row] = start + self.work[row], True
        if self.copy[row]:
            behind = self.end[ahead] if ahead >= 0 and self.beside[row] else 0.0
            self.flow[row] = max(start + self.setup[row], behind)
            self.end[row] = max(self.flow[row] + self.stream[row], start + self.floor[row])


class _Core:
    """A core's rows of a launch, and how far it is.

    Attributes:
        shared: the latest end of what touched a memory of the chip.
        came: whether it came to a barrier when it was looked at last.
    """

    def __init__(self, rows: list[int], begin: float) -> None:
        self.rows, self.shared = rows, begin
        self.place, self.came = 0, False


def _because(trace: Trace, reason: str) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = trace["waited_reason"] == trace.reasons.index(reason)
    return found


def _gatherings(waits: Waits) -> NDArray[np.int64]:
    """A number for each set of barriers that opened together, -1 for other rows."""
    trace, found = waits.trace, np.full(len(waits.trace), -1, np.int64)
    rows = np.flatnonzero(waits.barrier)
    if len(rows):
        keys = np.stack([trace[name][rows].astype(np.int64) for name in ("launch", "start", "end")])
        found[rows] = np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1)
    return found


def _own_clock(waits: Waits, after: Target) -> Floats:
    """What a cycle of each row's core becomes, in cycles of the target: more where its own clock stays behind."""
    before, trace = waits.target, waits.trace
    ratio = np.ones(int(trace["core"].max(initial=0)) + 1)
    for unit in before.units(range(before.groups)):
        old, new = before.core[unit.kind].clock_mhz, after.core[unit.kind].clock_mhz
        if unit.number < len(ratio):
            whole = after.clock_mhz / before.clock_mhz
            ratio[unit.number] = whole * (old or before.clock_mhz) / (new or after.clock_mhz)
    found: Floats = ratio[trace["core"]]
    return found


def _setups(waits: Waits, after: Target) -> Floats:
    """The start-up of each copy on another target, what an idle engine adds included."""
    trace, before = waits.trace, waits.target
    found = np.where(waits.hidden, trace["setup"], trace["flow"] - trace["start"]).astype(np.float64)
    for key, rows in paths_of(trace, before).items():
        old, new = before.path[key].start_cycles, after.path[key].start_cycles
        if old and new != old:
            found[rows] += trace["setup"][rows] * (new / old - 1)
    return found


def _streams(waits: Waits, after: Target) -> Floats:
    """The cycles of each copy's bytes on another target."""
    trace, before = waits.trace, waits.target
    alone = streams(trace, before, waits.groups)
    observed = trace["end"] - trace["flow"]
    # A copy that its path's shortest time held says nothing of its stream but that it took no longer.
    held = trace["end"] <= trace["start"] + trace["floor"]
    observed = np.where(held, np.minimum(observed, alone.alone), observed)
    if after == before:
        return np.asarray(observed, np.float64)
    later: Floats = changed(observed, alone, streams(trace, after, waits.groups))
    return later
