"""A matrix product on a DSP, in the blocked loop order of the FT-M7032 GEMM paper (Yu et al.).

    for each panel of A, M_G x K_G:                         (barrier; the cores load it into GSM; barrier)
        for each N_A columns of the core's own slice of N:  (B tile to AM)
            for each M_A rows:                              (C tile to AM, if an earlier panel has begun it)
                for each K_A steps of k:                    (B tile to AM, if a panel has several)
                    for each M_S rows:                      (A tile, GSM to SM)
                        C tile rows += A tile x B tile      (one instruction)
                                                            (C tile to DDR)

The load of a panel is not overlapped, as in the paper. With split=m a core walks its own rows of C and all
columns, loads its own panels, and meets nobody. With gsm_holds=none A tiles come straight from DDR.

While K has further panels, C goes out and back in fp32: in C itself, or for fp16 operands in a scratch tensor
in DDR; the last panel rounds once.

Transposed operands are turned in AM, on the way, by the vector unit: no further launch and no second trip
through DDR, but cycles that products cannot use. B tiles are turned each time they are loaded, unless the
micro-kernel takes them as they are (then A and B are in AM and C in SM). A is turned square by square on its way
from DDR through AM to GSM, once a panel. The chip's DMA has a mode that transposes; it is not modelled.

With swap the operands change places, and c is the transposed result: the vector unit turns C tiles, or a micro-kernel
that stores its results one by one keeps them so.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from kernels.dsp.dx.geometry import pieces
from kernels.dsp.product.panels import LOAD_A, LOAD_B, LOAD_C, STORE, turned_panel
from kernels.dsp.product.tiling import GemmTiling, Problem, needs, strips, turn_side
from simulator.instructions import Barrier, Coords, Instruction, Matmul
from simulator.kernel import Core, Space
from simulator.memory.boxes import load_box, store_box
from simulator.memory.memories import Buffer, View
from simulator.tiles import Loop, Step, nothing, walk
from simulator.turned import MatmulTurned
from simulator.vector import Cast, Fill, Permute

Piece = tuple[int, int]
"""First index and number of rows, columns or steps of k."""


@dataclass(frozen=True, slots=True)
class GemmTensors:
    """The matrices in DDR: a [M, K] or [K, M], b [K, N] or [N, K], c [M, N] (of a swapped product [N, M]).

    `partial` keeps c's sums between panels of K: its own tensor, or c where that has the type of the sums.
    """

    a: Buffer
    b: Buffer
    c: Buffer
    partial: Buffer


class Panel(NamedTuple):
    """M_G rows and K_G steps of k of A; whether it is the first or the last of its rows."""

    m: int
    mb: int
    k: int
    kb: int
    first: bool
    last: bool


class Gemm:
    """The kernel of one launch.

    Attributes:
        axes: m, n and k, what the cores divide first.
    """

    name = "gemm"
    kind = "gemm"

    def __init__(self, problem: Problem, tiling: GemmTiling, tensors: GemmTensors) -> None:
        """A kernel for these tensors."""
        self.problem = problem
        self.tiling = tiling
        self.tensors = tensors
        self.sum_type = problem.sum_type(tiling)
        self.rate = problem.rate(tiling)
        outer_n = (tiling.split == "n") is not problem.swapped
        self.axes: tuple[str, ...] = ("n", "m", "k") if outer_n else ("m", "n", "k")
        self.shares = problem.shares(tiling)

    def panels(self, rank: int) -> list[Panel]:
        """The panels that a core walks: rows outside, steps of k inside; one without steps where K is 0."""
        p, t = self.problem, self.tiling
        first, rows = (0, p.m) if t.split == "n" else self.shares[rank]
        steps = strips(0, p.k, t.K_G) or [(0, 0)]
        return [
            Panel(m, mb, k, kb, k == 0, k + kb == p.k)
            for m, mb in strips(first, rows, t.M_G)
            for k, kb in steps
        ]

    def part(self, panel: Panel, rank: int) -> Piece:
        """The rows of a panel that a core brings into GSM: (first in the panel, number)."""
        if not self.tiling.together:
            return 0, panel.mb
        cuts = pieces(panel.mb, -(-panel.mb // len(self.shares)))
        return cuts[rank] if rank < len(cuts) else (0, 0)

    def core_class(self, rank: int, count: int) -> Hashable | None:  # noqa: ARG002  # the problem knows the count
        """Cores with as many columns or rows, and with equal parts of the panels."""
        if rank >= len(self.shares):
            return None
        parts = {(panel.mb, self.part(panel, rank)[1]) for panel in self.panels(rank)}
        return self.shares[rank][1], tuple(sorted(parts))

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:  # noqa: ARG002  # as above
        """The first columns, or rows, of a core's tiles."""
        t = self.tiling
        if t.split == "n":
            return [(n,) for n, _ in strips(*self.shares[rank], t.N_A)]
        panels = ((panel.m, panel.mb) for panel in self.panels(rank) if panel.first)
        tiles = (tile for panel in panels for tile in strips(*panel, t.M_A))
        return [(m,) for tile in tiles for m, _ in strips(*tile, t.M_S)]

    def coords(self, m: int, n: int, k: int) -> Coords:
        """The coordinates of a tile, -1 for an axis that it has no place on."""
        return (n, m, k) if self.tiling.split == "n" else (m, n, k)

    def setup(self, space: Space) -> None:
        """Rings of tiles, as large as the largest of any core."""
        for need in needs(self.problem, self.tiling):
            ring = space.common_ring if need.common else space.ring
            ring(need.name, need.role, need.size, need.kind, depth=need.depth, remedy=f"lower {need.field}")

    def program(self, core: Core) -> Iterator[Instruction]:
        """Panels, columns, C tiles, steps of k, A tiles."""
        yield from GemmProgram(self, core).instructions()


class GemmProgram:
    """The program of one core: the stages of the five loops."""

    def __init__(self, kernel: Gemm, core: Core) -> None:
        """Look up the core's share."""
        self.kernel = kernel
        self.core = core
        self.problem = kernel.problem
        self.tiling = kernel.tiling
        self.tensors = kernel.tensors
        p, t = kernel.problem, kernel.tiling
        self.columns = kernel.shares[core.rank] if t.split == "n" else (0, p.n)
        # A panel of one K step reads a B tile once for all its rows; with more, C tiles stay and B passes.
        self.single = min(t.K_G, p.k) <= t.K_A
        self.turns_b, self.turns_c = p.turns_b(t), p.turns_c(t)

    def instructions(self) -> Iterator[Instruction]:
        """All of it."""
        t = self.tiling
        b = (self._load_b, self._turn_b if self.turns_b else nothing)
        outer, inner = (b, (nothing, nothing)) if self.single else ((nothing, nothing), b)
        # C of one panel is read by the next, so that nothing of that is loaded before this one is stored.
        fence = t.gsm_holds == "a" or self.problem.partial(t)
        loops = (
            Loop(lambda _: self._panels, load=self._load_panel, enter=self._meet, fence=fence, ahead=0),
            Loop(lambda _: self._n_tiles, load=outer[0], enter=outer[1], ahead=t.ahead),
            Loop(
                self._c_tiles,
                load=self._load_c,
                enter=self._turn_c if self.turns_c and self.problem.loads_c(t) else nothing,
                store=self._store_c,
                ahead=min(t.ahead, t.c_buffers - 1),
            ),
            Loop(self._k_steps, load=inner[0], enter=inner[1], ahead=t.ahead),
            Loop(self._a_tiles, load=self._load_a, ahead=t.ahead),
        )
        yield from walk(loops, self._multiply)
        yield from self._missing()

    # -- tiles -----------------------------------------------------------------------------------------------

    @cached_property
    def _panels(self) -> list[Panel]:
        return self.kernel.panels(self.core.rank)

    @cached_property
    def _n_tiles(self) -> list[Piece]:
        return strips(*self.columns, self.tiling.N_A)

    def _c_tiles(self, step: Step | None) -> list[Piece]:
        panel = _above(step, 1).tile
        return strips(panel.m, panel.mb, self.tiling.M_A)

    def _k_steps(self, step: Step | None) -> list[Piece]:
        panel = _above(step, 2).tile
        return strips(panel.k, panel.kb, self.tiling.K_A) or [(0, 0)]

    def _a_tiles(self, step: Step | None) -> list[Piece]:
        """Rows of the C tile; all at once where they are only set to zero."""
        (m, mb), (_, kb) = _above(step, 1).tile, _above(step, 0).tile
        return strips(m, mb, self.tiling.M_S) if kb else [(m, mb)]

    # -- A ---------------------------------------------------------------------------------------------------

    def _load_panel(self, step: Step) -> Iterator[Instruction]:
        """This core's part of a panel into GSM, when nobody reads the panel before any more."""
        panel: Panel = step.tile
        if not panel.kb:
            return
        if self.tiling.meets and step.ordinal:
            yield Barrier(0)
        first, rows = self.kernel.part(panel, self.core.rank)
        if self.tiling.gsm_holds == "none" or not rows:
            return
        coords = self.kernel.coords(panel.m, -1, panel.k)
        local, a, item = self.core.rings["panel"][0], self.tensors.a, self.problem.operand
        if self.problem.trans_a:
            place = (panel.m, panel.k, panel.mb, panel.kb)
            yield from turned_panel(self.core.rings, a, place, (first, rows), turn_side(item), coords)
            return
        start, size = (panel.m + first, panel.k), (rows, panel.kb)
        yield from load_box(
            local, a, start, size, channel=LOAD_C, coords=coords, name="load_panel", first=first * panel.kb
        )

    def _meet(self, step: Step) -> Iterator[Instruction]:
        """The panel is whole when all cores have loaded their parts."""
        if self.tiling.meets and step.tile.kb:
            yield Barrier(1)

    def _missing(self) -> Iterator[Instruction]:
        """The barriers of panels that other cores have more of."""
        if not self.tiling.meets or not self.problem.k:
            return
        counts = [len(self.kernel.panels(rank)) for rank in range(len(self.kernel.shares))]
        for _ in range(max(counts) - counts[self.core.rank]):
            yield Barrier(0)
            yield Barrier(1)

    def _load_a(self, step: Step) -> Iterator[Instruction]:
        """An A tile into SM, from the panel in GSM or from DDR."""
        (m, mb), (k, kb), panel = step.tile, _above(step, 1).tile, _above(step, 4).tile
        if not kb:
            return
        local, coords = self.core.rings["a"][step.ordinal], self.kernel.coords(m, -1, k)
        source, start, frame = self.tensors.a, (m, k), None
        if self.tiling.gsm_holds == "a":
            source, start, frame = (
                self.core.rings["panel"][0],
                (m - panel.m, k - panel.k),
                (panel.mb, panel.kb),
            )
        yield from load_box(
            local, source, start, (mb, kb), channel=LOAD_A, coords=coords, name="load_a", frame=frame
        )

    # -- B ---------------------------------------------------------------------------------------------------

    def _b_tile(self, step: Step) -> tuple[int, int, int, int]:
        """First row, rows, first column and columns of the B tile of a step: one of columns, or one of k."""
        if self.single:
            panel = _above(step, 1).tile
            return panel.k, panel.kb, *step.tile
        return *step.tile, *_above(step, 2).tile

    def _load_b(self, step: Step) -> Iterator[Instruction]:
        """A B tile into AM, as it is given."""
        k, kb, n, nb = self._b_tile(step)
        if not kb:
            return
        local = self.core.rings["b_given" if self.turns_b else "b"][step.ordinal]
        start, size = ((n, k), (nb, kb)) if self.problem.trans_b else ((k, n), (kb, nb))
        yield from load_box(
            local,
            self.tensors.b,
            start,
            size,
            channel=LOAD_B,
            coords=self.kernel.coords(-1, n, k),
            name="load_b",
        )

    def _turn_b(self, step: Step) -> Iterator[Instruction]:
        """A transposed B tile as products need it."""
        k, kb, n, nb = self._b_tile(step)
        if kb:
            given = self.core.rings["b_given"][step.ordinal].dense((nb, kb))
            yield Permute(
                self.core.rings["b"][0].dense((kb, nb)), given, (1, 0), coords=self.kernel.coords(-1, n, k)
            )

    # -- C ---------------------------------------------------------------------------------------------------

    def _c_tile(self, step: Step) -> View:
        """A C tile, of a step of its loop; a kernel that stores its results one by one keeps it as c is stored."""
        (_, mb), (_, nb) = step.tile, _above(step, 1).tile
        turned = self.problem.swapped and not self.turns_c
        return self.core.rings["c"][step.ordinal].dense((nb, mb) if turned else (mb, nb))

    def _in_c(self, step: Step) -> tuple[Piece, Piece]:
        """First index and size of a C tile in c, as c is stored."""
        (m, mb), (n, nb) = step.tile, _above(step, 1).tile
        return ((n, m), (nb, mb)) if self.problem.swapped else ((m, n), (mb, nb))

    def _c_coords(self, step: Step) -> Coords:
        return self.kernel.coords(step.tile[0], _above(step, 1).tile[0], _above(step, 2).tile.k)

    def _load_c(self, step: Step) -> Iterator[Instruction]:
        """The partial sums of the panels before, or what the product is added to."""
        panel, (start, size) = _above(step, 2).tile, self._in_c(step)
        if panel.first and not self.problem.accumulate:
            return
        local = self.core.rings["c_given"][step.ordinal] if self.turns_c else self._c_tile(step).buffer
        source, coords = self.tensors.partial, self._c_coords(step)
        yield from load_box(local, source, start, size, channel=LOAD_C, coords=coords, name="load_c")

    def _turn_c(self, step: Step) -> Iterator[Instruction]:
        """What was loaded, in the order of the products."""
        if not _above(step, 2).tile.first or self.problem.accumulate:
            given = self.core.rings["c_given"][step.ordinal].dense(self._in_c(step)[1])
            yield Permute(self._c_tile(step), given, (1, 0), coords=self._c_coords(step))

    def _store_c(self, step: Step) -> Iterator[Instruction]:
        """Partial sums as they are; a complete tile is rounded once."""
        panel, (start, size) = _above(step, 2).tile, self._in_c(step)
        tile, coords = self._c_tile(step), self._c_coords(step)
        result = self.tensors.c if panel.last else self.tensors.partial
        if self.turns_c:
            turned = self.core.rings["c_turned"][0].dense(size)
            yield Permute(turned, tile, (1, 0), coords=coords)
            tile = turned
        local = tile.buffer
        if local.dtype is not result.dtype:
            local = self.core.rings["c_out"][step.ordinal]
            yield Cast(local.dense(size), tile, coords=coords)
        yield from store_box(result, start, size, local, channel=STORE, coords=coords, name="store_c")

    def _multiply(self, step: Step) -> Iterator[Instruction]:
        """Rows of a C tile: the first product of all sets them, the others add."""
        (m, mb), (k, kb), c = step.tile, _above(step, 1).tile, _above(step, 2)
        n, nb = _above(step, 3).tile
        coords, accumulate = self.kernel.coords(m, n, k), k > 0 or self.problem.accumulate
        if not kb:
            if not accumulate:
                yield Fill(self._c_tile(c), coords=coords)
            return
        ordinal = _above(step, 3 if self.single else 1).ordinal
        a = self.core.rings["a"][step.ordinal].dense((mb, kb))
        b = self.core.rings["b"][0 if self.turns_b else ordinal]
        first, tile, rate = m - c.tile[0], self.core.rings["c"][c.ordinal], self.kernel.rate
        if not self.tiling.rows_along_k:
            out = tile.dense((mb, nb), first * nb)
            yield Matmul(out, a, b.dense((kb, nb)), rate=rate, accumulate=accumulate, coords=coords)
            return
        turned = self.problem.swapped
        out = tile.dense((mb, nb), first * nb)
        if turned:
            out = tile.box((0, first), (nb, mb), frame=(nb, c.tile[1]))
        yield MatmulTurned(
            out, a, b.dense((nb, kb)), rate=rate, accumulate=accumulate, out_turned=turned, coords=coords
        )


def _above(step: Step | None, levels: int) -> Step:
    """The step so many loops outside."""
    assert step is not None  # noqa: S101  # the loops lie in each other
    return step if levels == 0 else _above(step.up, levels - 1)
