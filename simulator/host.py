"""The instructions of a host core: loops of a program that computes in software, and the making of a worker.

A loop takes its operations' time or the time of its bytes on the link, whichever is longer: a core fetches lines ahead
while it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from simulator.instructions import Coords, Cost, Instruction
from simulator.memory.memories import View
from targets.schema import Target
from targets.tables import exact

PATH = "ddr->cache"
"""The path that the lines of a loop take, in both directions."""


class Work(NamedTuple):
    """How often a loop does what.

    Attributes:
        multiplies, adds: software fp32 operations.
        moves: elements that are loaded and stored.
        scatters: elements that are moved to places a page and more apart.
        taps: taps whose place is compared with the edges of the input.
        lines: lines that are reached at a stride and lie in no cache.
        pages: pages of a fresh mapping that are touched first.
        bytes: what is exchanged with the main memory.
    """

    multiplies: int = 0
    adds: int = 0
    moves: int = 0
    scatters: int = 0
    taps: int = 0
    lines: int = 0
    pages: int = 0
    bytes: int = 0


class HostLoop(Instruction):
    """A loop of the program.

    `workers` is how many cores work at the time: where they share what a core is made of, all are slower.
    """

    __slots__ = ("_values", "macs", "moved", "name", "work", "workers")
    engine = "alu"

    def __init__(
        self,
        name: str,
        work: Work,
        reads: tuple[View, ...],
        writes: tuple[View, ...],
        values: Callable[[], None],
        *,
        workers: int = 1,
        coords: Coords = (),
    ) -> None:
        """A loop that makes its numbers by `values`; the first read and write say where its bytes go."""
        super().__init__(reads, writes, coords)
        self.name = name
        self.work = work
        self.workers = workers
        self.macs = work.multiplies
        self.moved = work.bytes
        self._values = values

    def signature(self) -> Hashable:
        """What it does how often, and beside how many."""
        return ("loop", self.work, self.workers)

    def cost(self, target: Target) -> Cost:
        """The sum of its operations, and beside it its bytes on the path, in whole bursts."""
        cycles = loop_cycles(target, self.work, self.workers)
        if not self.work.bytes:
            return Cost(target.issue.vector_cycles, cycles)
        burst = target.link[target.path[PATH].link].burst_bytes
        charged = ceil(self.work.bytes / burst) * burst
        return Cost(
            target.issue.vector_cycles, target.path[PATH].start_cycles, PATH, charged, floor_cycles=cycles
        )

    def execute(self) -> None:
        """Compute the numbers."""
        self._values()


def loop_cycles(target: Target, work: Work, workers: int = 1) -> int:
    """Cycles of a loop's operations, rounded up once.

    Operations slow down linearly from 1 for one worker to `crowded_factor` for as many as there are cores.
    """
    spec = target.host_core
    pairs = (
        (work.multiplies, spec.multiply_cycles),
        (work.adds, spec.add_cycles),
        (work.moves, spec.move_cycles),
        (work.scatters, spec.scatter_cycles),
        (work.taps, spec.tap_cycles),
        (work.lines, spec.line_cycles),
        (work.pages, spec.page_cycles),
    )
    others = Fraction(workers - 1, max(1, target.groups - 1))
    slower = 1 + (exact(spec.crowded_factor) - 1) * others
    return ceil(slower * sum(count * exact(cycles) for count, cycles in pairs))


class Fork(Instruction):
    """A worker that the parent makes as number `turn` (counted from 1) of several, one after another."""

    __slots__ = ("turn",)
    engine = "alu"
    name = "fork"

    def __init__(self, turn: int) -> None:
        """The worker begins when it and those before it have been made."""
        super().__init__((), ())
        self.turn = turn

    def signature(self) -> Hashable:
        """Its turn."""
        return (self.name, self.turn)

    def cost(self, target: Target) -> Cost:
        """The parent's time for all workers up to this one."""
        return Cost(0, self.turn * target.host_core.fork_cycles)
