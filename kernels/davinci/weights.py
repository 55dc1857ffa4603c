"""The gradient of the weights: dy^T x im2col(x), a tile of dw at a time, summed over positions.

    for each tile of dw, and each chunk or all of them:    (strided channels x (channels, taps), sums in L0C)
        for each chunk of positions:                       (rows of both images: GM to L1)
            for each step of positions:                    (load2d turns dy to L0A; load3d: im2col to L0B)
                sums += dy^T [m, k] x columns [k, n]
        sums are added to dw in GM: fp32, so that cores share a tile

Images are NDC1HWC0, dw is FRACTAL_Z in fp32 and has to be zero before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from kernels.davinci.space import Rings
from kernels.davinci.sums import Sum, WeightGrid
from kernels.davinci.terms import Absent
from kernels.davinci.tiles import most_box
from kernels.davinci.weights_program import WeightsProgram
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.memories import Buffer
from simulator.values.numerics import DType, dtype
from targets.schema import Target


@dataclass(frozen=True, slots=True)
class WeightTensors:
    """In main memory: both images NDC1HWC0, dw FRACTAL_Z in fp32."""

    small: Buffer
    large: Buffer
    dw: Buffer


class ConvWeights:
    """The kernel of one launch."""

    name = "conv_dw"
    kind = "conv"
    axes: tuple[str, ...] = ("g", "kd", "m", "c", "n", "d", "p", "chunk")
    absent: Absent = "skipped"

    def __init__(
        self, grid: WeightGrid, tensors: WeightTensors, operand: DType, rate: str, target: Target
    ) -> None:
        """A kernel for these tensors; `rate` is the cube's table."""
        self.grid = grid
        self.tensors = tensors
        self.operand = operand
        self.rate = rate
        self.rings = Rings(target, operand)
        self.core_kinds = (self.rings.cube,)
        self._sums: dict[int, list[Sum]] = {}

    def sums(self, rank: int) -> list[Sum]:
        """What a core does."""
        if rank not in self._sums:
            self._sums[rank] = self.grid.sums(rank)
        return self._sums[rank]

    def core_class(self, rank: int, count: int) -> Hashable | None:  # noqa: ARG002  # as the machine calls it
        """Tiles and pieces of equal sizes at equal places: images and groups do not matter."""
        return tuple(each.key() for each in self.sums(rank)) or None

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:  # noqa: ARG002  # as the machine calls it
        """(g, kd, m, c, n, d, p) of a core's sums."""
        return [each.origin for each in self.sums(rank)]

    def setup(self, space: Space) -> None:
        """Rings in L1, L0 and on the way out."""
        sizes, t = weight_ring_sizes(self.grid), self.grid.tiling
        less = "lower dw.rows, dw.columns, dw.m or dw.n"
        space.ring("small", "l1", sizes["small"], self.operand, depth=t.l1_a, remedy=less)
        space.ring("large", "l1", sizes["large"], self.operand, depth=t.l1_b, remedy=less)
        self.rings.set_up(space, sizes, t.l0c, dtype("fp32"))

    def program(self, core: Core) -> Iterator[Instruction]:
        """Sums, chunks, steps."""
        return WeightsProgram(self, core).instructions()

    def values(self, core: Core) -> Iterator[Instruction]:
        """The same: numbers are made by the instructions that are timed."""
        return self.program(core)


def weight_ring_sizes(grid: WeightGrid) -> dict[str, int]:
    """Elements of each buffer, as large as the largest tile and piece need."""
    s, t = grid.sides, grid.tiling
    c0, taps = s.c0, s.plane_taps
    units = min(max(1, t.n // c0), s.large.blocks * taps)
    blocks = min(s.large.blocks, (units - 2) // taps + 2 if units > 1 else 1)
    across = taps if blocks > 1 or t.window == "kernel" else units
    m = min(t.m, s.small.blocks * c0)
    height, width = s.small_size[1:]
    positions = min(height * width, t.rows * width if t.columns >= width else t.columns)
    rows, columns = most_box(grid.axes, positions, False, across)
    step = min(t.k, positions)
    return {
        "small": m * positions,
        "large": blocks * rows * columns * c0,
        "a": grid.widest * _fractal(step, c0),
        "b": _fractal(units * c0, 16) * _fractal(step, c0),
        "sums": grid.widest * _fractal(units * c0, 16),
    }


def _fractal(size: int, unit: int) -> int:
    return -(-size // unit) * unit
