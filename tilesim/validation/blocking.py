"""How a published product was cut: its blocking where that was published, else a rule of its class.

The rules are assumptions, one for each class of products and none for a single row:

- short K (up to 96): panels of A go through GSM, each core's own rows, and the cores meet at each;
- few columns and long K: a tile of C stays in AM for all of K, and A streams from DDR past GSM;
- one side of C short, the other and K long: the short operand is in GSM as a whole, the other passes once.

A product that the rule of its class does not fit is cut as `gemm` does by itself. Every product is added to c, as in
the published interface, where c has the type of the sums.
"""

from __future__ import annotations

from kernels.dsp.product.plan import plan_gemm
from kernels.dsp.product.tiling import GemmTiling, Problem
from kernels.errors import TilingError
from simulator.values.numerics import dtype
from targets.schema import Target
from tilesim.validation.rows import Row

SHORT_K = 96
"""Steps of k up to which all of K is one step."""

HALF_TILE = 196608
"""Bytes of a B tile and of a C tile of few columns: two of each are all of AM."""

KERNEL_ROWS = 6
KERNEL_COLUMNS = 48
K_STEP = 512
"""Rows and columns of the widest fp64 micro-kernel, and the step of k of products with one short side."""

TURNING_BYTES = 32768
"""Bytes of AM in which a transposed operand is turned, square by square."""

Tiling = dict[str, object]


def planned(row: Row, target: Target) -> tuple[Problem, GemmTiling]:
    """The product that a row runs, in the order in which it is computed, and its whole tiling.

    Raises:
        TilesimError: a published blocking is not usable on the target.
    """
    kind = dtype(row.dtype)
    turned = row.trans_a, row.trans_b
    problem = Problem(row.m, row.n, row.k, *turned, kind, target, row.cores, accumulates(row))
    try:
        tiling = plan_gemm(problem, tiling_of(row, target, kind.size_bytes))
    except TilingError:
        if row.blocking:
            raise
        tiling = plan_gemm(problem, {})
    return (problem.other_way() if tiling.swap else problem), tiling


def accumulates(row: Row) -> bool:
    """Whether the product is added to c: not where its sums are of a wider type."""
    return row.dtype != "fp16"


def tiling_of(row: Row, target: Target, item_bytes: int) -> Tiling:
    """The tiling that a row runs with."""
    if row.blocking:
        return {"split": "n", **row.blocking, "K_G": row.blocking.get("K_G", row.blocking["K_A"])}
    if row.kind == "gemm-irregular":
        return _one_short_side(row, target, item_bytes)
    if row.k <= SHORT_K:
        return _short_k(row, target, item_bytes)
    return _few_columns(row, target, item_bytes)


def _short_k(row: Row, target: Target, item_bytes: int) -> Tiling:
    rows = target.memory["gsm"].size_bytes // (row.cores * row.k * item_bytes)
    sizes = {"M_G": rows // KERNEL_ROWS * KERNEL_ROWS, "K_G": row.k, "K_A": row.k, "N_A": row.n}
    return {**sizes, "M_S": KERNEL_ROWS, "split": "m", "gsm_holds": "a", "meet": True, "c_buffers": 3}


def _few_columns(row: Row, target: Target, item_bytes: int) -> Tiling:
    side = HALF_TILE // (row.n * item_bytes)
    burst = target.link["ddr"].burst_bytes // item_bytes
    fits = target.memory["sm"].size_bytes // (2 * KERNEL_ROWS * item_bytes)
    rows = min(_whole(side, KERNEL_ROWS), _share(row.m, row.cores))
    sizes = {
        "M_G": rows,
        "K_G": row.k,
        "M_A": rows,
        "K_A": min(row.k, _whole(min(side, fits), burst)),
        "N_A": row.n,
    }
    return {**sizes, "M_S": KERNEL_ROWS, "split": "m", "gsm_holds": "none", "c_buffers": 2}


def _one_short_side(row: Row, target: Target, item_bytes: int) -> Tiling:
    """The operand of the short side is the one in GSM: with more rows than columns they change places."""
    swap, short = row.m > row.n, min(row.m, row.n)
    fields: Tiling = {"split": "n", "swap": swap, "M_G": short, "M_S": KERNEL_ROWS, "N_A": KERNEL_COLUMNS}
    rows_along_k = not row.trans_a if swap else row.trans_b
    if rows_along_k and f"{row.dtype}_nt_merged" in target.matmul:
        return fields | _along_k(row, target, item_bytes, short)
    panel = target.memory["gsm"].size_bytes // (short * item_bytes)
    tile = target.memory["am"].size_bytes - TURNING_BYTES - 2 * K_STEP * KERNEL_COLUMNS * item_bytes
    buffers = 1 if swap else 2  # C tiles that are turned in AM need two more places there
    rows = tile // ((3 if swap else buffers) * KERNEL_COLUMNS * item_bytes)
    sizes = {"K_G": row.k if row.k <= panel else _whole(panel, K_STEP), "K_A": min(K_STEP, row.k)}
    return fields | sizes | {"M_A": min(short, _whole(rows, KERNEL_ROWS)), "c_buffers": buffers}


def _along_k(row: Row, target: Target, item_bytes: int, short: int) -> Tiling:
    """Both operands run along k: the merged kernel, and the longest equal steps of k that AM holds.

    SM is too small for a C tile that stays for all of K: C passes at every step, three tiles of it in SM.
    """
    room = target.memory["am"].size_bytes - TURNING_BYTES
    step = _equal(row.k, room // (2 * (KERNEL_COLUMNS + KERNEL_ROWS) * item_bytes))
    rows = target.memory["sm"].size_bytes // (3 * KERNEL_COLUMNS * item_bytes)
    tall = -(-short // -(-short // _whole(rows, KERNEL_ROWS)))
    sizes = {"K_G": step, "K_A": step, "M_A": -(-tall // KERNEL_ROWS) * KERNEL_ROWS}
    return {**sizes, "kernel": "nt_merged", "c_buffers": 3}


def _whole(most: int, unit: int) -> int:
    """The largest multiple of a unit up to `most`, at least one."""
    return max(unit, most // unit * unit)


def _equal(total: int, most: int) -> int:
    """The size of equal steps of at most `most`, in eighths."""
    size = -(-total // -(-total // (most // 8 * 8)))
    return -(-size // 8) * 8


def _share(rows: int, cores: int) -> int:
    """Rows of the busiest core, in whole micro-kernels."""
    kernels = -(-rows // KERNEL_ROWS)
    return -(-kernels // cores) * KERNEL_ROWS
