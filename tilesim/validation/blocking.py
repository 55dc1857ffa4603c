"""How a published product was cut: its blocking where that was published, else a rule of its class.

The rules are assumptions, one for each class of products and none for a single row:

- short K (up to 96): panels of A go through GSM, each core's own rows, and the cores meet at each;
- few columns and long K: a tile of C stays in AM for all of K, and A streams from DDR past GSM;
- one side of C short, the other and K long: the short operand is in GSM as a whole, the other passes once.

Every product is added to c, as in the published interface.
"""

from __future__ import annotations

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
    fits = target.memory["sm"].size_bytes // (2 * KERNEL_ROWS * item_bytes) // burst * burst
    rows = min(side // KERNEL_ROWS * KERNEL_ROWS, _share(row.m, row.cores))
    sizes = {"M_G": rows, "K_G": row.k, "M_A": rows, "K_A": min(side, fits), "N_A": row.n}
    return {**sizes, "M_S": KERNEL_ROWS, "split": "m", "gsm_holds": "none", "c_buffers": 2}


def _one_short_side(row: Row, target: Target, item_bytes: int) -> Tiling:
    """The operand of the short side is the one in GSM: with more rows than columns they change places.

    Where the operands run along k the merged kernel is used, with the widest C tile that SM holds and the longest step
    of k that AM holds. C tiles that are turned in AM leave room for one only.
    """
    swap, short = row.m > row.n, min(row.m, row.n)
    sizes = {"M_G": short, "K_G": row.k, "M_A": short, "K_A": K_STEP, "M_S": KERNEL_ROWS}
    fields: Tiling = {
        **sizes,
        "split": "n",
        "swap": swap,
        "c_buffers": 1 if swap else 2,
        "N_A": KERNEL_COLUMNS,
    }
    if not row.trans_a if swap else row.trans_b:
        widest = target.memory["sm"].size_bytes // (short * item_bytes)
        granule = target.matmul[f"{row.dtype}_nt_merged"].granule_columns
        columns = widest // granule * granule
        room = target.memory["am"].size_bytes - TURNING_BYTES
        step = _equal(row.k, room // (2 * (columns + KERNEL_ROWS) * item_bytes))
        fields |= {"kernel": "nt_merged", "N_A": columns, "K_A": step, "c_buffers": 1}
    return fields


def _equal(total: int, most: int) -> int:
    """The size of equal steps of at most `most`, in eighths."""
    size = -(-total // -(-total // (most // 8 * 8)))
    return -(-size // 8) * 8


def _share(rows: int, cores: int) -> int:
    """Rows of the busiest core, in whole micro-kernels."""
    kernels = -(-rows // KERNEL_ROWS)
    return -(-kernels // cores) * KERNEL_ROWS
