"""One side of a convolution from the other and the weights: dx, and forward, tile by tile.

    for each tile of a target plane:                       (positions x channels, sums in L0C)
        for each chunk of K (depth tap, channels, taps):   (image rows and weights: GM to L1)
            for each K step:                               (load3d: im2col to L0A; load2d: weights to L0B)
                sums += columns [m, k] x weights [k, n]
        sums to GM: rounded once

Images are NDC1HWC0, weights FRACTAL_Z in both directions; the way back reads them with a transposing load.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from kernels.davinci.added_bias import set_up_bias
from kernels.davinci.grid import Grid, Task
from kernels.davinci.image_program import ImageProgram
from kernels.davinci.sides import FRACTAL
from kernels.davinci.space import Rings
from kernels.davinci.terms import Absent
from kernels.davinci.tiles import ceil_to, most_box
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.memories import Buffer
from simulator.values.numerics import DType
from targets.schema import Target


@dataclass(frozen=True, slots=True)
class ImageTensors:
    """In main memory: source and target NDC1HWC0, weights FRACTAL_Z, a bias of the target in fp32 if there is one."""

    source: Buffer
    weights: Buffer
    target: Buffer
    bias: Buffer | None = None


class ConvImage:
    """The kernel of one launch."""

    kind = "conv"
    axes: tuple[str, ...] = ("n", "g", "d", "p", "c", "k")
    absent: Absent = "skipped"

    def __init__(
        self, name: str, grid: Grid, tensors: ImageTensors, operand: DType, rate: str, target: Target
    ) -> None:
        """A kernel for these tensors; `rate` is the cube's table."""
        self.name = name
        self.grid = grid
        self.tensors = tensors
        self.operand = operand
        self.rate = rate
        self.rings = Rings(target, operand)
        self.core_kinds = (self.rings.cube,)
        self._tasks: dict[tuple[int, int], list[Task]] = {}

    def tasks(self, rank: int, count: int) -> list[Task]:
        """What a core does."""
        if (rank, count) not in self._tasks:
            self._tasks[rank, count] = self.grid.tasks(rank, count)
        return self._tasks[rank, count]

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Tiles of the same planes, positions and channels: images and groups do not matter."""
        tasks = self.tasks(rank, count)
        return tuple((t.plane, t.tile, t.block) for t in tasks) or None

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:
        """(n, g, d, p, c) of a core's tiles."""
        return [task.origin for task in self.tasks(rank, count)]

    def setup(self, space: Space) -> None:
        """Rings in L1, L0 and on the way out."""
        sizes = ring_sizes(self.grid)
        t = self.grid.tiling
        less = "lower channels, taps, m or n of the tiling"
        space.ring("image", "l1", sizes["image"], self.operand, depth=t.l1_a, remedy=less)
        if t.weights != "l0b":
            space.ring("weights", "l1", sizes["weights"], self.operand, depth=t.l1_b, remedy=less)
        self.rings.set_up(space, sizes, t.l0c, self.tensors.target.dtype)
        if self.tensors.bias is not None:
            set_up_bias(space, self.rings.target, widest(self.grid), sizes["sums"])

    def program(self, core: Core) -> Iterator[Instruction]:
        """Tiles, chunks, steps."""
        return ImageProgram(self, core).instructions()

    def values(self, core: Core) -> Iterator[Instruction]:
        """The same: numbers are made by the instructions that are timed."""
        return self.program(core)


def widest(grid: Grid) -> int:
    """Channels of the widest tile, in whole blocks."""
    return max((count for _, count in grid.columns), default=1) * grid.sides.c0


def ring_sizes(grid: Grid) -> dict[str, int]:
    """Elements of each buffer, as large as the largest tile and chunk need; images in L1 with what spreads them."""
    t, c0 = grid.tiling, grid.sides.c0
    blocks = min(max(1, t.channels // c0), max(1, grid.source.blocks))
    taps = min(t.taps, grid.sides.plane_taps)
    rows, columns = most_box(grid.axes, t.m, t.walk == "rows", taps)
    m = max((tile.executed for tile in grid.tiles), default=1)
    n = max((grid.channels(count) for _, count in grid.columns), default=1)
    steps = min(max(1, t.k // c0), blocks * taps)
    return {
        "image": blocks * rows * columns * c0,
        "weights": (steps if t.weights == "step" else blocks * taps) * c0 * ceil_to(n, FRACTAL),
        "a": ceil_to(m, FRACTAL) * steps * c0,
        "b": ceil_to(n, FRACTAL) * steps * c0,
        "sums": ceil_to(m, FRACTAL) * ceil_to(n, FRACTAL),
    }
