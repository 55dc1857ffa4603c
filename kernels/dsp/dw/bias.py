"""The gradient of the bias: dy summed over its outputs, each core a share of them, in fp32."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import ceil, prod

import numpy as np

from kernels.dsp.dw.shares import mine
from kernels.dsp.dx.geometry import pieces
from simulator.instructions import Coords, Instruction
from simulator.kernel import Core, Space
from simulator.memory.boxes import load_box, store_box
from simulator.memory.memories import Buffer, View
from simulator.tiles import Loop, Step, walk
from simulator.values.numerics import dtype
from simulator.vector import Cast, Fill, VectorOp

CHANNELS = 2048
"""Channels that are summed together at most."""

ELEMENTS = 16384
"""Elements of dy in AM at a time, unless the tiling says how many outputs."""

LOAD, STORE = 1, 3
"""DMA channels."""

RUN_BYTES = 2048
"""Bytes of sums that registers hold (16 of 128 bytes): one loop over the rows adds up so many."""


def outputs_at_a_time(cout: int) -> int:
    """The default of `k`."""
    return max(1, ELEMENTS // max(1, min(CHANNELS, cout)))


class SumRows(VectorOp):
    """out [columns] += the sum of the rows of a packed source [rows, columns], in fp32."""

    __slots__ = ()
    name = "sum_rows"

    def __init__(self, out: View, source: View, *, coords: Coords = ()) -> None:
        """One load a register of the sums' width; the sums themselves are loaded and stored once."""
        rows, columns = source.shape
        wide = columns * out.buffer.dtype.size_bytes
        runs = ceil(wide / RUN_BYTES)
        super().__init__(
            (source, out), (out,), runs=runs, pieces=rows + 2, piece_bytes=wide, moves=1, coords=coords
        )

    def execute(self) -> None:
        """Add the rows up, then onto the sums."""
        out, source = self.writes[0].array(), self.reads[0].array()
        with np.errstate(invalid="ignore", over="ignore"):
            np.add(out, source.sum(axis=0, dtype=out.dtype), out=out)


class ConvDb:
    """The kernel of one launch: db [cores with sums, Cout] from dy [N, D, H, W, Cout]."""

    name = "conv_db"
    kind = "conv"
    axes: tuple[str, ...] = ("k", "p")

    def __init__(self, dy: Buffer, db: Buffer, k: int) -> None:
        """Sum dy over all axes but the last, `k` outputs at a time."""
        self.dy = dy
        self.k = k
        self.db = db
        self.outputs, self.cout = prod(dy.shape[:-1]), dy.shape[-1]

    @staticmethod
    def active(dy: Buffer, count: int) -> int:
        """Cores that have sums: each a contiguous share of the outputs, or the first one with none at all."""
        outputs = prod(dy.shape[:-1])
        return sum(mine(outputs, rank, count) is not None for rank in range(count)) or 1

    def share(self, rank: int, count: int) -> tuple[int, int] | None:
        """(first, number) of a core's outputs, None for one that takes no part."""
        if not self.cout or (not self.outputs and rank):
            return None
        return mine(self.outputs, rank, count) if self.outputs else (0, 0)

    def tiles(self, rank: int, count: int) -> list[tuple[int, int]]:
        """(first, number) of the outputs that are summed at a time; one without any where there are none."""
        share = self.share(rank, count)
        if share is None:
            return []
        return [(share[0] + first, size) for first, size in pieces(share[1], self.k)] or [(0, 0)]

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Cores with shares of the same size."""
        share = self.share(rank, count)
        return share and (share[1],)

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:
        """(output channel, output) of what a core loads, and of its sums."""
        channels = [k for k, _ in pieces(self.cout, CHANNELS)]
        return [(k, p) for k in channels for p in (-1, *(first for first, _ in self.tiles(rank, count)))]

    def setup(self, space: Space) -> None:
        """Sums, outputs in turn, and what the sums are rounded to."""
        wide = min(CHANNELS, self.cout)
        space.ring("sums", "array", wide, dtype("fp32"))
        most = max((rows for c in space.cores for _, rows in self.tiles(c.rank, c.count)), default=0)
        space.ring("outputs", "array", max(1, most) * wide, self.dy.dtype, depth=2, remedy="lower db.k")
        if self.db.dtype is not dtype("fp32"):
            space.ring("sums_out", "array", wide, self.db.dtype)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Channels outside, outputs inside."""
        stages = _Stages(self, core)
        loops = (
            Loop(lambda _: pieces(self.cout, CHANNELS), enter=stages.begin, store=stages.store_sums),
            Loop(lambda _: self.tiles(core.rank, core.count), load=stages.load_outputs),
        )
        yield from walk(loops, stages.add)


class _Stages:
    """What one core does for a piece of the channels, and for the outputs below it."""

    def __init__(self, kernel: ConvDb, core: Core) -> None:
        self.kernel = kernel
        self.core = core

    def begin(self, step: Step) -> Iterator[Instruction]:
        """Sums start at zero."""
        k, kb = step.tile
        yield Fill(self.core.rings["sums"][0].dense((kb,)), coords=(k, -1))

    def load_outputs(self, step: Step) -> Iterator[Instruction]:
        """Rows of dy."""
        (k, kb), (first, rows) = _outside(step).tile, step.tile
        if rows:
            local, kernel = self.core.rings["outputs"][step.ordinal], self.kernel
            frame = (kernel.outputs, kernel.cout)
            yield from load_box(
                local, kernel.dy, (first, k), (rows, kb),
                channel=LOAD, coords=(k, first), name="load_dy", frame=frame,
            )  # fmt: skip

    def add(self, step: Step) -> Iterator[Instruction]:
        """Their sum."""
        (k, kb), (first, rows) = _outside(step).tile, step.tile
        if rows:
            sums = self.core.rings["sums"][0].dense((kb,))
            given = self.core.rings["outputs"][step.ordinal].dense((rows, kb))
            yield SumRows(sums, given, coords=(k, first))

    def store_sums(self, step: Step) -> Iterator[Instruction]:
        """Partial sums as they are; where no other core has any, the sum is rounded."""
        k, kb = step.tile
        rings, db = self.core.rings, self.kernel.db
        local = rings["sums"][0]
        if "sums_out" in rings:
            local = rings["sums_out"][0]
            yield Cast(local.dense((kb,)), rings["sums"][0].dense((kb,)), coords=(k, -1))
        slot = self.core.rank if db.shape[0] > 1 else 0
        yield from store_box(db, (slot, k), (1, kb), local, channel=STORE, coords=(k, -1), name="store_db")


def _outside(step: Step) -> Step:
    """The step of the loop outside."""
    assert step.up is not None  # noqa: S101  # the loops lie in each other
    return step.up
