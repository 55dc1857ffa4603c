"""The tiny chip of `tiny.toml`, and a kernel that is a list of instructions for each core."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simulator.instructions import Copy, Instruction, Matmul
from simulator.kernel import Core, Space
from simulator.machine import Checks, Machine
from simulator.memory.memories import Buffer, View, fill_from
from simulator.results.trace import Trace
from simulator.values.numerics import dtype
from simulator.vector import Fill
from targets.loader import load_target
from targets.schema import Target

FP32 = dtype("fp32")
Timeline = list[tuple[int, int, str, str]]
Program = Callable[[Core], Iterable[Instruction]]
Overrides = Mapping[str, object]

TINY = Path(__file__).parent / "tiny.toml"
NOTHING: Overrides = {}
INSTANT: Overrides = {
    "issue.copy_cycles": 0,
    "issue.matmul_cycles": 0,
    "issue.vector_cycles": 0,
    "issue.barrier_cycles": 0,
    **{f"path.{path}.start_cycles": 0 for path in ("ddr->am", "am->ddr", "ddr->gsm", "gsm->am", "am->gsm")},
}
"""Nothing but streams and engines takes time."""


class Local(NamedTuple):
    """A ring of buffers that every core gets (or all share)."""

    name: str
    size: int = 25
    depth: int = 1
    memory: str = "am"
    common: bool = False


def tiny(overrides: Overrides = NOTHING) -> Target:
    """The tiny chip with some values changed."""
    return load_target(TINY, overrides)


class ListKernel:
    """A kernel whose programs are lists, made by a function of the core because views need its buffers."""

    axes: tuple[str, ...] = ()

    def __init__(
        self,
        program: Program,
        *local: Local,
        classes: Callable[[int], Hashable | None] = lambda rank: rank,
        name: str = "list",
        kind: str = "default",
    ):
        self._program = program
        self._local = local
        self._classes = classes
        self.name = name
        self.kind = kind

    def core_class(self, rank: int, count: int) -> Hashable | None:  # noqa: ARG002  (as kernels have it)
        """Each core for itself, unless told otherwise."""
        return self._classes(rank)

    def setup(self, space: Space) -> None:
        """Allocate the rings."""
        for ring in self._local:
            make = space.common_ring if ring.common else space.ring
            make(ring.name, ring.memory, ring.size, FP32, depth=ring.depth, remedy="lower the size")

    def program(self, core: Core) -> Iterator[Instruction]:
        """The list of a core."""
        yield from self._program(core)


class Bench:
    """A machine of the tiny chip, with tensors in DDR."""

    def __init__(
        self,
        cores: int = 1,
        overrides: Overrides = NOTHING,
        *,
        numerics: bool = False,
        checks: Checks | None = None,
    ):
        self.machine = Machine(tiny(overrides), range(cores), numerics=numerics, checks=checks)

    def tensor(self, name: str, *shape: int) -> Buffer:
        """A tensor of fp32 in DDR that holds 0, 1, 2, ..."""
        made = self.machine.tensor(name, shape, FP32)
        if self.machine.numerics:
            fill_from(made, np.arange(np.prod(shape), dtype=np.float32))
        return made

    def run(self, program: Program, *local: Local) -> Trace:
        """Launch one program on all cores, each for itself."""
        self.machine.launch(ListKernel(program, *local))
        return self.machine.trace()


def load(to: View, source: View, channel: int = 0, name: str = "load") -> Copy:
    """A copy on a DMA channel."""
    return Copy(to, source, channel=channel, name=name)


def store(to: View, source: View, channel: int = 1, name: str = "store") -> Copy:
    """A copy on the other DMA channel."""
    return Copy(to, source, channel=channel, name=name)


def fill(core: Core, ring: str, count: int = 25, step: int = 0) -> Fill:
    """Zero `count` elements of a buffer: as many cycles."""
    return Fill(all_of(core, ring, count, step))


def all_of(core: Core, ring: str, count: int = 25, step: int = 0, first: int = 0) -> View:
    """`count` elements of a core's buffer."""
    return core.rings[ring][step].dense((count,), first)


def row_times_column(out: Buffer, row: Buffer, column: Buffer, k: int = 25) -> Matmul:
    """The product of a row and a column of `k` elements: k cycles."""
    return Matmul(out.dense((1, 1)), row.dense((1, k)), column.dense((k, 1)), rate="fp32")
