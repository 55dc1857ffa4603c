"""The depthwise input gradient on a DSP: no matrix product, a vector of channels a position (Cout = groups = Cin).

for each block of channels:                                  (its weights to the array memory, taps outermost)
    for each panel of dx:                                    (dy and dx to the array memory)
        dx += dy x weights, tap by tap, channel by channel   (one instruction)
                                                             (dx panel back)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NamedTuple

from kernels.dsp.dx.geometry import Block, Chunk, Geometry, Panel, Span, dy_hull
from kernels.dsp.dx.panels import scatter
from kernels.dsp.dx.shares import panels
from kernels.ft.tilings import DepthwiseTiling
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.boxes import load_box, store_box
from simulator.memory.memories import Buffer, View
from simulator.tiles import Loop, Step, walk
from simulator.values.numerics import DType, dtype
from simulator.vector import Cast, MultiplyAdd, Permute, Terms

LOAD_DY, LOAD_WEIGHTS, LOAD_DX, STORE = range(4)
"""DMA channels."""

SUMS = dtype("fp32")
"""What is summed in, whatever the operands are."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The dy that a panel reads, and what is added where; all of it relative to the panel.

    Attributes:
        corner: the first output row and column.
        frame: [images, rows, columns, channels] of dy; None where no output reaches the panel.
        terms: for each tap, the parts of dx and dy and the row of the weights.
        runs, positions: loops over columns, and positions that are added.
    """

    corner: tuple[int, int]
    frame: tuple[int, int, int, int] | None
    terms: Terms = ()
    runs: int = 0
    positions: int = 0


@lru_cache(maxsize=4096)
def _reach(g: Geometry, nb: int, h: int, hb: int, w: int, wb: int, gb: int) -> Reach:
    hull = dy_hull(g, (0, h, hb, w, wb))
    if hull is None:
        return Reach((0, 0), None)
    span = Span(0, hull[2], hull[3], hull[4], hull[5])
    panel = Panel(0, nb, 0, h, hb, w, wb, 0, gb, 0, 1)
    block = Block(0, g.taps, 0, 1, 0, 1, (span,))
    parts, runs, positions = scatter(g, panel, block, Chunk(0, nb, span))
    terms = []
    for target, (_, _, rows, cols, tap) in parts:
        assert isinstance(tap, int)  # noqa: S101  # scatter numbers the taps
        terms.append((target[:3], (slice(None), rows, cols), tap))
    return Reach((hull[2], hull[4]), (nb, hull[3], hull[5], gb), tuple(terms), runs, positions)


def reach(g: Geometry, panel: Panel) -> Reach:
    """What a panel reads and adds."""
    return _reach(g, panel.nb, panel.h, panel.hb, panel.w, panel.wb, panel.gb)


def origin(panel: Panel) -> tuple[int, ...]:
    """The first image, row, column and channel of a panel."""
    return (panel.n, panel.h, panel.w, panel.g)


class Channels(NamedTuple):
    """A block of channels [first, first + number), and the panels of a core that have them."""

    first: int
    number: int
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class DepthwiseTensors:
    """dy [N, OH, OW, C], w [C, taps], dx [N, H, W, C], in memories that a DMA reaches."""

    dy: Buffer
    w: Buffer
    dx: Buffer


class DepthwiseDx:
    """The kernel of one launch."""

    name = "conv_dx_depthwise"
    kind = "conv"
    axes: tuple[str, ...] = ("n", "h", "w", "c")

    def __init__(
        self, geometry: Geometry, tiling: DepthwiseTiling, tensors: DepthwiseTensors, operand: DType
    ) -> None:
        """A kernel for these tensors; dx is added to."""
        self.geometry = geometry
        self.tiling = tiling
        self.tensors = tensors
        self.operand = operand
        self.staged = operand is not SUMS
        self.turns = geometry.taps > 1

    def key(self) -> Hashable:
        """Geometry, tiling, type and memories."""
        t = self.tensors
        memories = (t.dy.memory, t.w.memory, t.dx.memory)
        return (type(self), self.geometry, self.tiling, self.operand.name, memories)

    def blocks(self, rank: int, count: int) -> tuple[Channels, ...]:
        """The channels of a core, block by block, with the panels that outputs reach."""
        found: dict[tuple[int, int], list[Panel]] = {}
        for panel in panels(self.geometry, self.tiling.panel_sizes, rank, count):
            if reach(self.geometry, panel).frame:
                found.setdefault((panel.g, panel.gb), []).append(panel)
        return tuple(Channels(g, gb, tuple(mine)) for (g, gb), mine in found.items())

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Blocks of as many channels, with panels of equal sizes that read as much."""
        every = self.blocks(rank, count)
        return tuple((b.number, tuple(self._cost_class(p) for p in b.panels)) for b in every) or None

    def _cost_class(self, panel: Panel) -> Hashable:
        found = reach(self.geometry, panel)
        return (panel.nb, panel.hb, panel.wb, found.frame, found.runs, found.positions)

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:
        """(n, h, w, c) of a core's panels."""
        return [origin(panel) for block in self.blocks(rank, count) for panel in block.panels]

    def setup(self, space: Space) -> None:
        """Rings of dy, dx and weights, as large as the largest panel of any core."""
        every = [b for core in space.cores for b in self.blocks(core.rank, core.count)]
        whole = [panel for block in every for panel in block.panels]
        dy = max((prod(reach(self.geometry, p).frame or (0,)) for p in whole), default=1)
        dx = max((p.nb * p.hb * p.wb * p.gb for p in whole), default=1)
        weights = max((b.number * self.geometry.taps for b in every), default=1)
        depth, less = 1 + self.tiling.ahead, "lower rows, cols or channels"
        space.ring("dy", "array", dy, self.operand, depth=depth, remedy=less)
        space.ring("dx", "array", dx, SUMS, depth=1 if self.staged else depth, remedy=less)
        if self.staged:
            space.ring("dx_given", "array", dx, self.operand, depth=depth, remedy=less)
        space.ring("weights", "array", weights, self.operand, depth=depth, remedy="lower channels")
        if self.turns:
            space.ring("weights_turned", "array", weights, self.operand, remedy="lower channels")

    def program(self, core: Core) -> Iterator[Instruction]:
        """Blocks of channels, panels of each."""
        stages = _Stages(self, core)
        mine = self.blocks(core.rank, core.count)
        ahead = self.tiling.ahead
        loops = (
            Loop(lambda _: mine, load=stages.load_weights, enter=stages.turn_weights, ahead=ahead),
            Loop(
                lambda up: up.tile.panels if up else (),
                load=stages.load_panel,
                store=stages.store_panel,
                ahead=ahead,
            ),
        )
        return walk(loops, stages.compute)


class _Stages:
    """What one core does for a block of channels, and for each panel of it."""

    def __init__(self, kernel: DepthwiseDx, core: Core) -> None:
        self.kernel = kernel
        self.rings = core.rings
        self.taps = kernel.geometry.taps

    def load_weights(self, step: Step) -> Iterable[Instruction]:
        """[channels, taps], as they are given."""
        block: Channels = step.tile
        local, size = self.rings["weights"][step.ordinal], (block.number, self.taps)
        source = self.kernel.tensors.w
        return load_box(local, source, (block.first, 0), size, channel=LOAD_WEIGHTS, name="load_w")

    def turn_weights(self, step: Step) -> Iterator[Instruction]:
        """[taps, channels], so that a register holds channels."""
        if self.kernel.turns:
            given = self.rings["weights"][step.ordinal].dense((step.tile.number, self.taps))
            yield Permute(self.rings["weights_turned"][0].dense((self.taps, step.tile.number)), given, (1, 0))

    def load_panel(self, step: Step) -> Iterator[Instruction]:
        """The dy that a panel reads, and dx, which is added to."""
        panel: Panel = step.tile
        found, tensors = reach(self.kernel.geometry, panel), self.kernel.tensors
        local, place = self.rings["dy"][step.ordinal], (panel.n, *found.corner, panel.g)
        frame, coords = found.frame or (0, 0, 0, 0), origin(panel)
        yield from load_box(local, tensors.dy, place, frame, channel=LOAD_DY, coords=coords, name="load_dy")
        yield from load_box(
            self._given(step), tensors.dx, *_box(panel), channel=LOAD_DX, coords=coords, name="load_dx"
        )

    def _given(self, step: Step) -> Buffer:
        """Where dx arrives, in the operands' type."""
        return self.rings["dx_given" if self.kernel.staged else "dx"][step.ordinal]

    def compute(self, step: Step) -> Iterator[Instruction]:
        """All taps of a panel, summed in fp32 and rounded once."""
        panel: Panel = step.tile
        found, coords = reach(self.kernel.geometry, panel), origin(panel)
        shape = (panel.nb, panel.hb, panel.wb, panel.gb)
        total = self.rings["dx"][step.ordinal].dense(shape)
        given = self._given(step).dense(shape)
        if self.kernel.staged:
            yield Cast(total, given, coords=coords)
        source = self.rings["dy"][step.ordinal].dense(found.frame or (0, 0, 0, 0))
        yield MultiplyAdd(
            total,
            source,
            self._factors(step),
            found.terms,
            runs=found.runs,
            positions=found.positions,
            coords=coords,
        )
        if self.kernel.staged:
            yield Cast(given, total, coords=coords)

    def _factors(self, step: Step) -> View:
        """The weights of the panel's channels, [taps, channels]."""
        ordinal = 0 if self.kernel.turns or step.up is None else step.up.ordinal
        ring = self.rings["weights_turned" if self.kernel.turns else "weights"]
        return ring[ordinal].dense((self.taps, step.tile.gb))

    def store_panel(self, step: Step) -> Iterable[Instruction]:
        """Dx is complete."""
        panel: Panel = step.tile
        dx, coords = self.kernel.tensors.dx, origin(panel)
        return store_box(dx, *_box(panel), self._given(step), channel=STORE, coords=coords, name="store_dx")


def _box(panel: Panel) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """First index and size of a panel in dx [N, H, W, C]."""
    return (panel.n, panel.h, panel.w, panel.g), (panel.nb, panel.hb, panel.wb, panel.gb)
