"""Matrix products, as a search sees them: fields, plans, and cycles that no run can beat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product
from math import ceil

from kernels.davinci.product_rules import Matrices, plan_product
from kernels.davinci.sides import FRACTAL
from kernels.davinci.tiles import ceil_to
from kernels.davinci.tiling import ProductTiling
from kernels.dsp.places import places
from kernels.dsp.product.plan import plan_gemm
from kernels.dsp.product.tiling import GemmTiling, Problem, strips
from kernels.search.subject import Fields, Given, Options, Subject
from kernels.search.values import Extent, options_of
from simulator.instructions import matmul_cycles
from simulator.timing.links import UNIT

Timer = Callable[[Given], tuple[Fields, int]]
"""Runs the product with some fields, timed only: all fields, and the cycles."""


def subject_on_dsp(problem: Problem, time: Timer) -> Subject:
    """A product on a DSP."""

    def options(tiling: Given) -> Options:
        p, spec = problem, problem.spec(GemmTiling.model_validate(tiling))
        extents = {
            "M_G": Extent(p.m, spec.kernel_rows),
            "K_G": Extent(p.k),
            "M_A": Extent(min(p.m, 1024), spec.kernel_rows),
            "K_A": Extent(min(p.k, 4096)),
            "N_A": Extent(min(p.n, 512), spec.granule_columns),
            "M_S": Extent(min(p.m, 192), spec.kernel_rows),
        }
        found = options_of(GemmTiling, extents, tiling, ())
        found["ahead"] = [0, 1, 2]
        found["c_buffers"] = [1, 2, 3, 4]
        kernels = [k for k in found["kernel"] if problem.operand.name + _ending(k) in problem.target.matmul]
        return {**found, "kernel": kernels if problem.trans_b else ["nn"]}

    def plan(given: Given) -> Fields:
        return plan_gemm(problem, given).model_dump()

    def bound(tiling: Given) -> float:
        return least_cycles(problem, GemmTiling.model_validate(tiling))

    return Subject("c", time, options, plan, bound=bound)


def _ending(kernel: object) -> str:
    return "" if kernel == "nn" else f"_{kernel}"


def least_cycles(problem: Problem, tiling: GemmTiling) -> float:
    """Cycles that no run with a tiling can beat: the products of the busiest core, or the bytes that all cores read.

    The vector unit makes one product at a time, and of operands only what a panel or a tile holds is read once: B and C
    once a panel of A's rows (C as often as K has panels, if it goes out and back), A once where GSM keeps it for all.
    """
    p = problem.other_way() if tiling.swap else problem
    shares = [size for _, size in p.shares(tiling)]
    if not shares or not p.k:
        return 0.0
    most = max(shares)
    rows, columns = (p.m, most) if tiling.split == "n" else (most, p.n)
    products = sum(
        matmul_cycles(p.spec(tiling), 1, m, n, k)
        for _, panel in strips(0, rows, tiling.M_G)
        for _, tile in strips(0, panel, tiling.M_A)
        for _, m in strips(0, tile, tiling.M_S)
        for _, n in strips(0, columns, tiling.N_A)
        for _, depth in strips(0, p.k, tiling.K_G)
        for _, k in strips(0, depth, tiling.K_A)
    )
    return max(products, _read_bytes(p, tiling, shares) / _rate(p, len(shares)))


def _read_bytes(p: Problem, tiling: GemmTiling, shares: list[int]) -> float:
    """Bytes of A, B and C from main memory, at least."""
    item, total = p.operand.size_bytes, p.sum_type(tiling).size_bytes
    a = p.m * p.k * (1 if tiling.together or tiling.split == "m" else len(shares))
    panels = ceil(p.m / tiling.M_G) if tiling.split == "n" else sum(ceil(s / tiling.M_G) for s in shares)
    back = ceil(p.k / tiling.K_G) - 1 + p.accumulate
    return item * (a + panels * p.k * p.n) + total * back * p.m * p.n


def _rate(p: Problem, cores: int) -> float:
    """Bytes a cycle that so many cores read at most."""
    where = places(p.target)
    ports = cores * p.target.port_units(where.read_port)
    return min(p.target.link_units(where.main_link, cores), ports) / UNIT


def subject_on_cubes(p: Matrices, time: Timer) -> Subject:
    """A product on a Da Vinci chip."""
    c0 = 32 // p.operand.size_bytes

    def options(tiling: Given) -> Options:
        extents = {
            "m": Extent(min(p.m, 512), FRACTAL),
            "n": Extent(min(p.n, 512), FRACTAL),
            "k": Extent(min(p.k, 32 * c0), c0),
            "chunk": Extent(min(p.k, 128 * c0), c0),
            "split_k": Extent(min(p.cores, max(1, p.k // 64))),
        }
        return options_of(ProductTiling, extents, tiling, ())

    def plan(given: Given) -> Fields:
        return plan_product(p, given).model_dump()

    def bound(tiling: Given) -> float:
        return least_cube_cycles(p, ProductTiling.model_validate(tiling))

    return Subject("c", time, options, plan, bound=bound)


def least_cube_cycles(p: Matrices, t: ProductTiling) -> float:
    """Cycles that no run with a tiling can beat: all its products, divided evenly among the cubes.

    A product takes ceil16(m) x ceil16(n) x ceil(k) multiply-adds at the cube's rate, and its head
    (`simulator/cube/mmad.py`).
    """
    spec, total = p.target.cube[p.rate], 0.0
    for (_, m), (_, n) in product(strips(0, p.m, t.m), strips(0, p.n, t.n)):
        whole = ceil_to(m, FRACTAL) * ceil_to(n, FRACTAL)
        chunks = [size for _, size in strips(0, p.k, t.chunk)]
        steps = Counter(k for chunk in chunks for _, k in strips(0, chunk, t.k))
        one = {k: whole * ceil_to(k, spec.granule_k) / spec.macs_per_cycle + spec.head_cycles for k in steps}
        total += sum(times * one[k] for k, times in steps.items())
    return total / p.cores
