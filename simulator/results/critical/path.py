"""The critical path: the chain of instructions and waits that sets the end of a run, walked back from it.

At each step the walk stands at a cycle of a row (its end, the begin of its bytes, its start, its issue) and asks what
that cycle was set by, as the trace has it; the time between is a segment. So the segments follow each other without
a gap from cycle 0 to the run's end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simulator.results.critical.streams import streams
from simulator.results.critical.waits import Waits, waits_of
from simulator.results.trace import Trace
from targets.schema import SCALAR, Target

if TYPE_CHECKING:
    from simulator.results.run import LaunchRecord

WORK, SETUP, STREAM, CONTENTION = "work", "start-up", "stream", "link contention"
ISSUE, QUEUE, DEPENDENCY, BARRIER, LAUNCH = "scalar issue", "queue full", "dependency", "barrier", "launch"
UNKNOWN = "unknown"
REASONS = (WORK, SETUP, STREAM, CONTENTION, ISSUE, QUEUE, DEPENDENCY, BARRIER, LAUNCH, UNKNOWN)
"""What time on the path is: an instruction that computes; a copy's start-up, its bytes as fast as they would flow
alone, and what they took longer; the scalar unit that issues, or that issues late because a queue had been full;
the flags of a dependency; the release of a barrier; the cost of a launch. "unknown" is time that the trace does not
explain; a simulated run has none."""


class Segment(NamedTuple):
    """A stretch of the path.

    Attributes:
        start, end: cycles.
        reason: one of `REASONS`.
        row: of the trace; -1 for a launch.
    """

    start: int
    end: int
    reason: str
    row: int


@dataclass(frozen=True)
class CriticalPath:
    """The chain that set the end of a run.

    Attributes:
        segments: from cycle 0 to the run's end, without a gap.
        trace: the rows they point to.
        target: whose engines they are.
    """

    segments: tuple[Segment, ...]
    trace: Trace
    target: Target

    def table(self) -> dict[tuple[str, str], int]:
        """Cycles of the path by (kind of engine, reason), the most first; their sum is the cycles of the run.

        The time of an issue, a barrier or a launch is the scalar unit's.
        """
        total: Counter[tuple[str, str]] = Counter()
        for segment in self.segments:
            total[self._engine(segment), segment.reason] += segment.end - segment.start
        return dict(total.most_common())

    def _engine(self, segment: Segment) -> str:
        if segment.row < 0 or segment.reason in (ISSUE, QUEUE, BARRIER, DEPENDENCY, LAUNCH):
            return SCALAR
        return self.target.kind_of(self.trace.engines[int(self.trace["engine"][segment.row])])

    def rows(self) -> list[int]:
        """The rows that the path goes through, in time, each once."""
        return list(dict.fromkeys(segment.row for segment in self.segments if segment.row >= 0))


def critical_path(
    trace: Trace, target: Target, launches: Sequence[LaunchRecord], cycles: int
) -> CriticalPath:
    """The critical path of a run of so many cycles.

    Raises:
        TilesimError: the trace does not say what its instructions cost.
    """
    segments = [*_Walk(waits_of(trace, target, launches)).back(cycles)]
    return CriticalPath(tuple(s for s in reversed(segments) if s.end > s.start), trace, target)


Step = tuple[list[tuple[int, str]], str, int]
"""Where stretches begin, going back, with what they are; then the point and the row at which the walk goes on."""

OUT = "out"
"""The point before a core's first instruction of a launch."""


class _Walk:
    """Steps back through a trace: a method for each point of a row says what lies before it and where to go on."""

    def __init__(self, waits: Waits) -> None:
        self.waits = waits
        trace = waits.trace
        names = ("issued", "ready", "start", "flow", "end", "signal", "waited_row")
        self.of = {name: trace[name].tolist() for name in names}
        for name in ("before", "ahead", "room", "free", "begun"):
            self.of[name] = getattr(waits, name).tolist()
        self.reason = [trace.reasons[code] for code in trace["waited_reason"].tolist()]
        alone = trace["flow"] + streams(trace, waits.target, waits.groups).alone
        self.alone = np.maximum(alone, trace["start"] + trace["floor"]).tolist()
        self.latency = waits.target.sync.flag_latency_cycles
        self.step: dict[str, Callable[[int], Step]] = {
            "end": self._end,
            "flow": self._flow,
            "start": self._start,
            "issued": self._issued,
            "ready": self._ready,
            "signalled": self._signalled,
        }

    def back(self, cycles: int) -> Iterator[Segment]:
        """The segments from the run's end to cycle 0."""
        now, last = cycles, _last_rows(self.waits)
        for number in range(len(self.waits.launches) - 1, -1, -1):
            launch = self.waits.launches[number]
            yield Segment(launch.end, now, LAUNCH, -1)
            now = launch.end
            if number in last:
                for segment in self._launch(last[number], now, int(self.waits.begin[number])):
                    yield segment
                    now = segment.start
            yield Segment(launch.start, now, LAUNCH, -1)
            now = launch.start
        yield Segment(0, now, LAUNCH, -1)

    def _launch(self, row: int, now: int, begin: int) -> Iterator[Segment]:
        """The segments of a launch, back to the begin of its cores."""
        point = "end"
        while point != OUT:
            stretches, point, onward = self.step[point](row)
            stretches.append((begin if point == OUT else self._at(point, onward), UNKNOWN))
            for start, reason in stretches:
                if start < now:
                    yield Segment(start, now, reason, row)
                    now = start
            row = onward

    def _at(self, point: str, row: int) -> int:
        """The cycle of a point."""
        if point == "signalled":
            return self._set(row)
        return int(self.of[point][row])

    def _set(self, row: int) -> int:
        """When the flags of a row were set: the scalar unit does it, after the issue or after what held it."""
        left = self.of["end"] if self.waits.holds[row] else self.of["issued"]
        return int(left[row] + self.of["signal"][row])

    def _end(self, row: int) -> Step:
        start = self.of["start"][row]
        if self.waits.barrier[row]:
            return [(start, BARRIER)], "ready", self._latecomer(row)
        if not self.waits.copy[row]:
            return [(start, DEPENDENCY if self.reason[row] == "flag" else WORK)], "start", row
        flow = self.of["flow"][row]
        return [(max(flow, self.alone[row]), CONTENTION), (flow, STREAM)], "flow", row

    def _flow(self, row: int) -> Step:
        if self.waits.hidden[row]:
            return [], "end", self.of["ahead"][row]
        return [(self.of["start"][row], SETUP)], "start", row

    def _latecomer(self, row: int) -> int:
        """The barrier of the core that came last."""
        other = self.of["waited_row"][row]
        return other if self.reason[row] == "barrier" and other >= 0 else row

    def _ready(self, row: int) -> Step:
        """A core came to a barrier: when it issued it, or when what it had to end before had ended."""
        other = self.of["waited_row"][row]
        held = self.of["ready"][row] > self.of["issued"][row] and self.reason[row] == "dependency"
        return ([], "end", other) if held and other >= 0 else ([], "issued", row)

    def _start(self, row: int) -> Step:
        now, other, ahead = (self.of[name][row] for name in ("start", "waited_row", "ahead"))
        if self.reason[row] == "flag" and other >= 0:
            return [], "end", other
        if self.reason[row] == "dependency" and other >= 0:
            signalled = self.of["signal"][other] > 0 and self._set(other) > self.of["end"][other]
            point = "signalled" if signalled else "end"
            return [(self._at(point, other), DEPENDENCY)], point, other
        if now == self.of["issued"][row] or ahead < 0:
            return [], "issued", row
        return [], "end" if self.of["end"][ahead] == now else "flow", ahead

    def _issued(self, row: int) -> Step:
        begun, room, before = (self.of[name][row] for name in ("begun", "room", "before"))
        if room >= 0:
            return [(begun, QUEUE)], "start", room
        free = self.of["free"][row]
        late = [(begun, ISSUE), (free, UNKNOWN)]
        if before < 0:
            return late, OUT, -1
        return [*late, (free - self.of["signal"][before], ISSUE)], self._left(before), before

    def _signalled(self, row: int) -> Step:
        return [(self._set(row) - self.of["signal"][row], ISSUE)], self._left(row), row

    def _left(self, row: int) -> str:
        """The point of a row at which the scalar unit is done with it."""
        return "end" if self.waits.holds[row] else "issued"


def _last_rows(waits: Waits) -> dict[int, int]:
    """By launch, the row that ended last."""
    end, launch = waits.trace["end"], waits.trace["launch"]
    order = np.lexsort((end, launch))
    return {int(launch[row]): int(row) for row in order.tolist()}
