"""A closed-form estimate of the input gradient's time, by which tilings are compared before one is simulated.

It counts what the tiles of an interior panel cost on the vector unit, and what they move over each link and port; the
slowest of these (`beside_each_other`), or their sum where a core waits for its copies, with the loads that nothing
hides and the barriers, is the estimate. The simulator, not this, gives the cycles of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil

from kernels.dsp.dx.geometry import (
    Geometry,
    Panel,
    Span,
    chunk_kinds,
    kernel_rows,
    output_columns,
    piece_kinds,
    pieces,
)
from kernels.dsp.dx.shares import shares
from kernels.dsp.places import beside_each_other, waits_for_copies
from kernels.dsp.setting import Setting
from simulator.instructions import matmul_cycles
from simulator.values.numerics import DType


@dataclass(frozen=True)
class PanelSetting(Setting):
    """What a tiling in panels is chosen for; `bias` is whether the result starts at one."""

    out_type: DType = field(kw_only=True)
    bias: bool = False

    @cached_property
    def active(self) -> dict[str, int]:
        """Cores with work by split, at least one."""
        ranks, g = range(self.cores), self.geometry
        splits = ("batch", "rows", "channels")
        return {split: sum(bool(shares(g, split, r, self.cores)) for r in ranks) or 1 for split in splits}

    def depth(self, taps: int, k: int) -> int:  # noqa: ARG002  # some kernels sum over taps as well
        """The length of a product's sum."""
        return k

    def width(self, taps: int, channels: int) -> int:
        """The columns of a product."""
        return taps * channels

    def taps_together(self, column: str) -> list[int]:
        """Kernel columns of a block that are tried."""
        return [1] if column == "none" else [self.geometry.w.kernel, 1]

    @property
    def reserved_bytes(self) -> int:
        """Bytes of the array memory that are kept free: for alignment, and the bias as it is given and added."""
        wide = self.sum_type.size_bytes + self.operand.size_bytes
        return 1024 + self.bias * (self.geometry.cin * wide + 128)

    def tap_groups(
        self, panel: Panel, block_taps: int, whole_rows: bool
    ) -> list[tuple[int, int, tuple[Span, ...]]]:
        """(taps of a product, taps whose weights are loaded for it, outputs) of the blocks of a panel."""
        groups = _tap_groups(self.geometry, panel, block_taps, whole_rows)
        return [(taps, taps, spans) for taps, spans in groups]

    def product_cycles(self, gb: int, taps: int, cb: int, kb: int, kinds: Kinds) -> float:
        """Cycles of a core for the products of a block, with what adds them to the panel."""
        return sum(times * _chunk_cycles(self, gb, taps, cb, kb, m, runs) for m, runs, times in kinds)


Kinds = Sequence[tuple[int, int, int]]
"""(outputs, output rows, how many) of the chunks of a block."""


@dataclass(frozen=True)
class Blocking:
    """The inner tile sizes of a candidate."""

    block_taps: int
    block_channels: int
    k: int
    positions: int


@dataclass(frozen=True)
class PanelWork:
    """What one panel costs: cycles of the core, bytes of dy rows (A), of weights (B), of dy and dx; products."""

    cycles: float
    a_bytes: float
    b_bytes: float
    dy_bytes: float
    dx_bytes: float
    products: float


def panel_work(setting: PanelSetting, panel: Panel, blocking: Blocking, whole_rows: bool) -> PanelWork:
    """The work of a panel under a blocking."""
    g, item = setting.geometry, setting.operand.size_bytes
    cycles, a_bytes, b_bytes, products = 0.0, 0, 0, 0
    for taps, loaded, spans in setting.tap_groups(panel, blocking.block_taps, whole_rows):
        kinds = [kind for s in spans for kind in chunk_kinds(s.rows, s.cols, panel.nb, blocking.positions)]
        outputs, cut = sum(m * times for m, _, times in kinds), sum(times for _, _, times in kinds)
        for kb, k_cuts in piece_kinds(g.cog, blocking.k):
            for cb, c_cuts in piece_kinds(panel.cb, blocking.block_channels):
                times = k_cuts * c_cuts
                cycles += times * _block_cycles(setting, panel.gb, (taps, loaded), cb, kb, kinds)
                products += times * cut
                a_bytes += times * outputs * panel.gb * setting.depth(taps, kb) * item
                b_bytes += times * panel.gb * kb * loaded * cb * item
    count = panel.nb * panel.hb * panel.wb * panel.gb * panel.cb
    hull = g.hull(panel.d, panel.h, panel.hb, panel.w, panel.wb) or (0, 0, 0, 0, 0, 0)
    dy_bytes = panel.nb * hull[1] * hull[3] * hull[5] * panel.gb * g.cog * item
    vector = setting.target.vector_unit
    cycles += 3 * count * setting.sum_type.size_bytes / vector.register_bytes / vector.moves_per_cycle
    return PanelWork(cycles, a_bytes, b_bytes, dy_bytes, count * setting.out_type.size_bytes, products)


def _tap_groups(
    g: Geometry, panel: Panel, block_taps: int, whole_rows: bool
) -> list[tuple[int, tuple[Span, ...]]]:
    """(taps, outputs) of the blocks of a panel, channels and k apart."""
    if whole_rows:
        ow, end = output_columns(g, 0, g.w.kernel, panel.w, panel.wb)
        rows = kernel_rows(g, panel.d, panel.h, panel.hb)
        spans = {
            r[2]: Span(
                r[2], min(q[3] for q in rows), max(q[4] for q in rows) - min(q[3] for q in rows), ow, end - ow
            )
            for r in rows
        }
        return [(g.taps, tuple(spans.values()))] if rows and ow < end else []
    found: list[tuple[int, tuple[Span, ...]]] = []
    for _, _, od, first, last in kernel_rows(g, panel.d, panel.h, panel.hb):
        for kw, taps in pieces(g.w.kernel, block_taps):
            ow, end = output_columns(g, kw, taps, panel.w, panel.wb)
            if ow < end:
                found.append((taps, (Span(od, first, last - first, ow, end - ow),)))
    return found


def _block_cycles(
    setting: PanelSetting, gb: int, taps: tuple[int, int], cb: int, kb: int, kinds: Kinds
) -> float:
    """Cycles of a core for one block: its copies' issue, its products, and what adds them to the panel."""
    several = taps[1] > 1 and gb == 1 and cb < setting.geometry.cig
    copies = taps[1] if several else min(taps[1], 1)
    issued = float(copies * setting.copy_cycles)
    return issued + setting.product_cycles(gb, taps[0], cb, kb, kinds)


def _chunk_cycles(setting: PanelSetting, gb: int, taps: int, cb: int, kb: int, m: int, runs: int) -> float:
    """Cycles of a core for one product and its col2im."""
    target, vector, issue = setting.target, setting.target.vector_unit, setting.target.issue
    registers = ceil(cb * setting.sum_type.size_bytes / vector.register_bytes)
    added = taps * runs * vector.run_cycles + 3 * taps * m * gb * registers / vector.moves_per_cycle
    fixed = issue.matmul_cycles + setting.copy_cycles + issue.vector_cycles + vector.call_cycles
    return matmul_cycles(target.matmul[setting.rate], gb, m, taps * cb, kb) + fixed + added


@dataclass(frozen=True)
class Placement:
    """Where operands lie, how many panels a core computes, and whether all cores load those of dy together."""

    split: str
    weights: str
    dy_in_gsm: bool
    dx_buffers: int
    dy_buffers: int
    panels: int
    together: bool


def estimate(setting: PanelSetting, work: PanelWork, place: Placement) -> float:
    """Cycles of a launch."""
    active = setting.active[place.split]
    ddr, gsm = setting.links[active]
    read_port, write_port = setting.ports
    together = place.split == "channels" and setting.geometry.groups == 1
    meeting = 2 * place.panels * setting.barrier_cycles if place.together else 0.0
    dy: float = work.dy_bytes if place.dy_in_gsm else work.a_bytes
    dy = dy / active if together and place.dy_in_gsm else dy
    b = work.b_bytes * place.panels if place.weights == "stream" else work.b_bytes
    reads = dy * place.panels + (b if place.weights != "gsm" else work.b_bytes / active)
    writes = work.dx_bytes * place.panels
    on_chip = (work.a_bytes if place.dy_in_gsm else 0) + (work.b_bytes if place.weights == "gsm" else 0)
    core = work.cycles * place.panels
    write_cost, passing = setting.places.ddr(setting.target).write_cost, active * on_chip * place.panels / gsm
    if waits_for_copies(setting.target):
        loads, stores = (
            reads / min(read_port, ddr / active),
            writes / min(write_port, ddr / active / write_cost),
        )
        return core + loads + stores + passing + meeting
    shared = active * (reads + writes * write_cost) / ddr
    slowest = beside_each_other(core, max(shared, reads / read_port, writes / write_port), passing)
    first_load = dy / min(read_port, ddr / active) + work.dx_bytes / min(write_port, ddr / active)
    exposed = first_load if place.dy_buffers > 1 or not place.dy_in_gsm else first_load * place.panels
    if place.weights != "stream":
        exposed += work.b_bytes / min(read_port, ddr / active)
    if place.dx_buffers == 1:
        exposed += work.dx_bytes / min(write_port, ddr / active) * (place.panels - 1)
    return slowest + exposed + meeting
