"""One chunk of columns: the product that makes it and the col2im that adds it onto dx."""

from __future__ import annotations

from collections.abc import Iterator

from kernels.dsp.dx.panels import BlockPlan, ChunkPlan
from kernels.dsp.dx.tiling import DxTiling
from simulator.instructions import Copy, Instruction, Matmul, MatmulInto
from simulator.kernel import Core
from simulator.memory.memories import Buffer, View
from simulator.values.numerics import DType
from simulator.vector import Accumulate

LOAD, STORE = 2, 3
"""DMA channels of columns that go through a workspace."""

AXES = (1, 2, 3, 0, 4)
"""Columns are [groups, images, rows, columns, channels] for one tap; dx has the groups beside the channels."""


class Columns:
    """Makes columns and adds them, by the tiling's policy."""

    def __init__(self, sum_type: DType, rate: str, tiling: DxTiling, workspace: Buffer | None) -> None:
        """Columns of `sum_type`, on the matrix rate `rate`; `workspace` is [cores, halves, elements] in DDR."""
        self._item = sum_type.size_bytes
        self._rate = rate
        self._tiling = tiling
        self._workspace = workspace

    def add(
        self,
        core: Core,
        plan: BlockPlan,
        chunk: ChunkPlan,
        rows: View,
        weights: View,
        total: View,
        ordinal: int,
        coords: tuple[int, ...],
    ) -> list[Instruction]:
        """Dx panel `total` += col2im(rows x weights)."""
        groups, rate = chunk.seen[0], self._rate
        if self._tiling.column == "none":
            return [
                MatmulInto(total, chunk.seen, rows, weights, chunk.parts, rate=rate, axes=AXES, coords=coords)
            ]
        width = weights.shape[-1]
        shape = (chunk.m, width) if groups == 1 else (groups, chunk.m, width)
        columns = core.rings["columns"][ordinal]
        made: list[Instruction] = [Matmul(columns.dense(shape), rows, weights, rate=rate, coords=coords)]
        if self._tiling.column_place == "workspace":
            made += self._by_workspace(core, columns, groups * chunk.m * width, ordinal, coords)
        if chunk.parts:
            made.append(
                Accumulate(
                    total,
                    columns.dense(chunk.seen),
                    chunk.parts,
                    axes=AXES,
                    runs=chunk.runs,
                    pieces=chunk.positions * groups,
                    piece_bytes=plan.block.cb * self._item,
                    coords=coords,
                )
            )
        return made

    def _by_workspace(
        self, core: Core, columns: Buffer, count: int, ordinal: int, coords: tuple[int, ...]
    ) -> Iterator[Instruction]:
        """Out to the core's slice of the workspace and back, into the same half of the column buffer."""
        assert self._workspace is not None  # noqa: S101  # the contract makes one for this policy
        halves = self._workspace.shape[1]
        slot = self._workspace.box((core.rank, ordinal % halves, 0), (1, 1, count))
        yield Copy(slot, columns.dense((count,)), channel=STORE, coords=coords, name="store_columns")
        yield Copy(columns.dense((count,)), slot, channel=LOAD, coords=coords, name="load_columns")
