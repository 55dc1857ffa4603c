"""What the simulator says of a published row of an Ascend kernel."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from statistics import fmean

import numpy as np

from kernels.davinci.backward import Backward
from kernels.davinci.forward import Forward
from kernels.davinci.gemm import DavinciGemm
from kernels.davinci.product_rules import Matrices, base_tile
from kernels.families import stored_in
from kernels.shape.shapes import ConvShape
from simulator.machine import Machine
from targets.loader import load_target
from targets.schema import Target
from tilesim.validation.ascend_rows import AscendRow, Product

PIPES = {"CUBE": "mac", "MTE1": "mte1", "MTE2": "mte2", "FIXPIPE": "fixpipe"}
"""Figures by engine."""

FRAMEWORK_US = 6.2
"""What a framework adds to a call: the two published times of one product, 15.3 and 21.5 us with a framework."""


MOST_PRODUCTS = 40_000
"""Steps of K in base tiles beyond which a row is run with a part of K and with half of that, and extended: the tiles of
c are the same, and each step of K costs what the others do (but for what no longer fits L2)."""


def predicted(row: AscendRow) -> dict[str, float]:
    """The figures of a row in microseconds.

    Raises:
        TilesimError: the target does not run it.
    """
    problem = row.problem
    if not isinstance(problem, Product):
        return _figures(row)
    if not _fits_cache(row, problem):
        row = replace(row, l2="cold")
    depth = _depth(problem, base_tile(load_target(row.target, row.overrides), row.dtype))
    if depth == problem.k:
        return _figures(row)
    whole, half = (_figures(replace(row, problem=replace(problem, k=k))) for k in (depth, depth // 2))
    steps = (problem.k - depth) / (depth // 2)
    return {name: whole[name] + steps * (whole[name] - half[name]) for name in whole}


def _fits_cache(row: AscendRow, p: Product) -> bool:
    """Whether L2 can hold both operands: of larger ones the last parts are there, which are needed last."""
    caches = load_target(row.target, row.overrides).cache.values()
    return all((p.m + p.n) * p.k * stored_in(row.dtype).size_bytes <= cache.size_bytes for cache in caches)


def _depth(p: Product, base: tuple[int, int]) -> int:
    """The part of K that is run: all of it, or a multiple of two chunks."""
    tiles = ceil(p.m / base[0]) * ceil(p.n / base[1])
    if tiles * ceil(p.k / 64) <= MOST_PRODUCTS:
        return p.k
    return max(1, MOST_PRODUCTS * 64 // tiles // 512) * 512


def _figures(row: AscendRow) -> dict[str, float]:
    target = load_target(row.target, row.overrides)
    machine = Machine(target, tuple(range(target.groups)), numerics=False, l2=row.l2)
    watched = _run(row, machine)
    found = _pipes(machine, watched, target)
    whole = machine.cycles if row.whole else _launch_cycles(machine, watched)
    found["duration"] = target.us(whole) + (FRAMEWORK_US if row.framework else 0)
    return found


def _run(row: AscendRow, machine: Machine) -> int:
    """Launch what the row measured; returns the launch that computes."""
    target, operand = machine.target, stored_in(row.dtype)
    if isinstance(row.problem, Product):
        p = row.problem
        sizes = (p.m, p.n, p.k, p.trans_a, p.trans_b)
        DavinciGemm.of(Matrices(*sizes, operand, row.dtype, target, target.groups), machine, {}).run()
        return 0
    if row.op == "forward":
        Forward.of(row.problem, operand, machine, {}, rate=row.dtype).run()
    else:
        grads = (row.op,)
        made = Backward.of(row.problem, operand, machine, grads, {}, rate=row.dtype, include_layout=row.whole)
        made.run()
    return next(i for i, launch in enumerate(machine.launches) if launch.name.startswith("conv_"))


def _launch_cycles(machine: Machine, number: int) -> int:
    record = machine.launches[number]
    return record.end - record.start


def _pipes(machine: Machine, number: int, target: Target) -> dict[str, float]:
    """Busy time of each pipe, mean over the cores that took part, and the time of the cores."""
    trace, record = machine.trace(), machine.launches[number]
    mine = trace["launch"] == number
    cores = max(1, len(np.unique(trace["core"][mine])))
    busy = trace["end"] - np.maximum(trace["start"], 0)
    found = {}
    for engine, figure in PIPES.items():
        if engine in trace.engines:
            on_it = mine & (trace["engine"] == trace.engines.index(engine))
            found[figure] = target.us(int(busy[on_it].sum())) / cores
    kind = "gemm" if record.kind == "gemm" else "conv"
    launch = target.launch.get(kind, target.launch["default"])
    head = launch.cycles + launch.cycles_per_core * record.cores
    found["core"] = target.us(record.end - record.start - head)
    if number == len(machine.launches) - 1:
        found["scalar"] = fmean(machine.issue_cycles().values()) / target.clock_mhz
    return found


def roofline_us(row: AscendRow) -> float:
    """The bare roofline: the larger of multiply-adds at the peak of all cubes, and bytes at the peak of main memory."""
    target = load_target(row.target, row.overrides)
    rate = target.cube[row.dtype].flops_per_cycle / 2 * target.groups
    item = stored_in(row.dtype).size_bytes
    link = target.link["hbm" if "hbm" in target.link else "ddr"]
    carried = _elements(row.problem) * item / float(link.exact_bytes_per_cycle(target.clock_mhz))
    return max(row.problem.useful_macs / rate, carried) / target.clock_mhz


def _elements(problem: ConvShape | Product) -> int:
    """Elements of operands and result."""
    if isinstance(problem, Product):
        return problem.m * problem.k + problem.k * problem.n + problem.m * problem.n
    sizes = (problem.x_shape, problem.w_shape, problem.dy_shape)
    return sum(int(np.prod(size)) for size in sizes)
