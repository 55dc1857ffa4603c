"""What is known of a panel before its program runs: its dy, its blocks of columns, and the chunks of each.

All of it is relative to the panel, so that panels of the same size and place on the axes share one plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from kernels.dsp.dx.geometry import (
    Block,
    Chunk,
    Geometry,
    Panel,
    Span,
    chunks,
    dy_hull,
    kernel_rows,
    output_columns,
    pieces,
)
from kernels.dsp.dx.tiling import DxTiling
from simulator.instructions import Parts


@dataclass(frozen=True, slots=True)
class Product:
    """One product of `m` rows, where they come from, and where its numbers go in the panel.

    Attributes:
        place: where it begins; the rows that it reads, or the outputs that it makes, counted within the panel.
        size: of the rows that it reads.
        seen: its numbers as they are added, [groups, images, rows, columns, .., channels].
        parts: index pairs into the panel [images, rows, columns, groups, channels] and into what is seen.
    """

    m: int
    place: tuple[int, ...]
    size: tuple[int, ...]
    seen: tuple[int, ...]
    parts: Parts

    @property
    def cost(self) -> tuple[object, ...]:
        """What its instructions' cost depends on, beside the block."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ChunkPlan(Product):
    """Rows of dy: `place` and `size` are the box [images, planes, rows, columns, Cout] within the dy of the panel.

    Attributes:
        runs, positions: loops of the col2im, and positions that it adds.
    """

    runs: int
    positions: int

    @property
    def cost(self) -> tuple[object, ...]:
        """What its instructions' cost depends on, beside the block."""
        return self.size, self.runs, self.positions, self.place


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """A block of columns and its products.

    Attributes:
        place, size: its weights [Cout, taps, Cin / groups], from the first of the panel's groups.
        chunks: its products.
        whole: one product for each of its spans: what the chunks compute together.
    """

    block: Block
    place: tuple[int, ...]
    size: tuple[int, ...]
    chunks: tuple[Product, ...]
    whole: tuple[Product, ...]


@dataclass(frozen=True, slots=True)
class PanelPlan:
    """The dy of a panel and its blocks of columns.

    `frame` is dy's shape, [images, planes, rows, columns, Cout of its groups], at `corner` of (od, oh, ow).
    A panel that no output reaches has no frame, and no products.
    """

    frame: tuple[int, ...] | None
    corner: tuple[int, int, int]
    blocks: tuple[BlockPlan, ...]

    def shape(self) -> tuple[object, ...]:
        """What the cost of the panel's instructions depends on, beside the size of dx."""
        return self.frame, tuple((b.size, tuple(c.cost for c in b.chunks)) for b in self.blocks)


@lru_cache(maxsize=64)
def planner(geometry: Geometry, tiling: DxTiling) -> Planner:
    """The planner of a geometry and a tiling: calls that repeat share their plans."""
    return Planner(geometry, tiling)


class Planner:
    """Makes the plans of panels, each once."""

    def __init__(self, geometry: Geometry, tiling: DxTiling) -> None:
        """Plans for one geometry and tiling."""
        self._geometry = geometry
        self._tiling = tiling
        self._plans: dict[tuple[int, ...], PanelPlan] = {}
        self._classes: dict[int, int] = {}
        self._shapes: dict[tuple[object, ...], int] = {}

    def plan(self, panel: Panel) -> PanelPlan:
        """The plan of a panel."""
        key = (panel.nb, panel.d, panel.h, panel.hb, panel.w, panel.wb, panel.gb, panel.c, panel.cb)
        found = self._plans.get(key)
        if found is None:
            found = self._plans[key] = self._make(panel)
        return found

    def cost_class(self, plan: PanelPlan) -> int:
        """A number that equal plans share: plans whose instructions cost the same."""
        found = self._classes.get(id(plan))
        if found is None:
            found = self._classes[id(plan)] = self._shapes.setdefault(plan.shape(), len(self._shapes))
        return found

    def _make(self, panel: Panel) -> PanelPlan:
        g = self._geometry
        hull = dy_hull(g, (panel.d, panel.h, panel.hb, panel.w, panel.wb))
        if hull is None or g.cog == 0:
            return self._nothing(panel)
        corner = (hull[0], hull[2], hull[4])
        frame = (panel.nb, hull[1], hull[3], hull[5], panel.gb * g.cog)
        blocks = self._row_blocks(panel) if self._tiling.column == "rows" else self._tap_blocks(panel)
        return PanelPlan(frame, corner, tuple(self._block(panel, block, corner) for block in blocks))

    @staticmethod
    def _nothing(panel: Panel) -> PanelPlan:
        """The plan of a panel that nothing is added to."""
        block = BlockPlan(Block(0, 0, panel.c, 0, 0, 0, ()), (), (), (_NO_CHUNK,), ())
        return PanelPlan(None, (0, 0, 0), (block,))

    def _tap_blocks(self, panel: Panel) -> Iterator[Block]:
        """Blocks of one kernel row each: some of its columns, some channels, a piece of Cout."""
        g, t = self._geometry, self._tiling
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
        g = self._geometry
        ow, end = output_columns(g, 0, g.w.kernel, panel.w, panel.wb)
        rows: dict[int, tuple[int, int]] = {}
        for _, _, od, first, last in kernel_rows(g, panel.d, panel.h, panel.hb):
            low, high = rows.get(od, (first, last))
            rows[od] = (min(low, first), max(high, last))
        spans = tuple(Span(od, low, high - low, ow, end - ow) for od, (low, high) in sorted(rows.items()))
        for k, kb in pieces(g.cog, self._tiling.k if panel.gb == 1 else g.cog):
            yield Block(0, g.taps, panel.c, panel.cb, k, kb, spans)

    def _block(self, panel: Panel, block: Block, corner: tuple[int, int, int]) -> BlockPlan:
        cut = chunks(block.spans, panel.nb, self._tiling.positions)
        size = (block.kb if panel.gb == 1 else panel.gb * self._geometry.cog, block.taps, block.cb)
        made = tuple(self._chunk(panel, block, chunk, corner) for chunk in cut)
        whole = tuple(self._chunk(panel, block, Chunk(0, panel.nb, span), corner) for span in block.spans)
        return BlockPlan(block, (block.k, block.tap, block.c), size, made, whole)

    def _chunk(self, panel: Panel, block: Block, chunk: Chunk, corner: tuple[int, int, int]) -> ChunkPlan:
        span = chunk.span
        place = (chunk.i, span.od - corner[0], span.oh - corner[1], span.ow - corner[2], block.k)
        size = (chunk.ib, 1, span.rows, span.cols, block.kb if panel.gb == 1 else panel.gb * block.kb)
        seen = (panel.gb, chunk.ib, span.rows, span.cols, block.taps, block.cb)
        parts, runs, positions = scatter(self._geometry, panel, block, chunk)
        return ChunkPlan(chunk.ib * span.rows * span.cols, place, size, seen, parts, runs, positions)


_NO_CHUNK = ChunkPlan(0, (), (), (), (), 0, 0)


def scatter(g: Geometry, panel: Panel, block: Block, chunk: Chunk) -> tuple[Parts, int, int]:
    """Index pairs for what of a chunk falls into the panel, tap by tap; the loops and positions that are added."""
    span = chunk.span
    parts, runs, positions = [], 0, 0
    images = slice(chunk.i, chunk.i + chunk.ib)
    channels = slice(block.c - panel.c, block.c - panel.c + block.cb)
    for index in range(block.taps):
        kd, rest = divmod(block.tap + index, g.h.kernel * g.w.kernel)
        kh, kw = divmod(rest, g.w.kernel)
        if g.d.place(span.od, kd) != panel.d:
            continue
        rows = _clip(g.h.outputs(kh, panel.h, panel.h + panel.hb), span.oh, span.rows)
        cols = _clip(g.w.outputs(kw, panel.w, panel.w + panel.wb), span.ow, span.cols)
        if rows[0] >= rows[1] or cols[0] >= cols[1]:
            continue
        down = _strided(g.h.place(rows[0], kh) - panel.h, rows[1] - rows[0], g.h.stride)
        right = _strided(g.w.place(cols[0], kw) - panel.w, cols[1] - cols[0], g.w.stride)
        origin = (slice(None), slice(None), _from(rows, span.oh), _from(cols, span.ow), index)
        parts.append(((images, down, right, slice(None), channels), origin))
        runs += chunk.ib * (rows[1] - rows[0])
        positions += chunk.ib * (rows[1] - rows[0]) * (cols[1] - cols[0])
    return tuple(parts), runs, positions


def _clip(outputs: tuple[int, int], first: int, count: int) -> tuple[int, int]:
    return max(outputs[0], first), min(outputs[1], first + count)


def _strided(first: int, count: int, stride: int) -> slice:
    return slice(first, first + (count - 1) * stride + 1, stride)


def _from(outputs: tuple[int, int], first: int) -> slice:
    return slice(outputs[0] - first, outputs[1] - first)
