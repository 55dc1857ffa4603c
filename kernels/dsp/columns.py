"""One chunk of columns: the product that makes it and the col2im that adds it onto dx."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernels.dsp.geometry import Block, Chunk, Geometry, Panel
from kernels.dsp.tiling import DxTiling
from simulator.instructions import Accumulate, Copy, Instruction, Matmul, MatmulInto, Parts
from simulator.kernel import Core
from simulator.memories import Buffer, View
from simulator.numerics import DType

STORE, LOAD = 3, 2


@dataclass(frozen=True, slots=True)
class Scatter:
    """Where the columns of a chunk go: index pairs into dx and columns, and the loops that add them."""

    parts: Parts
    runs: int
    positions: int


class Columns:
    """Makes columns and adds them, by the tiling's policy."""

    def __init__(
        self, geometry: Geometry, sum_type: DType, rate: str, tiling: DxTiling, workspace: Buffer | None
    ) -> None:
        """Columns of `sum_type`, on the matrix rate `rate`; `workspace` is [cores, halves, elements] in DDR."""
        self._geometry = geometry
        self._sum_type = sum_type
        self._rate = rate
        self._tiling = tiling
        self._workspace = workspace
        self._scatters: dict[tuple[object, ...], Scatter] = {}

    def add(
        self, core: Core, panel: Panel, block: Block, chunk: Chunk, rows: View, weights: View, total: View, ordinal: int,
        coords: tuple[int, ...],
    ) -> Iterator[Instruction]:
        """dx panel `total` += col2im(rows x weights)."""
        scatter = self._scatter(panel, block, chunk)
        m, width = rows.shape[0], weights.shape[-1]
        seen = (panel.gb, chunk.ib, chunk.span.rows, chunk.span.cols, block.taps, block.cb)
        axes = (1, 2, 3, 0, 4)
        if self._tiling.column == "none":
            yield MatmulInto(total, seen, rows, weights, scatter.parts, rate=self._rate, axes=axes, coords=coords)
            return
        shape = (m, width) if panel.gb == 1 else (panel.gb, m, width)
        columns = core.rings["columns"][ordinal]
        yield Matmul(columns.dense(shape), rows, weights, rate=self._rate, coords=coords)
        if self._tiling.column_place == "workspace":
            columns = yield from self._by_workspace(core, columns, panel.gb * m * width, ordinal, coords)
        if scatter.parts:
            yield Accumulate(
                total, columns.dense(seen), scatter.parts, axes=axes, runs=scatter.runs,
                pieces=scatter.positions * panel.gb, piece_bytes=block.cb * self._sum_type.size_bytes, coords=coords,
            )

    def _by_workspace(
        self, core: Core, columns: Buffer, count: int, ordinal: int, coords: tuple[int, ...]
    ) -> Iterator[Instruction]:
        """Out to the core's slice of the workspace and back, into the same half of the column buffer."""
        assert self._workspace is not None  # noqa: S101  # the contract makes one for this policy
        halves = self._workspace.shape[1]
        slot = self._workspace.box((core.rank, ordinal % halves, 0), (1, 1, count))
        yield Copy(slot, columns.dense((count,)), channel=STORE, coords=coords, name="store_columns")
        yield Copy(columns.dense((count,)), slot, channel=LOAD, coords=coords, name="load_columns")
        return columns

    def _scatter(self, panel: Panel, block: Block, chunk: Chunk) -> Scatter:
        g, span = self._geometry, chunk.span
        anchor = (span.oh * g.h.stride - panel.h, span.ow * g.w.stride - panel.w)
        key = (anchor, span.od * g.d.stride - panel.d, chunk.i, chunk.ib, span.rows, span.cols, panel.hb, panel.wb,
               block.tap, block.taps, block.c - panel.c, block.cb)
        found = self._scatters.get(key)
        if found is None:
            found = self._scatters[key] = self._make_scatter(panel, block, chunk)
        return found

    def _make_scatter(self, panel: Panel, block: Block, chunk: Chunk) -> Scatter:
        """For each tap the rows and columns of the chunk that fall into the panel."""
        g, span = self._geometry, chunk.span
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
        return Scatter(tuple(parts), runs, positions)


def _clip(outputs: tuple[int, int], first: int, count: int) -> tuple[int, int]:
    return max(outputs[0], first), min(outputs[1], first + count)


def _strided(first: int, count: int, stride: int) -> slice:
    return slice(first, first + (count - 1) * stride + 1, stride)


def _from(outputs: tuple[int, int], first: int) -> slice:
    return slice(outputs[0] - first, outputs[1] - first)
