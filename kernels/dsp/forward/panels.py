"""What is known of a panel of y before its program runs: the box of x, its blocks of taps, and their products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product as pairs

from kernels.dsp.dx.geometry import Block, Chunk, Panel, Span, chunks, pieces
from kernels.dsp.dx.panels import BlockPlan, PanelPlan, Planner, Product
from kernels.dsp.dx.tiling import DxTiling
from kernels.dsp.forward.geometry import ForwardGeometry, input_rows, joins_taps, tap_runs
from kernels.dsp.taps import TapRun
from simulator.instructions import Parts
from simulator.memory.memories import Buffer, View, packed_strides
from simulator.memory.ranges import collapse

Source = tuple[Buffer, tuple[int, ...] | None, tuple[int, ...]]
"""A buffer, its frame, and the first index."""


@dataclass(frozen=True, slots=True)
class RowCopy:
    """Rows of x that one DMA brings in: `size` [images, 1, rows, columns, channels] from `source`, for each tap.

    Attributes:
        place: (image, row, column, first tap) of the product.
        source: (image, plane, row, column, channel) within the x of the panel.
        size: images, planes, rows, columns, channels.
        taps: how many neighbouring taps, which lie side by side in x as in the product's rows.
    """

    place: tuple[int, int, int, int]
    source: tuple[int, int, int, int, int]
    size: tuple[int, int, int, int, int]
    taps: int

    def read(self, source: Source, geometry: ForwardGeometry) -> View:
        """What it reads, [images, 1, rows, columns, taps x channels]."""
        (buffer, frame, start), steps = source, (1, 1, geometry.h.stride, geometry.w.stride)
        if self.taps == 1:
            return buffer.strided(start, self.size, (*steps, 1), frame=frame)
        return buffer.windows(start, self.size[:4], steps, self.taps * self.size[4], frame=frame)


@dataclass(frozen=True, slots=True)
class OutputChunk(Product):
    """Outputs that all have `taps` taps of the block, from its tap `first`; `place` is their (image, row, column).

    `size` is that of their rows of x, [images, rows, columns, groups, taps, channels].

    Attributes:
        copies: what brings its rows in.
    """

    first: int
    taps: int
    copies: tuple[RowCopy, ...]

    @property
    def cost(self) -> tuple[object, ...]:
        """What its instructions' cost depends on, beside the block."""
        return self.size, tuple((*copy.size, copy.taps) for copy in self.copies)


@lru_cache(maxsize=64)
def planner(geometry: ForwardGeometry, tiling: DxTiling) -> ForwardPlanner:
    """The planner of a geometry and a tiling: calls that repeat share their plans."""
    return ForwardPlanner(geometry, tiling)


class ForwardPlanner(Planner):
    """Makes the plans of panels of y, each once."""

    _geometry: ForwardGeometry

    def _make(self, panel: Panel) -> PanelPlan:
        g = self._geometry
        hull = g.hull(panel.d, panel.h, panel.hb, panel.w, panel.wb)
        if hull is None or g.cog == 0:
            return self._nothing(panel)
        corner = (hull[0], hull[2], hull[4])
        frame = (panel.nb, hull[1], hull[3], hull[5], panel.gb * g.cog)
        blocks = tuple(self._output_blocks(panel, corner, frame))
        return PanelPlan(frame, corner, blocks)

    def _output_blocks(
        self, panel: Panel, corner: tuple[int, int, int], frame: tuple[int, ...]
    ) -> Iterator[BlockPlan]:
        """Blocks of one kernel row each: some of its columns, some channels of y, a piece of those of x."""
        g, t = self._geometry, self._tiling
        for k, kb in pieces(g.cog, t.k if panel.gb == 1 else g.cog):
            for kd, kh, first, end in input_rows(g, panel.d, panel.h, panel.hb):
                for kw, taps in pieces(g.w.kernel, t.block_taps):
                    runs = tap_runs(g, kw, taps, panel.w, panel.wb)
                    tap = (kd * g.h.kernel + kh) * g.w.kernel + kw
                    for c, cb in (
                        pieces(panel.cb, t.block_channels if panel.gb == 1 else panel.cb) if runs else ()
                    ):
                        spans = tuple(Span(panel.d, first, end - first, r.ow, r.end - r.ow) for r in runs)
                        block = Block(tap, taps, panel.c + c, cb, k, kb, spans)
                        yield self._output_block(panel, block, runs, corner, frame)

    def _output_block(
        self,
        panel: Panel,
        block: Block,
        runs: tuple[TapRun, ...],
        corner: tuple[int, int, int],
        frame: tuple[int, ...],
    ) -> BlockPlan:
        made: list[OutputChunk] = []
        whole: list[OutputChunk] = []
        for run, span in zip(runs, block.spans, strict=True):
            cut = chunks((span,), panel.nb, self._tiling.positions)
            made += [self._product(panel, block, run, chunk, corner, frame) for chunk in cut]
            whole.append(self._product(panel, block, run, Chunk(0, panel.nb, span), corner, frame))
        size = (panel.gb, block.taps, block.kb, block.cb)
        return BlockPlan(block, (0, block.tap, block.k, block.c), size, tuple(made), tuple(whole))

    def _product(
        self,
        panel: Panel,
        block: Block,
        run: TapRun,
        chunk: Chunk,
        corner: tuple[int, int, int],
        frame: tuple[int, ...],
    ) -> OutputChunk:
        span, channels = chunk.span, slice(block.c - panel.c, block.c - panel.c + block.cb)
        box = (
            slice(chunk.i, chunk.i + chunk.ib),
            slice(span.oh - panel.h, span.oh - panel.h + span.rows),
            slice(span.ow - panel.w, span.ow - panel.w + span.cols),
        )
        parts: Parts = (((*box, slice(None), channels), (slice(None),) * 5),)
        return OutputChunk(
            m=chunk.ib * span.rows * span.cols,
            place=(chunk.i, span.oh - panel.h, span.ow - panel.w),
            size=(chunk.ib, span.rows, span.cols, panel.gb, run.taps, block.kb),
            seen=(panel.gb, chunk.ib, span.rows, span.cols, block.cb),
            parts=parts,
            first=run.first,
            taps=run.taps,
            copies=self._copies(panel, block, run, chunk, corner, frame),
        )

    def _copies(
        self,
        panel: Panel,
        block: Block,
        run: TapRun,
        chunk: Chunk,
        corner: tuple[int, int, int],
        frame: tuple[int, ...],
    ) -> tuple[RowCopy, ...]:
        """One box of x a tap or a run of taps, or its slices by image and row where it has more than two levels."""
        g, span, found = self._geometry, chunk.span, []
        kd, rest = divmod(block.tap, g.h.kernel * g.w.kernel)
        kh, kw = divmod(rest, g.w.kernel)
        plane, row = g.d.place(span.od, kd) - corner[0], g.h.place(span.oh, kh) - corner[1]
        wide, on_chip = panel.gb * block.kb, self._tiling.dy_in_gsm
        taps = run.taps if joins_taps(g, panel.gb, wide) else 1
        images, rows = _cut(g, (chunk.ib, span.rows, span.cols, taps * wide), frame, on_chip)
        for tap, i, r in pairs(
            range(0, run.taps, taps), range(0, chunk.ib, images), range(0, span.rows, rows)
        ):
            column = g.w.place(span.ow, kw + run.first + tap) - corner[2]
            source = (chunk.i + i, plane, row + r * g.h.stride, column, block.k)
            found.append(RowCopy((i, r, 0, tap), source, (images, 1, rows, span.cols, wide), taps))
        return tuple(found)


@lru_cache(maxsize=65536)
def _cut(
    g: ForwardGeometry, size: tuple[int, int, int, int], frame: tuple[int, ...], on_chip: bool
) -> tuple[int, int]:
    """How many images and rows of a box of x one DMA moves: all of them, or one, so that it has two levels."""
    whole = frame if on_chip else (g.n, g.d.out, g.h.out, g.w.out, g.cout)
    strides = packed_strides(whole, 1)
    ib, rows, cols, wide = size
    for images, down in ((ib, rows), (1, rows), (ib, 1), (1, 1)):
        dims = (
            (images, strides[0]),
            (down, strides[2] * g.h.stride),
            (cols, strides[3] * g.w.stride),
            (wide, 1),
        )
        if collapse(dims, 1)[1]:
            return images, down
    return 1, 1
