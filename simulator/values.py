"""The numbers of a launch: its instructions are executed in the order in which they complete.

Time does not depend on numbers, so that the order is known before. A DMA may be made to land at its earliest or at its
latest legal moment instead: outputs of a right kernel do not differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simulator.instructions import Barrier, Copy, Instruction
from simulator.program import Program

DmaMode = Literal["modelled", "early", "late"]


def execute_in_order(programs: Mapping[int, Iterator[Instruction]]) -> None:
    """Execute programs core by core, each up to its next barrier, until all have ended.

    A legal order of any program without races: inside a core it is the order that hazards are derived from.
    """
    running = dict(programs)
    waiting: dict[int, Barrier] = {}
    while running:
        for core, program in list(running.items()):
            if core in waiting:
                continue
            barrier = _run_to_barrier(program)
            if barrier is None:
                del running[core]
            else:
                waiting[core] = barrier
        _open_barriers(waiting, set(programs))


def _run_to_barrier(program: Iterator[Instruction]) -> Barrier | None:
    for instruction in program:
        if isinstance(instruction, Barrier):
            return instruction
        instruction.execute()
    return None


def _open_barriers(waiting: dict[int, Barrier], everyone: set[int]) -> None:
    """Let the cores go whose barrier is complete; the event model has shown that one is."""
    for core, barrier in list(waiting.items()):
        members = everyone if barrier.cores is None else set(barrier.cores)
        if core in waiting and all(m in waiting and waiting[m].key == barrier.key for m in members):
            for member in members:
                del waiting[member]


class Timing:
    """When the instructions of one core started and ended, and the program that says what they waited for."""

    __slots__ = ("end", "program", "start")

    def __init__(self, program: Program, start: list[int], end: list[int]) -> None:
        """Keep the columns."""
        self.program = program
        self.start = start
        self.end = end


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
            for it starts, or the next barrier of its core ("late").
        observe: sees every instruction as it completes (in the modelled order only).
        numerics: whether to compute, or only to observe.
    """
    if not timings:
        return
    sources = {core: _Source(programs[core]) for core in timings}
    if dma == "late":
        _execute_late(timings, sources)
        return
    for core, entry in _order(timings, dma):
        instruction = sources[core].take(entry)
        if observe is not None:
            observe(core, entry, instruction)
        if numerics:
            instruction.execute()


def _order(timings: Mapping[int, Timing], dma: DmaMode) -> Iterator[tuple[int, int]]:
    """(core, entry) by the cycle of completion, then core, then place in the program."""
    cores, entries, keys = _columns(timings)
    key = keys["end"]
    phase = np.zeros(len(key), np.int8)
    if dma == "early":
        copies = np.concatenate([[bool(c.path) for c in t.program.cost] for t in timings.values()])
        key = np.where(copies, keys["start"], key)
        phase = copies.astype(np.int8)
    order = np.lexsort((entries, cores, phase, key))
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
        for name in ("start", "end")
    }
    return cores, entries, keys


def _execute_late(timings: Mapping[int, Timing], sources: Mapping[int, _Source]) -> None:
    """Starts land what they waited for; other instructions compute when they end; a barrier lands all of its core."""
    cores, entries, keys = _columns(timings)
    size = len(cores)
    order = np.lexsort(
        (
            np.tile(entries, 2),
            np.tile(cores, 2),
            np.repeat([1, 0], size),
            np.concatenate([keys["start"], keys["end"]]),
        )
    )
    pending: dict[int, dict[int, list[int]]] = {core: {} for core in timings}
    for event in order.tolist():
        core, entry, starts = int(cores[event % size]), int(entries[event % size]), event < size
        late = _Late(timings[core].program, sources[core], pending[core])
        instruction = sources[core].waiting.get(entry) or sources[core].peek(entry)
        if isinstance(instruction, Copy):
            if starts:
                late.begin(entry)
        elif starts:
            late.land(timings[core].program.need[entry])
        else:
            if isinstance(instruction, Barrier):
                late.land_all()
            sources[core].take(entry).execute()
    for core in timings:
        _Late(timings[core].program, sources[core], pending[core]).land_all()


class _Late:
    """Copies of one core that have started and not landed, by lane."""

    def __init__(self, program: Program, source: _Source, pending: dict[int, list[int]]) -> None:
        self._program = program
        self._source = source
        self._pending = pending

    def begin(self, entry: int) -> None:
        """A copy starts: what it waited for lands; it does not."""
        self.land(self._program.need[entry])
        self._pending.setdefault(self._program.lane[entry], []).append(entry)

    def land(self, need: dict[int, int]) -> None:
        """Land the copies of each lane up to the number that is needed."""
        for lane, number in need.items():
            held = self._pending.get(lane, [])
            while held and self._program.number[held[0]] <= number:
                self._source.take(held.pop(0)).execute()

    def land_all(self) -> None:
        """Land every copy, in the order of the program."""
        for entry in sorted(e for held in self._pending.values() for e in held):
            self._source.take(entry).execute()
        self._pending.clear()
