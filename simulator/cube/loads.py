"""Loads from L1 to L0A and L0B: whole fractals, and columns of an image (im2col)."""

from __future__ import annotations

from collections.abc import Hashable
from math import ceil, prod

from simulator.cube.fractals import BLOCK_BYTES, FRACTAL_BYTES, fractals, table_of
from simulator.cube.window import Window, columns, spans
from simulator.errors import ProgramError
from simulator.instructions import Coords, Cost, Instruction
from simulator.memory.memories import View
from targets.schema import Load3dSpec, Target


class Load2d(Instruction):
    """Copy a matrix from L1 to dst [m, k] in L0A or [k, n] in L0B, fractal by fractal.

    `count` instructions do it, each of which pays its start and its issue.
    """

    __slots__ = ("_axes", "count", "fractals", "moved", "transpose")
    engine = "mte1"
    name = "load2d"

    def __init__(
        self,
        dst: View,
        src: View,
        *,
        transpose: bool = False,
        axes: tuple[int, ...] | None = None,
        count: int = 1,
        coords: Coords = (),
    ) -> None:
        """Load `src`, seen with its axes in the order `axes` (a transposing load: backwards) and in dst's shape.

        Raises:
            ProgramError: the sizes or types differ.
        """
        _check_sizes(dst, src)
        super().__init__((src,), (dst,), coords)
        self.fractals = _fractals_of(dst)
        self.moved = dst.range.bytes
        self.transpose = transpose
        self.count = count
        self._axes = axes if axes or not transpose else tuple(reversed(range(len(src.shape))))

    def signature(self) -> Hashable:
        """Destination, fractals, direction and count."""
        return (self.name, self.writes[0].buffer.memory, self.fractals, self.transpose, self.count)

    def cost(self, target: Target) -> Cost:
        """Whole fractals at the rate of the destination, and the start of each instruction.

        Raises:
            ProgramError: the target has no such load.
        """
        spec = table_of(target.load2d, "load2d", self.writes[0].buffer.memory, target.name)
        rate = spec.transposed_bytes_per_cycle if self.transpose else spec.bytes_per_cycle
        start = spec.transposed_start_cycles if self.transpose else spec.start_cycles
        cycles = ceil(self.count * start + self.fractals * FRACTAL_BYTES / rate)
        issue = self.count * (target.issue.load2d_cycles or 0)
        return Cost(issue, cycles, idle_cycles=spec.idle_cycles)

    def execute(self) -> None:
        """Move the numbers."""
        values = self.reads[0].array()
        self.writes[0].put(values if self._axes is None else values.transpose(self._axes))


class Load3d(Instruction):
    """Make columns of an image in L1: dst [positions, taps x channels] in L0A, or the same matrix as [k, n] in L0B.

    The source is [height, width, C], or [blocks, height, width, C0]; the columns of dst are counted block by block, in
    it tap by tap, in it channel by channel. `count` instructions do it, each of which pays its start and its issue.
    """

    __slots__ = ("blocks", "count", "moved", "units", "window")
    engine = "mte1"
    name = "load3d"

    def __init__(self, dst: View, src: View, window: Window, *, count: int = 1, coords: Coords = ()) -> None:
        """Load the rows and columns of `window` that dst has room for.

        Raises:
            ProgramError: dst is no matrix of whole blocks of columns, or the source is no image.
        """
        channels, blocks = src.shape[-1], 1 if len(src.shape) == 3 else src.shape[0]  # H, W, C
        units, rest = divmod(dst.shape[-1], channels)
        there = blocks * len(window.taps) - window.unit
        if len(dst.shape) != 2 or len(src.shape) not in (3, 4) or rest or units > there:  # as said
            raise ProgramError(
                "an im2col of sizes that do not fit",
                where=f"{src.buffer.name} -> {dst.buffer.name}",
                got=f"{src.shape} with {len(window.taps)} taps from block {window.unit} -> {dst.shape}",
            )
        super().__init__((src,), (dst,), coords)
        self.units = units
        self.blocks = ceil(channels * dst.buffer.dtype.size_bytes / BLOCK_BYTES)
        self.moved = dst.range.bytes
        self.window = window
        self.count = count

    def signature(self) -> Hashable:
        """Destination, fractals by the rows they span, stride and count."""
        return (
            self.name,
            self.writes[0].buffer.memory,
            spans(self.window, self.writes[0].shape[0]),
            self.window.step[1],
            self.units * self.blocks,
            self.count,
        )

    def cost(self, target: Target) -> Cost:
        """The cycles of each fractal by the rows that it spans, and the start of each instruction.

        Raises:
            ProgramError: the target has no such load.
        """
        spec = table_of(target.load3d, "load3d", self.writes[0].buffer.memory, target.name)
        found = spans(self.window, self.writes[0].shape[0])
        column = sum(many * fractal_cycles(spec, rows, self.window.step[1]) for rows, many in found)
        cycles = ceil(self.count * spec.start_cycles + self.units * self.blocks * column)
        issue = self.count * (target.issue.load3d_cycles or 0) + (target.issue.load3d_setup_cycles or 0)
        return Cost(issue, cycles, idle_cycles=spec.idle_cycles)

    def execute(self) -> None:
        """Gather; what is not in the image is zero."""
        source, dst = self.reads[0].array(), self.writes[0]
        image = source if len(source.shape) == 4 else source[None]  # [blocks, height, width, C0]
        dst.put(columns(image, self.window, dst.shape[0], self.units))


def fractal_cycles(spec: Load3dSpec, rows: int, stride: int) -> float:
    """Cycles of a fractal whose positions span `rows` rows of the image, at a column stride.

    The rule is that of the appendix on cube performance in the documentation of the Ascend C kit
    (mirror-cann/asc-devkit), bytes a cycle turned into cycles of a fractal.
    """
    if stride not in spec.fast_strides:
        return spec.most_cycles + spec.extra_cycles
    cycles = spec.stride_cycles * stride + (rows if rows > 1 else 0)
    return (min(cycles, spec.most_cycles) if stride == 1 else cycles) + spec.extra_cycles


def _fractals_of(dst: View) -> int:
    """Fractals of a matrix in L0A [m, k] or L0B [k, n].

    Raises:
        ProgramError: it is no matrix.
    """
    if len(dst.shape) != 2:  # a matrix has two axes
        raise ProgramError("a load to what is no matrix", where=dst.buffer.name, got=dst.shape)
    k, other = dst.shape if dst.buffer.memory == "l0b" else reversed(dst.shape)
    return fractals(other, k, dst.buffer.dtype.size_bytes)


def _check_sizes(dst: View, src: View) -> None:
    if prod(dst.shape) != prod(src.shape) or dst.buffer.dtype is not src.buffer.dtype:
        raise ProgramError(
            "a load between unlike ranges",
            where=f"{src.buffer.name} -> {dst.buffer.name}",
            got=f"{src.shape} {src.buffer.dtype.name} -> {dst.shape} {dst.buffer.dtype.name}",
        )
