"""Which tiling a matrix product gets: 128 x 256 x 128 bytes, smaller where too few cores would have a tile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil

from kernels.davinci.fit import SUM_BYTES, Fields, first_that_fits, fits_l0, fits_l1, halves
from kernels.davinci.product_walk import Parts, divisions
from kernels.davinci.sides import FRACTAL
from kernels.davinci.tiles import ceil_to
from kernels.davinci.tiling import ProductTiling, checked, require_multiple
from simulator.values.numerics import DType
from targets.schema import Target

BASE_M, BASE_N, STEP_BYTES, CHUNK_BYTES = 128, 256, 128, 512
"""The base tile of the vendor's products (16-bit: 128 x 256 x 64), and K in an L1 chunk (16-bit: 256)."""


@dataclass(frozen=True)
class Matrices:
    """The product: sizes, which operands are given transposed, types, and where it runs."""

    m: int
    n: int
    k: int
    trans_a: bool
    trans_b: bool
    operand: DType
    rate: str
    target: Target
    cores: int


def product_ring_sizes(p: Matrices, t: ProductTiling) -> dict[str, int]:
    """Elements of each buffer."""
    m, n = ceil_to(min(t.m, p.m), FRACTAL), ceil_to(min(t.n, p.n), FRACTAL)
    chunk, k = (ceil_to(min(size, p.k), FRACTAL) for size in (t.chunk, t.k))
    return {"left": m * chunk, "right": n * chunk, "a": m * k, "b": n * k, "sums": m * n}


def plan_product(p: Matrices, given: Mapping[str, object]) -> ProductTiling:
    """The tiling of a product: by rule, but for the fields that are given.

    Raises:
        TilingError: a field is not usable, or nothing fits with it.
    """
    base = {**_base(p), **given}
    checked(ProductTiling, base)
    for field in ("m", "n"):
        require_multiple(field, int(str(base[field])), FRACTAL)
    require_multiple("k", int(str(base["k"])), 32 // p.operand.size_bytes)

    def fits(fields: Fields) -> bool:
        tiling = checked(ProductTiling, fields)
        sizes, item = product_ring_sizes(p, tiling), p.operand.size_bytes
        buffers = [(sizes[name] * item, depth) for name, depth in product_l1_depths(p, tiling).items()]
        return fits_l0(p.target, sizes, item, tiling.l0c) and fits_l1(p.target, buffers)

    fields = first_that_fits(_lowered(p, base, given), fits, "tiling")
    blocks: Fields = {**fields, "walk": "block"}
    if (
        fields["walk"] == "run"
        and "walk" not in given
        and _reuses(p, checked(ProductTiling, fields))
        and fits(blocks)
    ):
        fields = blocks
    return checked(ProductTiling, fields)


def block_parts(p: Matrices, t: ProductTiling) -> Parts:
    """How cores divide the tiles where operands stay in L1: as few parts of columns as L1 asks for."""
    options = divisions(ceil(p.m / t.m), ceil(p.n / t.n), p.cores) or [Parts(1, 1)]
    sizes, item = product_ring_sizes(p, t), p.operand.size_bytes

    def fits(parts: Parts) -> bool:
        depths = _block_depths(p, t, parts)
        return fits_l1(p.target, [(sizes[name] * item, depth) for name, depth in depths.items()])

    return next((parts for parts in options if fits(parts)), options[-1])


def _block_depths(p: Matrices, t: ProductTiling, parts: Parts) -> dict[str, int]:
    """Chunks of the largest core's block."""
    chunks = ceil(p.k / t.chunk)
    rows, columns = ceil(ceil(p.m / t.m) / parts.rows), ceil(ceil(p.n / t.n) / parts.columns)
    return {"left": max(1, rows * chunks), "right": max(1, columns * chunks)}


def product_l1_depths(p: Matrices, t: ProductTiling) -> dict[str, int]:
    """Buffers of each operand in L1: a ring, or all of a core's block."""
    if t.walk == "block":
        return _block_depths(p, t, block_parts(p, t))
    return {"left": t.l1, "right": t.l1}


def _reuses(p: Matrices, t: ProductTiling) -> bool:
    """Whether a core has several tiles, all of K each, so that operands in L1 would serve more than one."""
    several = ceil(p.m / t.m) * ceil(p.n / t.n) > p.cores
    return (
        t.split_k == 1 and p.k > 0 and several and bool(divisions(ceil(p.m / t.m), ceil(p.n / t.n), p.cores))
    )


def base_tile(target: Target, rate: str) -> tuple[int, int]:
    """Rows and columns of the vendor's base tile.

    128 x 256, and 256 x 256 on Ascend 950, whose L0C holds twice as much (hicann/ops-nn, mat_mul_v3, op_tiling/arch35/
    matmul_v3_tiling_helper.cpp: ResetBase). True fp32 has 128 x 128 on the others, as profiles of A2 show.
    """
    if is_950(target):
        return BASE_N, BASE_N
    return (BASE_M, BASE_M) if rate == "fp32" else (BASE_M, BASE_N)


def is_950(target: Target) -> bool:
    """Whether products are those of Ascend 950: L0C has ways to UB and main memory, and holds 256 x 256 sums."""
    ways = "l0c->ub" in target.path and f"l0c->{target.main_memory}" in target.path
    return ways and target.memory["l0c"].size_bytes >= BASE_N * BASE_N * SUM_BYTES


def _base(p: Matrices) -> Fields:
    """What the rule says.

    True fp32 takes a single fractal of K a step (and n of 256 where M is small), as profiles of A2 show, but on 950.
    Where the tiles are fewer than half of the cores, N (or M, if it is longer) is divided evenly among all.
    """
    latest = is_950(p.target)
    fractal_steps = p.rate == "fp32" and not latest
    high, wide = base_tile(p.target, p.rate)
    m = min(high, ceil_to(max(1, p.m), FRACTAL))
    n = min(BASE_N if m < high else wide, ceil_to(max(1, p.n), FRACTAL))
    if 2 * ceil(p.m / m) * ceil(p.n / n) < p.cores:
        if p.n >= p.m:
            n = min(n, FRACTAL * max(1, ceil(ceil(p.n / FRACTAL) / max(1, p.cores // max(1, ceil(p.m / m))))))
        else:
            m = min(m, FRACTAL * max(1, ceil(ceil(p.m / FRACTAL) / max(1, p.cores // max(1, ceil(p.n / n))))))
    item = p.operand.size_bytes
    k = 32 // item if fractal_steps else STEP_BYTES // item
    l0c = 2 if 2 * m * n * SUM_BYTES <= p.target.memory["l0c"].size_bytes else 1
    walk = "window" if latest else "run"
    return {
        "m": m,
        "n": n,
        "k": k,
        "chunk": CHUNK_BYTES // item,
        "split_k": 1,
        "walk": walk,
        "l1": 2,
        "l0c": l0c,
    }


def _lowered(p: Matrices, base: Fields, given: Mapping[str, object]) -> Iterator[Fields]:
    """The fields of the rule, and what is lower, in the order in which it is tried."""
    c0 = 32 // p.operand.size_bytes
    k = int(str(base["k"]))
    for n in halves(int(str(base["n"])), FRACTAL, FRACTAL):
        for m in halves(int(str(base["m"])), FRACTAL, FRACTAL):
            for l1 in (2, 1):
                for step in halves(k, c0, c0):
                    for chunk in halves(int(str(base["chunk"])), step, step):
                        yield {**base, "m": m, "n": n, "l1": l1, "k": step, "chunk": chunk, **given}
