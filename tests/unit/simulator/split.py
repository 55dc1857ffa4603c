"""A machine of the chip with two kinds of cores, and kernels of lists for it."""

from collections.abc import Iterable
from math import prod
from pathlib import Path

import numpy as np

from simulator.instructions import Instruction
from simulator.kernel import Core
from simulator.machine import L2, Checks, Machine
from simulator.memory.memories import Buffer, fill_from
from simulator.results.trace import Trace
from targets.loader import load_target
from targets.schema import Target
from tests.unit.simulator.listed import FP32, ListKernel, Local, Program, Timeline
from tests.unit.targets.davinci import write_split

LOCALS = {"aic": (Local("l1", memory="l1"), Local("l0a", memory="l0a")), "aiv": (Local("ub", memory="ub"),)}
"""25 elements, 100 bytes, in each memory of a kind."""

BOTH = ("aic", "aiv")


class KindsKernel(ListKernel):
    """A kernel that says which kinds of cores it runs on."""

    def __init__(self, program: Program, *local: Local, kinds: tuple[str, ...] = BOTH):
        super().__init__(program, *(local or (each for kind in kinds for each in LOCALS.get(kind, ()))))
        self.core_kinds = kinds


def by_kind(**programs: Program) -> Program:
    """One program for each kind of core; nothing for the others."""

    def program(core: Core) -> Iterable[Instruction]:
        return programs[core.kind](core) if core.kind in programs else ()

    return program


class SplitBench:
    """A machine of one or both groups, with tensors in its main memory."""

    def __init__(
        self,
        folder: Path,
        groups: int = 1,
        *,
        more: str = "",
        changes: dict[str, str] | None = None,
        l2: L2 = "cold",
        checks: Checks | None = None,
        numerics: bool = False,
    ):
        self.target: Target = load_target(write_split(folder, changes, more))
        self.machine = Machine(self.target, range(groups), numerics=numerics, checks=checks, l2=l2)

    def tensor(self, name: str, *shape: int) -> Buffer:
        """A tensor of fp32 that holds 0, 1, 2, ..."""
        made = self.machine.tensor(name, shape, FP32)
        if self.machine.numerics:
            fill_from(made, np.arange(prod(shape), dtype=np.float32))
        return made

    def run(self, program: Program, *local: Local, kinds: tuple[str, ...] = BOTH) -> Trace:
        """Launch a program on all cores of some kinds."""
        self.machine.launch(KindsKernel(program, *local, kinds=kinds))
        return self.machine.trace()

    def timeline(self, program: Program, core: int, kinds: tuple[str, ...] = BOTH) -> Timeline:
        """What a core did in a launch."""
        return self.run(program, kinds=kinds).timeline(core)
