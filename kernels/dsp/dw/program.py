"""The program of one core for the weights' gradient: the stages of its loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kernels.dsp.dw.copies import TapCopy
from kernels.dsp.dw.product import ChunkProduct, ChunkSums
from kernels.dsp.dw.shares import Block
from kernels.dsp.dw.turns import Turn, TurnPlan
from kernels.dsp.dx.geometry import pieces
from simulator.instructions import Copy, Instruction
from simulator.kernel import Core
from simulator.memory.boxes import load_box, store_box
from simulator.memory.memories import View
from simulator.tiles import Loop, Step, walk
from simulator.vector import Cast, Fill, Permute

if TYPE_CHECKING:
    from kernels.dsp.dw.kernel import ConvDw

LOAD_DY, LOAD_X, PASS, STORE = range(4)
"""DMA channels: strips of dy, rows of x, strips on their way by GSM, sums."""


class Strip(NamedTuple):
    """Output channels [first, first + rows) of a block: strip `number` of `of`."""

    number: int
    of: int
    first: int
    rows: int


class DwProgram:
    """Stages of blocks (begin, store), chunks (columns), strips (load dy) and products (turn dy, multiply)."""

    def __init__(self, kernel: ConvDw, core: Core) -> None:
        """Look up the core's share."""
        work = kernel.work(core.rank, core.count)
        assert work is not None  # noqa: S101  # cores without work have no program
        self.kernel = kernel
        self.core = core
        self.geometry = kernel.geometry
        self.tiling = kernel.tiling
        self.work = work

    def instructions(self) -> Iterator[Instruction]:
        """All of it."""
        ahead = self.tiling.ahead
        loops = (
            Loop(
                lambda _: range(len(self.work.blocks)),
                enter=lambda step: self._begin(step.tile),
                store=lambda step: self._store(step.tile),
                ahead=0,
            ),
            Loop(self._turns, enter=self._columns, ahead=0),
            Loop(self._strips, load=self._load_strip, ahead=2 * ahead),
            Loop(lambda up: (up.tile,) if up else (), load=self._turn_strip, ahead=ahead),
        )
        yield from walk(loops, self._multiply)

    def steps(self) -> Iterator[Instruction]:
        """The same results, with a chunk as one step: its columns and its products."""
        for index, block in enumerate(self.work.blocks):
            yield from self._begin(index)
            for number in range(self.work.starts[index], self.work.starts[index + 1]):
                turn = self.work.turns[number]
                if turn.plan is not None:
                    yield ChunkSums(self._sums(block, 0, block.kb), self.kernel, block, turn)
            yield from self._store(index)

    # -- tiles -----------------------------------------------------------------------------------------------

    def _turns(self, step: Step | None) -> Sequence[int]:
        """The chunks of a block, as numbers in the core's list."""
        block = _tile(step)
        return range(self.work.starts[block], self.work.starts[block + 1])

    def _strips(self, step: Step | None) -> Sequence[Strip]:
        """Output channels of a block, piece by piece; several groups, or nothing to sum, are one."""
        block, turn = self._at(_tile(step))
        cuts = self._rows(block) if turn.plan else [(0, block.kb)]
        return [Strip(number, len(cuts), *cut) for number, cut in enumerate(cuts)]

    def _rows(self, block: Block) -> list[tuple[int, int]]:
        return pieces(block.kb, self.tiling.rows if block.gb == 1 else block.kb)

    def _at(self, index: int) -> tuple[Block, Turn]:
        turn = self.work.turns[index]
        return self.work.blocks[turn.block], turn

    # -- sums ------------------------------------------------------------------------------------------------

    def _sums(self, block: Block, first: int, rows: int) -> View:
        """Rows of the sums: [rows, taps x channels], or [groups, Cout, taps x channels]."""
        shape = (rows, block.width) if block.gb == 1 else (block.gb, block.kb, block.width)
        return self.core.rings["sums"][0].dense(shape, first * block.width)

    def _begin(self, index: int) -> Iterator[Instruction]:
        """Sums start at zero."""
        block = self.work.blocks[index]
        whole = self._sums(block, 0, block.kb)
        yield Fill(whole, coords=self.kernel.origin(block, None))

    def _store(self, index: int) -> Iterator[Instruction]:
        """The block leaves: strip by strip where its type changes on the way."""
        block, kernel, g = self.work.blocks[index], self.kernel, self.geometry
        coords, result, slot = kernel.origin(block, None), kernel.tensors.dw, kernel.slot(self.core.rank)
        staged = "sums_out" in self.core.rings
        for strip, (first, rows) in enumerate(self._rows(block) if staged else [(0, block.kb)]):
            local = self.core.rings["sums"][0]
            if staged:
                local, source = self.core.rings["sums_out"][strip], self._sums(block, first, rows)
                yield Cast(local.dense(source.shape), source, coords=coords)
            place = (slot, block.g * g.cog + block.k + first, block.tap, block.c)
            size = (1, block.gb * rows, block.taps, block.cb)
            yield from store_box(result, place, size, local, channel=STORE, coords=coords, name="store_dw")

    # -- columns ---------------------------------------------------------------------------------------------

    def _columns(self, step: Step) -> Iterator[Instruction]:
        """The first chunk's columns, that no other chunk could bring in; columns of several groups side by side."""
        index: int = step.tile
        block, turn = self._at(index)
        if turn.plan is None:
            return
        if index == 0 or not self.tiling.ahead:
            yield from self._load_columns(index, 0, 1)
        if block.gb > 1:
            m, g = turn.plan.outputs, self.geometry
            given = self.core.rings["columns"][index].dense((m, block.taps, block.gb, g.cig))
            grouped = self.core.rings["grouped"][0].dense((block.gb, m, block.taps, g.cig))
            yield Permute(grouped, given, (2, 0, 1, 3), coords=self.kernel.origin(block, turn))

    def _load_columns(self, index: int, part: int, of: int) -> Iterator[Instruction]:
        """One of `of` parts of the rows of x that are the columns of chunk number `index`."""
        if index >= len(self.work.turns):
            return
        block, turn = self._at(index)
        if turn.plan is None:
            return
        plan, coords = turn.plan, self.kernel.origin(block, turn)
        if not plan.whole and part == 0:
            size = (plan.outputs * block.gb * block.width,)
            yield Fill(self.core.rings["columns"][index].dense(size), coords=coords)
        copies = plan.copies(of)
        # Rounded up: a copy is asked for as early as its part allows, a single one before the first product.
        first, last = (-(-number * len(copies) // of) for number in (part, part + 1))
        for copy in copies[first:last]:
            yield self._copy(index, block, turn, plan, copy, coords)

    def _copy(
        self,
        index: int,
        block: Block,
        turn: Turn,
        plan: TurnPlan,
        copy: TapCopy,
        coords: tuple[int, ...],
    ) -> Copy:
        """Rows of x for one tap or several, into their places in the columns."""
        g = self.geometry
        wide, (*grid, taps) = block.gb * block.cb, copy.size
        frame = (plan.ib, plan.span.rows, plan.span.cols, block.taps, wide)
        local = self.core.rings["columns"][index].box((*copy.place, 0), (*copy.size, wide), frame=frame)
        image, plane, row, col = copy.source
        start = (turn.n + image, plane, row, col, block.g * g.cig + block.c)
        size, steps, x = (grid[0], 1, *grid[1:]), (1, 1, g.h.stride, g.w.stride), self.kernel.tensors.x
        source = (
            x.strided(start, (*size, wide), (*steps, 1))
            if taps == 1
            else x.windows(start, size, steps, taps * wide)
        )
        return Copy(local, source, channel=LOAD_X, coords=coords, name="load_x")

    # -- strips of dy ----------------------------------------------------------------------------------------

    def _load_strip(self, step: Step) -> Iterable[Instruction]:
        """A strip of dy as it lies in DDR: [outputs, rows], or [outputs, groups x Cout]."""
        block, turn = self._at(_tile(step.up))
        if turn.plan is None:
            return ()
        strip, g, span = step.tile, self.geometry, turn.plan.span
        start = (turn.n, span.od, span.oh, span.ow, block.g * g.cog + block.k + strip.first)
        size = (turn.plan.ib, 1, span.rows, span.cols, block.gb * strip.rows)
        coords = (*self.kernel.origin(block, turn), strip.first)
        local = self.core.rings["dy_rows"][step.ordinal]
        return load_box(
            local, self.kernel.tensors.dy, start, size, channel=LOAD_DY, coords=coords, name="load_dy"
        )

    def _turn_strip(self, step: Step) -> Iterator[Instruction]:
        """The strip turned: an output channel a row; then to SM, by way of GSM."""
        block, turn, rings = *self._at(_above(step, 2).tile), self.core.rings
        if turn.plan is None:
            return
        _, _, first, rows = step.tile
        m = turn.plan.outputs
        coords = (*self.kernel.origin(block, turn), first)
        given, turned = rings["dy_rows"][_above(step, 1).ordinal], rings["dy_turned"][0]
        seen = (m, rows) if block.gb == 1 else (m, block.gb, rows)
        yield Permute(
            turned.dense(seen[::-1]), given.dense(seen), tuple(reversed(range(len(seen)))), coords=coords
        )
        size = (m * block.gb * rows,)
        passing, strip = rings["dy_passing"][step.ordinal].dense(size), rings["dy_strip"][step.ordinal]
        yield Copy(passing, turned.dense(size), channel=PASS, coords=coords, name="store_turned")
        yield Copy(strip.dense(size), passing, channel=PASS, coords=coords, name="load_turned")

    def _multiply(self, step: Step) -> Iterator[Instruction]:
        """A part of the next chunk's columns, and the product."""
        index: int = _above(step, 2).tile
        block, turn = self._at(index)
        number, of, first, rows = step.tile
        if self.tiling.ahead:
            yield from self._load_columns(index + 1, number, of)
        if turn.plan is None:
            return
        m = turn.plan.outputs
        strip, columns = self.core.rings["dy_strip"][step.ordinal], self.core.rings["columns"][index]
        if block.gb == 1:
            a, b = strip.dense((rows, m)), columns.dense((m, block.width))
        else:
            a = strip.dense((rows, block.gb, m))
            b = self.core.rings["grouped"][0].dense((block.gb, m, block.width))
        coords = (*self.kernel.origin(block, turn), first)
        out = self._sums(block, first, rows)
        yield ChunkProduct(out, a, b, turn.plan, block.taps, rate=self.kernel.rate, coords=coords)


def _above(step: Step, levels: int) -> Step:
    """The step so many loops outside."""
    for _ in range(levels):
        assert step.up is not None  # noqa: S101  # the loops lie in each other
        step = step.up
    return step


def _tile(step: Step | None) -> int:
    """The number of a block or a chunk."""
    assert step is not None  # noqa: S101  # as above
    tile: int = step.tile
    return tile
