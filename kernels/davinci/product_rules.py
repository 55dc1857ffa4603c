"""Which tiling a matrix product gets: 128 x 256 x 128 bytes, smaller where too few cores would have a tile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil

from kernels.davinci.fit import SUM_BYTES, Fields, first_that_fits, fits_l0, fits_l1, halves
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
        buffers = [(sizes[name] * item, tiling.l1) for name in ("left", "right")]
        return fits_l0(p.target, sizes, item, tiling.l0c) and fits_l1(p.target, buffers)

    fields = first_that_fits(_lowered(p, base, given), fits, "tiling")
    return checked(ProductTiling, fields)


def _base(p: Matrices) -> Fields:
    """What the rule says.

    True fp32 takes 128 x 128 (256 where M is small) and a single fractal of K a step, as its profiles show. Where the
    tiles are fewer than half of the cores, N (or M, if it is longer) is divided evenly among all.
    """
    true_fp32 = p.rate == "fp32"
    m = min(BASE_M, ceil_to(max(1, p.m), FRACTAL))
    n = min(BASE_N if not true_fp32 or m < BASE_M else BASE_M, ceil_to(max(1, p.n), FRACTAL))
    if 2 * ceil(p.m / m) * ceil(p.n / n) < p.cores:
        if p.n >= p.m:
            n = min(n, FRACTAL * max(1, ceil(ceil(p.n / FRACTAL) / max(1, p.cores // max(1, ceil(p.m / m))))))
        else:
            m = min(m, FRACTAL * max(1, ceil(ceil(p.m / FRACTAL) / max(1, p.cores // max(1, ceil(p.n / n))))))
    item = p.operand.size_bytes
    k = 32 // item if true_fp32 else STEP_BYTES // item
    l0c = 2 if 2 * m * n * SUM_BYTES <= p.target.memory["l0c"].size_bytes else 1
    return {"m": m, "n": n, "k": k, "chunk": CHUNK_BYTES // item, "split_k": 1, "l1": 2, "l0c": l0c}


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
