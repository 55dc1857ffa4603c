"""The bias of a forward convolution: the cube's sums begin at it, or the vector unit adds it on the way out.

Chips with a bias table bring the bias of a tile's channels to L1 and on to the table, and the first product of the tile
starts from it: nothing is added by itself. On the first generation results pass UB anyway: there the vector unit adds
it to the fp32 sums before they are rounded. Tiles of the same channels that follow each other share what was brought.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernels.davinci.fit import SUM_BYTES
from kernels.davinci.grid import Grid, Task
from kernels.davinci.moving import StepMove
from simulator.cube import Move
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.memories import Buffer, View
from simulator.tiles import Step
from simulator.values.numerics import dtype
from targets.schema import Target

BUFFERS = 2
"""In the memory that the bias is brought to ahead of its tile."""


def has_table(target: Target) -> bool:
    """Whether the cube takes a bias from a table."""
    return "l1->bt" in target.path


def bias_fits(target: Target, widest: int, sums: int, item_bytes: int) -> bool:
    """Whether the bias of a tile with so many channels fits: in its table, or in UB beside fp32 sums and the result."""
    if has_table(target):
        return widest * SUM_BYTES <= target.memory["bt"].size_bytes
    used = BUFFERS * widest * SUM_BYTES + sums * (SUM_BYTES + item_bytes)
    return used + 3 * target.memory["ub"].align_bytes <= target.memory["ub"].size_bytes


def set_up_bias(space: Space, target: Target, widest: int, sums: int) -> None:
    """Ask for the bias' buffers, and for fp32 sums in UB where they are added there.

    Raises:
        CapacityError: they have no room.
    """
    less, fp32 = "lower m or n of the tiling", dtype("fp32")
    if has_table(target):
        space.ring("bias", "l1", widest, fp32, depth=BUFFERS, remedy=less)
        space.ring("table", "bt", widest, fp32, remedy=less)
        return
    space.ring("bias", "ub", widest, fp32, depth=BUFFERS, remedy=less)
    space.ring("summed", "ub", sums, fp32, remedy=less)


class AddedBias:
    """The bias of the tiles of one core."""

    def __init__(self, core: Core, grid: Grid, bias: Buffer, tasks: Sequence[Task], target: Target) -> None:
        """`bias` is [groups x blocks x C0], in fp32."""
        self.core = core
        self.grid = grid
        self.bias = bias
        self.table = has_table(target)
        self.runs: list[int] = []
        for before, task in zip([None, *tasks], tasks, strict=False):
            same = before is not None and (before.g, before.block, before.blocks) == (
                task.g,
                task.block,
                task.blocks,
            )
            self.runs.append(0 if before is None else self.runs[-1] + (not same))

    def _first(self, step: Step) -> bool:
        return step.ordinal == 0 or self.runs[step.ordinal] != self.runs[step.ordinal - 1]

    def _brought(self, step: Step) -> View:
        """Where the bias of a tile was brought to, [blocks x C0]."""
        task: Task = step.tile
        return self.core.rings["bias"][self.runs[step.ordinal]].dense((task.blocks * self.grid.sides.c0,))

    def load(self, step: Step) -> Iterator[Instruction]:
        """From main memory, ahead of the tile."""
        if not self._first(step):
            return
        task, c0 = step.tile, self.grid.sides.c0
        first = (task.g * self.grid.target.blocks + task.block) * c0
        place = self.bias.box((first,), (task.blocks * c0,))
        yield Move(self._brought(step), place, coords=(*task.origin, -1), name="load_bias")

    def enter(self, step: Step) -> Iterator[Instruction]:
        """To the table, when the tile begins."""
        if self.table and self._first(step):
            place = self.begin(step)
            yield StepMove(place, self._brought(step), coords=(*step.tile.origin, -1), name="bias_table")

    def begin(self, step: Step) -> View:
        """What the sums of a tile begin at, [blocks x C0], in the table."""
        return self.core.rings["table"][0].dense((step.tile.blocks * self.grid.sides.c0,))

    def added(self, step: Step) -> View | None:
        """What is added to a tile on its way out, [1, 1, blocks, 1, C0] in UB; None where its sums began at it."""
        if self.table:
            return None
        shape = (1, 1, step.tile.blocks, 1, self.grid.sides.c0)
        return self.core.rings["bias"][self.runs[step.ordinal]].dense(shape)
