"""The numbers of a launch: its instructions are executed in the order in which they complete.

Time does not depend on numbers, so that the order is known before. A DMA may be made to land at its earliest or at its
latest legal moment instead: outputs of a right kernel do not differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simulator.instructions import BARRIER, FLAG_SET, Instruction
from simulator.timing.program import Program

DmaMode = Literal["modelled", "early", "late"]


class Timing:
    """When the instructions of one core started and ended, and the program that says what they waited for.

    `turn` is the place of each end among all of the launch: what ends in one cycle may depend on each other.
    """

    __slots__ = ("end", "program", "start", "turn")

    def __init__(self, program: Program, start: list[int], end: list[int], turn: list[int]) -> None:
        """Keep the columns."""
        self.program = program
        self.start = start
        self.end = end
        self.turn = turn


class _Source:
    """The instructions of one core, made when they are asked for, and dropped when they are done."""

    __slots__ = ("_made", "_program", "waiting")

    def __init__(self, program: Iterator[Instruction]) -> None:
        self._program = program
        self._made = 0
        self.waiting: dict[int, Instruction] = {}

    def peek(self, entry: int) -> Instruction:
        """Instruction number `entry`."""
        while self._made <= entry:
            self.waiting[self._made] = next(self._program)
            self._made += 1
        return self.waiting[entry]

    def take(self, entry: int) -> Instruction:
        """Instruction number `entry`, for the last time."""
        instruction = self.peek(entry)
        del self.waiting[entry]
        return instruction


Observer = Callable[[int, int, Instruction], None]
"""Called with (core, entry, instruction) as each instruction completes."""


def execute(
    timings: Mapping[int, Timing],
    programs: Mapping[int, Iterator[Instruction]],
    dma: DmaMode = "modelled",
    observe: Observer | None = None,
    numerics: bool = True,
) -> None:
    """Execute the programs of all cores of a launch.

    Args:
        timings: core -> when its instructions ran.
        programs: core -> its instructions, made anew.
        dma: when a copy lands: when it ends; when it starts ("early"); or just before the first instruction that waits
            for it starts, the next flag is set by its engine, or the next barrier of its core opens ("late").
        observe: sees every instruction as it completes.
        numerics: whether to compute, or only to observe.
    """
    if not timings:
        return
    sources = {core: _Source(programs[core]) for core in timings}
    if dma == "late":
        _execute_late(timings, sources, observe, numerics)
        return
    for core, entry in _order(timings, dma):
        instruction = sources[core].take(entry)
        if observe is not None:
            observe(core, entry, instruction)
        if numerics:
            instruction.execute()


def _order(timings: Mapping[int, Timing], dma: DmaMode) -> Iterator[tuple[int, int]]:
    """(core, entry) in the order of completion; equal cores, which complete at once, one after the other."""
    cores, entries, keys = _columns(timings)
    key = keys["end"]
    phase = np.zeros(len(key), np.int8)
    if dma == "early":
        copies = np.concatenate([[bool(c.path) for c in t.program.cost] for t in timings.values()])
        key = np.where(copies, keys["start"], key)
        phase = copies.astype(np.int8)
    order = np.lexsort((cores, keys["turn"], phase, key))
    return zip(cores[order].tolist(), entries[order].tolist(), strict=True)


def _columns(
    timings: Mapping[int, Timing],
) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[str, NDArray[np.int64]]]:
    sizes = [len(t.start) for t in timings.values()]
    cores = np.repeat(np.array(list(timings), np.int64), sizes)
    entries = (
        np.concatenate([np.arange(size, dtype=np.int64) for size in sizes])
        if sizes
        else np.zeros(0, np.int64)
    )
    keys = {
        name: np.array([v for t in timings.values() for v in getattr(t, name)], np.int64)
        for name in ("start", "end", "turn")
    }
    return cores, entries, keys


def _execute_late(
    timings: Mapping[int, Timing], sources: Mapping[int, _Source], observe: Observer | None, numerics: bool
) -> None:
    """Starts land what they waited for; other instructions compute when they end."""
    late = {core: _Late(timing.program, sources[core], numerics) for core, timing in timings.items()}
    for core, entry, starts in _starts_and_ends(timings):
        if starts:
            late[core].start(entry)
            continue
        if observe is not None:
            observe(core, entry, sources[core].peek(entry))
        late[core].end(entry)
    for each in late.values():
        each.land_all()


def _starts_and_ends(timings: Mapping[int, Timing]) -> Iterator[tuple[int, int, bool]]:
    """(core, entry, whether it starts): ends of a cycle first, then starts; what takes no time starts before."""
    cores, entries, keys = _columns(timings)
    size = len(cores)
    time, turn = np.concatenate([keys["start"], keys["end"]]), np.tile(keys["turn"], 2)
    after_ends = np.concatenate([keys["start"] < keys["end"], np.zeros(size, bool)])
    order = np.lexsort((np.repeat([0, 1], size), np.tile(cores, 2), turn, after_ends, time))
    starts = order < size
    order %= size
    return zip(cores[order].tolist(), entries[order].tolist(), starts.tolist(), strict=True)


class _Late:
    """Copies of one core that have started and not landed, by lane."""

    def __init__(self, program: Program, source: _Source, numerics: bool) -> None:
        self._program = program
        self._source = source
        self._numerics = numerics
        self._pending: dict[int, list[int]] = {}

    def start(self, entry: int) -> None:
        """An instruction starts: what it waited for lands; a copy is on its way."""
        for lane, number in self._program.need[entry].items():
            self._land(lane, number)
        if self._program.cost[entry].path:
            self._pending.setdefault(self._program.lane[entry], []).append(entry)

    def end(self, entry: int) -> None:
        """An instruction ends: a barrier lands all copies, a flag those of its engine; a copy itself does not land."""
        kind = self._program.kind[entry]
        if kind == BARRIER:
            self.land_all()
        elif kind == FLAG_SET:
            self._land(self._program.lane[entry], self._program.number[entry])
        if not self._program.cost[entry].path:
            self._execute(entry)

    def land_all(self) -> None:
        """Land every copy, in the order of the program."""
        for entry in sorted(e for held in self._pending.values() for e in held):
            self._execute(entry)
        self._pending.clear()

    def _land(self, lane: int, number: int) -> None:
        """Land the copies of a lane up to a number."""
        held = self._pending.get(lane, [])
        while held and self._program.number[held[0]] <= number:
            self._execute(held.pop(0))

    def _execute(self, entry: int) -> None:
        instruction = self._source.take(entry)
        if self._numerics:
            instruction.execute()
