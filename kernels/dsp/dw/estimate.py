"""A closed-form estimate of the time of the weights' gradient, by which tilings are compared.

It counts the products, the copies and the bytes of a block for the busiest core; the slowest of core, links and ports
(`beside_each_other`), or their sum where a core waits for its copies, with the stores that nothing hides and the
reduction, is the estimate. The simulator gives the cycles of a run.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from kernels.dsp.dw.copies import column_runs, joins_taps
from kernels.dsp.dw.shares import Part, active, parts
from kernels.dsp.dw.tiling import DwTiling
from kernels.dsp.dx.geometry import Geometry, chunk_kinds, piece_kinds
from kernels.dsp.places import beside_each_other, waits_for_copies
from kernels.dsp.setting import Setting
from simulator.instructions import link_bytes, matmul_cycles


class _Counts(NamedTuple):
    """What one core does: cycles of its issue and vector unit, bytes from DDR, through GSM, and bytes of sums."""

    cycles: float
    read: float
    passed: float
    stored: float


def estimate(setting: Setting, tiling: DwTiling) -> float:
    """Cycles of the launches."""
    g = setting.geometry
    share = parts(g, tiling.split, 0, setting.cores)
    if not share or 0 in (g.cog, g.cig):
        return 0.0
    blocks = _block_kinds(g, tiling)
    total = sum(times for *_, times in blocks)
    mine, running = 1.0, setting.cores
    if tiling.split == "channels":
        most = ceil(total / setting.cores)
        running = ceil(total / most)
        mine = most / total
    else:
        running = active(g, tiling.split, setting.cores)
    ddr, gsm = setting.links[running]
    into, out = setting.ports
    rate = min(into, ddr / running)
    counts = [_block(setting, tiling, share, rate, *sizes) for *sizes, _ in blocks]
    cycles, read, passed, stored = (
        mine * sum(c[i] * b[-1] for c, b in zip(counts, blocks, strict=True)) for i in range(4)
    )
    write_cost = setting.places.ddr(setting.target).write_cost
    writing = stored * max(1 / out, running * write_cost / ddr)
    each = cycles, read / rate, 2 * running * passed / gsm
    beside = sum(each) if waits_for_copies(setting.target) else beside_each_other(*each)
    return beside + writing + _reduction(setting, tiling)


def _block_kinds(g: Geometry, t: DwTiling) -> list[tuple[int, int, int, int, int]]:
    """(groups, output channels, taps, channels, how many) of the blocks of dw."""
    found = []
    for gb, cuts in piece_kinds(g.groups, t.groups):
        for kb, outs in piece_kinds(g.cog, t.out_channels if gb == 1 else g.cog):
            for cb, ins in piece_kinds(g.cig, t.channels if gb == 1 else g.cig):
                for taps, times in piece_kinds(g.taps, t.taps):
                    found.append((gb, kb, taps, cb, cuts * outs * ins * times))
    return found


def _block(
    setting: Setting, t: DwTiling, share: tuple[Part, ...], rate: float, gb: int, kb: int, taps: int, cb: int
) -> _Counts:
    """One block, over all outputs of a core; DDR gives it `rate` bytes a cycle."""
    g, target, item = setting.geometry, setting.target, setting.operand.size_bytes
    issue, vector, spec = target.issue, target.vector_unit, target.matmul[setting.rate]
    link = setting.places.ddr(target)
    burst, overhead = link.burst_bytes, link.row_overhead_bytes
    packed = g.taps == g.w.stride == g.h.stride == 1 and g.w.out == g.w.size
    together = min(taps, g.w.kernel) if joins_taps(g, gb * cb) else 1
    # Outputs next to the padding lack some of the taps: each has a copy of its own.
    edges = max(0, len(column_runs(g.w, 0, together, 0, g.w.out, True)) - 1) if together > 1 else 0
    cycles = read = passed = 0.0
    strips = piece_kinds(kb, t.rows if gb == 1 else kb)
    register = vector.register_bytes * vector.moves_per_cycle
    for (m, runs), times in _kinds(g, share, t.k).items():
        copies = ceil(taps / together) * (1 if packed else runs + edges)
        columns = gb * taps * cb * m * item
        core = copies * setting.copy_cycles + columns / register + vector.run_cycles
        if gb > 1:
            core += 2 * columns / register + vector.run_cycles + issue.vector_cycles
        for rows, cuts in strips:
            turning = 2 * gb * rows * m * item / register + vector.run_cycles + vector.call_cycles
            fixed = 3 * setting.copy_cycles + issue.vector_cycles + issue.matmul_cycles
            core += cuts * (turning + fixed + matmul_cycles(spec, gb, rows, taps * cb, m))
            read += times * cuts * link_bytes(m, gb * rows * item, g.cout * item, burst, overhead)
            passed += times * cuts * gb * rows * m * item
        run = together * gb * cb * item
        rows_of_x = ceil(taps / together) * link_bytes(m, run, g.w.stride * g.cin * item, burst, overhead)
        # What the queue does not hold of the copies before a product has to start before the product can.
        waits = max(0.0, 1 - target.engine["dma"].queue_depth * sum(cuts for _, cuts in strips) / copies)
        waits *= not waits_for_copies(target)  # there they all are waited for
        cycles += times * (core + waits * rows_of_x / rate)
        read += times * rows_of_x
    wide = item if active(g, t.split, setting.cores) == 1 else 4
    return _Counts(cycles, read, passed, gb * kb * taps * cb * wide)


def _kinds(g: Geometry, share: tuple[Part, ...], k: int) -> dict[tuple[int, int], int]:
    """(outputs, output rows) -> how many chunks of a core are such."""
    found: dict[tuple[int, int], int] = {}
    for part in share if 0 not in (g.n, g.d.out, g.h.out, g.w.out) else ():
        for m, runs, times in chunk_kinds(part.hb, g.w.out, part.nb, k):
            found[m, runs] = found.get((m, runs), 0) + times * g.d.out
    return found


def _reduction(setting: Setting, t: DwTiling) -> float:
    """Cycles of the launch that adds up what the cores hold."""
    g, target = setting.geometry, setting.target
    several = active(g, t.split, setting.cores)
    if several == 1:
        return 0.0
    elements = g.cout * g.taps * g.cig
    ddr = setting.links[setting.cores][0]
    written = elements * setting.operand.size_bytes * setting.places.ddr(target).write_cost
    launch = target.launch["default"]
    moved = max(
        (4 * several * elements + written) / ddr,
        4 * several * elements / setting.cores / setting.ports[0],
    )
    return moved + launch.cycles + launch.cycles_per_core * setting.cores
