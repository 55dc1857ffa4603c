"""The input gradient on a DSP: products of dy and weights by tiles, then col2im onto rows of dx that stay on the chip.

    for each panel of dx:                                  (dy panel to GSM)
        for each block of columns (taps x channels x a piece of Cout):   (weights to AM)
            for each chunk of outputs:                     (dy rows to SM)
                columns = dy rows [m, k] x weights [k, n];  dx += col2im(columns)
        dx panel to DDR

Layouts in DDR: dy and dx are [N, D, H, W, C]; weights are tap-major, [Cout, taps, Cin / groups].
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from kernels.dsp.columns import Columns
from kernels.dsp.geometry import Block, Chunk, Geometry, Panel, Span, chunks, dy_hull, kernel_rows, output_columns, pieces
from kernels.dsp.shares import cooperative, panels
from kernels.dsp.tiling import DxTiling
from simulator.boxes import load_box, store_box
from simulator.instructions import Barrier, Cast, Copy, Fill, Instruction
from simulator.kernel import Core, Space
from simulator.memories import Buffer, View
from simulator.numerics import DType, dtype
from simulator.tiles import Loop, Step, walk

LOAD_A, LOAD_B, LOAD_PANEL, STORE = range(4)
"""DMA channels: dy rows, weights, panels, results."""


@dataclass(frozen=True, slots=True)
class DxTensors:
    """The operands in DDR: dy [N, D, H, W, Cout], w [Cout, taps, Cin / groups], dx [N, D, H, W, Cin], a workspace."""

    dy: Buffer
    w: Buffer
    dx: Buffer
    workspace: Buffer | None = None


class ConvDx:
    """The kernel of one launch."""

    name = "conv_dx"
    kind = "conv"
    axes = ("n", "d", "h", "w", "c", "tap", "k", "o")

    def __init__(
        self, geometry: Geometry, tiling: DxTiling, tensors: DxTensors, operand: DType, *, accumulate: bool = False
    ) -> None:
        """A kernel for these tensors; with `accumulate` dx is added to, else written."""
        self.geometry = geometry
        self.tiling = tiling
        self.tensors = tensors
        self.operand = operand
        self.sum_type = dtype(tiling.fp16_accumulate if operand.name == "fp16" else "fp32")
        self.rate = operand.name + ("_fp16" if self.sum_type.name == "fp16" else "")
        self.accumulate = accumulate
        self.together = cooperative(geometry, tiling)
        self._panels: dict[tuple[int, int], list[Panel]] = {}

    def panels(self, rank: int, count: int) -> list[Panel]:
        """The panels of a core."""
        if (rank, count) not in self._panels:
            self._panels[rank, count] = panels(self.geometry, self.tiling, rank, count)
        return self._panels[rank, count]

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Panels of equal sizes with equal outputs, in the same order, and equal parts of what cores load together."""
        mine = self.panels(rank, count)
        if not mine:
            return None
        parts = (self._weight_part(rank, count)[1], rank if self.together else 0)
        return (parts, tuple(self.panel_class(panel) for panel in mine))

    def panel_class(self, panel: Panel) -> Hashable:
        """Equal for panels whose instructions cost the same."""
        hull = dy_hull(self.geometry, (panel.d, panel.h, panel.hb, panel.w, panel.wb))
        corner = (hull[0], hull[2], hull[4]) if hull else (0, 0, 0)
        blocks = tuple(
            (b.tap, b.taps, b.cb, b.kb, tuple((s.od - corner[0], s.oh - corner[1], s.rows, s.ow - corner[2], s.cols) for s in b.spans))
            for b in self._blocks(panel)
        )
        inside = (panel.h - corner[1] * self.geometry.h.stride, panel.w - corner[2] * self.geometry.w.stride)
        return (panel.nb, panel.hb, panel.wb, panel.gb, panel.cb, hull and (hull[1], hull[3], hull[5]), inside, blocks)

    # -- buffers -------------------------------------------------------------------------------------------------------

    def setup(self, space: Space) -> None:
        """Rings of dy rows, weights, columns, and panels of dx and dy, as large as the largest tile of any core."""
        t, count = self.tiling, len(space.cores)
        mine = {core.rank: self.panels(core.rank, core.count) for core in space.cores}
        every = [panel for some in mine.values() for panel in some]
        blocks = [(panel, block) for panel in _distinct(every) for block in self._blocks(panel)]
        rows = max((c.ib * c.span.rows * c.span.cols * b.kb * p.gb for p, b in blocks for c in self._chunks(p, b)), default=1)
        space.ring("dy_rows", "sm", rows, self.operand, depth=2, remedy="lower positions or k")
        out = max((p.nb * p.hb * p.wb * p.gb * p.cb for p in every), default=1)
        space.ring("dx", "am", out, self.sum_type, depth=t.dx_buffers, remedy="lower rows, cols, images or channels")
        if self.tensors.dx.dtype is not self.sum_type:
            space.ring("dx_out", "am", out, self.tensors.dx.dtype, remedy="lower rows, cols, images or channels")
        if t.column != "none":
            half = t.budget_bytes // 2 // self.sum_type.size_bytes
            space.ring("columns", "am", half, self.sum_type, depth=2, remedy="lower budget_bytes")
        self._setup_weights(space, blocks, every)
        if t.dy_in_gsm:
            sizes = (prod(frame) for frame in (self._dy_frame(p) for p in every) if frame)
            ring = space.common_ring if self.together else space.ring
            ring("dy_panel", "gsm", max(sizes, default=1), self.operand, depth=t.dy_buffers, remedy="lower rows, cols or images, or gsm_holds")
        del count

    def _setup_weights(self, space: Space, blocks: Sequence[tuple[Panel, Block]], every: Sequence[Panel]) -> None:
        t, g = self.tiling, self.geometry
        if t.weights == "am":
            most = max((prod(self._resident(self.panels(c.rank, c.count))[1]) for c in space.cores), default=1)
            space.ring("weights", "am", most, self.operand, remedy="set weights=stream or weights=gsm")
        else:
            block = max((p.gb * b.kb * b.taps * b.cb for p, b in blocks), default=1)
            space.ring("weights", "am", block, self.operand, depth=2, remedy="lower block_channels, block_taps or k")
        if t.w_in_gsm:
            space.common_ring("w_all", "gsm", g.cout * g.taps * g.cig, self.operand, remedy="set weights=stream")

    # -- tiles ---------------------------------------------------------------------------------------------------------

    def _blocks(self, panel: Panel) -> tuple[Block, ...]:
        """The blocks of columns of a panel; one without outputs where nothing reaches it, so that zeros are stored."""
        cached = self._block_cache.get((panel.d, panel.h, panel.hb, panel.w, panel.wb, panel.c, panel.cb, panel.gb))
        if cached is None:
            found = self._row_blocks(panel) if self.tiling.column == "rows" else self._tap_blocks(panel)
            cached = tuple(found) or (Block(0, 0, panel.c, 0, 0, 0, ()),)
            self._block_cache[panel.d, panel.h, panel.hb, panel.w, panel.wb, panel.c, panel.cb, panel.gb] = cached
        return cached

    @cached_property
    def _block_cache(self) -> dict[tuple[int, ...], tuple[Block, ...]]:
        return {}

    def _tap_blocks(self, panel: Panel) -> Iterator[Block]:
        """Blocks of one kernel row each: some of its columns, some channels, a piece of Cout."""
        g, t = self.geometry, self.tiling
        for k, kb in pieces(g.cog, t.k if panel.gb == 1 else g.cog):
            for kd, kh, od, first, last in kernel_rows(g, panel.d, panel.h, panel.hb):
                for kw, taps in pieces(g.w.kernel, 1 if t.column == "none" else t.block_taps):
                    ow, end = output_columns(g, kw, taps, panel.w, panel.wb)
                    if ow == end:
                        continue
                    span = Span(od, first, last - first, ow, end - ow)
                    tap = (kd * g.h.kernel + kh) * g.w.kernel + kw
                    for c, cb in pieces(panel.cb, t.block_channels if panel.gb == 1 else panel.cb):
                        yield Block(tap, taps, panel.c + c, cb, k, kb, (span,))

    def _row_blocks(self, panel: Panel) -> Iterator[Block]:
        """One block with all taps and channels: whole column rows, for every output that reaches the panel."""
        g = self.geometry
        ow, end = output_columns(g, 0, g.w.kernel, panel.w, panel.wb)
        rows: dict[int, tuple[int, int]] = {}
        for _, _, od, first, last in kernel_rows(g, panel.d, panel.h, panel.hb):
            low, high = rows.get(od, (first, last))
            rows[od] = (min(low, first), max(high, last))
        spans = tuple(Span(od, low, high - low, ow, end - ow) for od, (low, high) in sorted(rows.items()))
        for k, kb in pieces(g.cog, self.tiling.k if panel.gb == 1 else g.cog):
            if spans and ow < end:
                yield Block(0, g.taps, panel.c, panel.cb, k, kb, spans)

    def _chunks(self, panel: Panel, block: Block) -> tuple[Chunk, ...]:
        return chunks(block.spans, panel.nb, self.tiling.positions) or (Chunk(0, 0, Span(0, 0, 0, 0, 0)),)

    def _dy_frame(self, panel: Panel) -> tuple[int, ...] | None:
        """Shape of the dy that a panel reads, [images, planes, rows, columns, Cout of its groups]."""
        hull = dy_hull(self.geometry, (panel.d, panel.h, panel.hb, panel.w, panel.wb))
        return hull and (panel.nb, hull[1], hull[3], hull[5], panel.gb * self.geometry.cog)

    def _resident(self, mine: Sequence[Panel]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """The box (start, size) of the weights that a core's panels use."""
        g = self.geometry
        first, last = min(p.g for p in mine), max(p.g + p.gb for p in mine)
        low, high = min(p.c for p in mine), max(p.c + p.cb for p in mine)
        return (first * g.cog, 0, low), ((last - first) * g.cog, g.taps, high - low)

    def _weight_part(self, rank: int, count: int) -> tuple[int, int]:
        """(first, number) of the output channels whose weights a core brings into GSM."""
        if not self.tiling.w_in_gsm:
            return 0, 0
        active = [r for r in range(count) if self.panels(r, count)]
        cuts = pieces(self.geometry.cout, -(-self.geometry.cout // len(active)))
        place = active.index(rank)
        return cuts[place] if place < len(cuts) else (0, 0)

    # -- the program ---------------------------------------------------------------------------------------------------

    def program(self, core: Core) -> Iterator[Instruction]:
        """Weights that stay, then panels, blocks and chunks."""
        yield from DxProgram(self, core).instructions()


class DxProgram:
    """The program of one core: the stages of the three loops."""

    def __init__(self, kernel: ConvDx, core: Core) -> None:
        """Look up the core's buffers."""
        self.kernel = kernel
        self.core = core
        self.geometry = kernel.geometry
        self.tiling = kernel.tiling
        self.mine = kernel.panels(core.rank, core.count)
        self.columns = Columns(kernel.geometry, kernel.sum_type, kernel.rate, kernel.tiling, kernel.tensors.workspace)

    def instructions(self) -> Iterator[Instruction]:
        """All of it."""
        k, ahead = self.kernel, self.tiling.ahead
        yield from self._prologue()
        loops = (
            Loop(
                lambda _: self.mine, load=self._load_panel, enter=self._begin_panel, store=self._store_panel,
                fence=k.together, ahead=min(ahead, self.tiling.dy_buffers - 1),
            ),
            Loop(lambda up: k._blocks(up.tile), load=self._load_weights, ahead=min(ahead, 1)),
            Loop(lambda up: k._chunks(up.up.tile, up.tile), load=self._load_rows, ahead=min(ahead, 1)),
        )
        yield from walk(loops, self._compute)

    def _prologue(self) -> Iterator[Instruction]:
        """Weights that stay for the whole launch: into GSM by all cores together, or into AM."""
        k, g = self.kernel, self.geometry
        if self.tiling.w_in_gsm:
            first, number = k._weight_part(self.core.rank, self.core.count)
            if number:
                source = k.tensors.w.box((first, 0, 0), (number, g.taps, g.cig))
                item = g.taps * g.cig
                yield Copy(self._gsm_weights().dense((number, g.taps, g.cig), first * item), source, channel=LOAD_PANEL, name="load_w")
            yield Barrier(0)
        if self.tiling.weights == "am":
            start, size = k._resident(self.mine)
            yield from load_box(self.core.rings["weights"][0], k.tensors.w, start, size, channel=LOAD_B, name="load_w")

    def _gsm_weights(self) -> Buffer:
        return self.core.rings["w_all"][0]

    def _coords(self, panel: Panel, tap: int = -1, k: int = -1, o: int = -1) -> tuple[int, ...]:
        return (panel.n, panel.d, panel.h, panel.w, panel.g * self.geometry.cig + panel.c, tap, k, o)

    def _load_panel(self, step: Step) -> Iterator[Instruction]:
        """The dy that a panel reads, into GSM: whole, or this core's part of it."""
        panel: Panel = step.tile
        frame = self.kernel._dy_frame(panel)
        if not self.tiling.dy_in_gsm or frame is None:
            return
        start = self._dy_start(panel)
        local, coords = self.core.rings["dy_panel"][step.ordinal], self._coords(panel)
        for image, row, rows in self._my_rows(panel, frame):
            place = (start[0] + image, start[1], start[2] + row, *start[3:])
            size = (1 if rows != frame[2] or self.kernel.together else frame[0], frame[1], rows, *frame[3:])
            first = (image * frame[1] * frame[2] + row) * frame[3] * frame[4]
            yield from load_box(local, self.kernel.tensors.dy, place, size, channel=LOAD_PANEL, coords=coords, name="load_dy", first=first)

    def _dy_start(self, panel: Panel) -> tuple[int, ...]:
        hull = dy_hull(self.geometry, (panel.d, panel.h, panel.hb, panel.w, panel.wb))
        assert hull is not None  # noqa: S101  # callers have a frame
        return (panel.n, hull[0], hull[2], hull[4], panel.g * self.geometry.cog)

    def _my_rows(self, panel: Panel, frame: tuple[int, ...]) -> list[tuple[int, int, int]]:
        """(image, first row, rows) that this core loads: all, or where cores load together every so many-th cut."""
        if not self.kernel.together:
            return [(0, 0, frame[2])]
        active = [r for r in range(self.core.count) if self.kernel.panels(r, self.core.count)]
        if frame[1] > 1:
            cuts = [(image, 0, frame[2]) for image in range(frame[0])]
        else:
            strips = pieces(frame[2], -(-frame[2] * frame[0] // len(active)))
            cuts = [(image, row, rows) for image in range(frame[0]) for row, rows in strips]
        del panel
        return cuts[active.index(self.core.rank) :: len(active)]

    def _begin_panel(self, step: Step) -> Iterator[Instruction]:
        """Meet the other cores where dy was loaded together; start dx at zero or at what it holds."""
        panel: Panel = step.tile
        coords = self._coords(panel)
        if self.kernel.together:
            yield Barrier(1)
        total = self._dx(panel, step.ordinal)
        if not self.kernel.accumulate:
            yield Fill(total, coords=coords)
        elif "dx_out" in self.core.rings:
            held = self.core.rings["dx_out"][step.ordinal]
            yield from load_box(held, self.kernel.tensors.dx, *self._dx_box(panel), channel=LOAD_PANEL, coords=coords, name="load_dx")
            yield Cast(total, held.dense(total.shape), coords=coords)
        else:
            yield from load_box(total.buffer, self.kernel.tensors.dx, *self._dx_box(panel), channel=LOAD_PANEL, coords=coords, name="load_dx")

    def _dx(self, panel: Panel, ordinal: int) -> View:
        return self.core.rings["dx"][ordinal].dense((panel.nb, panel.hb, panel.wb, panel.gb, panel.cb))

    def _dx_box(self, panel: Panel) -> tuple[tuple[int, ...], tuple[int, ...]]:
        start = (panel.n, panel.d, panel.h, panel.w, panel.g * self.geometry.cig + panel.c)
        return start, (panel.nb, 1, panel.hb, panel.wb, panel.gb * panel.cb)

    def _store_panel(self, step: Step) -> Iterator[Instruction]:
        """dx is complete: round it once and send it out."""
        panel: Panel = step.tile
        source, coords = self._dx(panel, step.ordinal), self._coords(panel)
        local = source.buffer
        if "dx_out" in self.core.rings:
            local = self.core.rings["dx_out"][step.ordinal]
            yield Cast(local.dense(source.shape), source, coords=coords)
        yield from store_box(self.kernel.tensors.dx, *self._dx_box(panel), local, channel=STORE, coords=coords, name="store_dx")

    def _load_weights(self, step: Step) -> Iterator[Instruction]:
        """A block of weights into AM, from DDR or GSM, unless all of them are there."""
        block: Block = step.tile
        if self.tiling.weights == "am" or not block.taps:
            return
        assert step.up is not None  # noqa: S101  # blocks lie in panels
        panel: Panel = step.up.tile
        g = self.geometry
        local, coords = self.core.rings["weights"][step.ordinal], self._coords(panel, block.tap, block.k)
        start = (panel.g * g.cog + block.k, block.tap, block.c)
        size = (block.kb if panel.gb == 1 else panel.gb * g.cog, block.taps, block.cb)
        source, frame = self.kernel.tensors.w, None
        if self.tiling.weights == "gsm":
            source, frame = self._gsm_weights(), (g.cout, g.taps, g.cig)
        yield from load_box(local, source, start, size, channel=LOAD_B, coords=coords, name="load_w", frame=frame)

    def _load_rows(self, step: Step) -> Iterator[Instruction]:
        """Rows of dy into SM: [m, k], or [m, groups, k]."""
        chunk: Chunk = step.tile
        if not chunk.ib:
            return
        assert step.up is not None and step.up.up is not None  # noqa: S101, PT018  # chunks lie in blocks in panels
        block, panel = step.up.tile, step.up.up.tile
        size = (chunk.ib, 1, chunk.span.rows, chunk.span.cols, block.kb if panel.gb == 1 else panel.gb * block.kb)
        place = (panel.n + chunk.i, chunk.span.od, chunk.span.oh, chunk.span.ow, panel.g * self.geometry.cog + block.k)
        source, frame = self.kernel.tensors.dy, None
        if self.tiling.dy_in_gsm:
            start = self._dy_start(panel)
            place = tuple(p - s for p, s in zip(place, start, strict=True))
            source, frame = self.core.rings["dy_panel"][step.up.up.ordinal], self.kernel._dy_frame(panel)
        coords = self._coords(panel, block.tap, block.k, chunk.span.oh)
        local = self.core.rings["dy_rows"][step.ordinal]
        yield from load_box(local, source, place, size, channel=LOAD_A, coords=coords, name="load_rows", frame=frame)

    def _compute(self, step: Step) -> Iterator[Instruction]:
        """A product, and its columns onto dx."""
        chunk: Chunk = step.tile
        if not chunk.ib:
            return
        assert step.up is not None and step.up.up is not None  # noqa: S101, PT018  # chunks lie in blocks in panels
        block, panel = step.up.tile, step.up.up.tile
        m = chunk.ib * chunk.span.rows * chunk.span.cols
        shape = (m, block.kb) if panel.gb == 1 else (m, panel.gb, block.kb)
        rows = self.core.rings["dy_rows"][step.ordinal].dense(shape)
        weights = self._weights(panel, block, step.up.ordinal)
        total = self._dx(panel, step.up.up.ordinal)
        coords = self._coords(panel, block.tap, block.k, chunk.span.oh)
        yield from self.columns.add(self.core, panel, block, chunk, rows, weights, total, step.ordinal, coords)

    def _weights(self, panel: Panel, block: Block, ordinal: int) -> View:
        """The block of weights in AM, [k, taps x channels] or [groups, k, taps x channels]."""
        g = self.geometry
        width = block.taps * block.cb
        shape = (block.kb, width) if panel.gb == 1 else (panel.gb, block.kb, width)
        ring = self.core.rings["weights"]
        if self.tiling.weights != "am":
            return ring[ordinal].dense(shape)
        origin, frame = self.kernel._resident(self.mine)
        start = (panel.g * g.cog + block.k - origin[0], block.tap, block.c - origin[2])
        size = (block.kb if panel.gb == 1 else panel.gb * g.cog, block.taps, block.cb)
        return ring[0].box(start, size, frame=frame, shape=shape)


def _distinct(every: Sequence[Panel]) -> list[Panel]:
    """One panel of each set of sizes and places on the axes: images and groups do not change its blocks."""
    return list({(p.nb, p.d, p.h, p.hb, p.w, p.wb, p.gb, p.c, p.cb): p for p in every}.values())
