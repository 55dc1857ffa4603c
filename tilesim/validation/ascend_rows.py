"""Rows of published measurements of Ascend kernels: convolutions and matrix products.

Sources: a profile of an AlexNet training step and one of a language model's on 910B parts (msinsight), profiles on the
first 910 (mindinsight), operator benchmarks (hicann/cann-bench) on 910B2 and 950PR. The column `l2` says what a row's
first launch finds: operands of the language model's profile were written just before, those of the other rows are cold.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kernels.shape.shapes import ConvShape
from tilesim.validation.cells import (
    CellError,
    Record,
    davinci_target,
    measured,
    numbers,
    one_of,
    shown,
    whole,
)
from tilesim.validation.tables import head_of, read_table

FOLDER = Path(__file__).parent
PUBLISHED = {"conv": FOLDER / "conv_ascend.csv", "gemm": FOLDER / "gemm_ascend.csv"}
"""The published rows of each suite."""

FIGURES = ("mac", "mte1", "mte2", "fixpipe", "scalar", "core", "duration")
"""What is measured, in microseconds: busy times of the pipes (mean over the cores used), the cores' time, and all."""

COLUMNS = ("id", "target", "set", "product", "dtype", "duration_us")
"""Columns that a file must have, beside those of its problems."""

CONVOLUTION = (
    *("op", "N", "Cin", "D", "H", "W", "Cout", "Kd", "Kh", "Kw"),
    *("stride", "pad_low", "pad_high", "dilation", "groups"),
)
PRODUCT = ("m", "n", "k", "trans_a", "trans_b")
"""What a problem is made of."""

OPS = ("forward", "dx", "dw")
"""What a row of a convolution may be."""

DTYPES = {"float": "fp32", "float16": "fp16"}
"""Names of data types in the sources."""


@dataclass(frozen=True)
class Product:
    """Sizes of a matrix product, and which operands are given transposed."""

    m: int
    n: int
    k: int
    trans_a: bool
    trans_b: bool

    @property
    def useful_macs(self) -> int:
        """Multiply-adds."""
        return self.m * self.n * self.k


@dataclass(frozen=True)
class AscendRow:
    """One measurement.

    Attributes:
        name: what the row is called.
        label: operator and sizes.
        group: rows that are summed up together.
        target, overrides: what stands for its chip.
        op: forward, dx, dw or gemm.
        problem: its sizes.
        dtype: what was computed in.
        l2: what the first launch finds in L2.
        whole: whether conversions and the other launches of the call were measured too.
        framework: whether a framework's launch was.
        measured: figures in microseconds.
    """

    name: str
    label: str
    group: str
    target: str
    overrides: dict[str, str]
    op: str
    problem: ConvShape | Product
    dtype: str
    l2: Literal["cold", "warm"]
    whole: bool
    framework: bool
    measured: dict[str, float]


def read_ascend_rows(path: Path) -> list[AscendRow]:
    """The rows of a file with the columns of the published ones.

    Raises:
        TilesimError: the file lacks a column, or a row makes no sense.
    """
    own = CONVOLUTION if "Cout" in head_of(path) else PRODUCT
    return read_table(path, (*COLUMNS, *own), _row)


def _row(row: Record) -> AscendRow:
    convolution = "Cout" in row
    op = one_of(row, "op", OPS) if convolution else "gemm"
    problem = _shape(row) if convolution else _product(row)
    overrides = _overrides(row)
    return AscendRow(
        name=row["id"],
        label=f"{op} {sizes_of(problem)}",
        group=_group(row, op, bool(row.get("mac_us") and row.get("mte1_us"))),
        target=row["target"],
        overrides=overrides,
        op=op,
        problem=problem,
        dtype=_dtype(row, overrides),
        l2="warm" if row.get("l2") == "warm" else "cold",
        whole="whole call" in row.get("note", ""),
        framework="framework call" in row["product"],
        measured=_figures(row),
    )


def _overrides(row: Record) -> dict[str, str]:
    parts = [part.partition("=") for part in row["set"].split(",") if part]
    if not all(equal for _, equal, _ in parts):
        raise CellError("set", row["set"], "key=value")
    return {key: value for key, _, value in parts}


def _dtype(row: Record, overrides: dict[str, str]) -> str:
    """What was computed in: a type that the cube of the target has; a remark may follow after a space."""
    kind = row["dtype"].split(maxsplit=1)[0] if row["dtype"] else ""
    dtype = "hf32" if row.get("hf32") == "YES" else DTYPES.get(kind, kind)
    known = davinci_target(row, overrides).cube
    if dtype not in known:
        raise CellError("dtype", shown(dtype), ", ".join(known))
    return dtype


def _figures(row: Record) -> dict[str, float]:
    """What was measured: the duration at least; a pipe or a core may have been idle."""
    given = [name for name in FIGURES if row.get(f"{name}_us")]
    parts = {name: measured(row, f"{name}_us", zero=True) for name in given if name != "duration"}
    return {**parts, "duration": measured(row, "duration_us")}


def _group(row: Record, op: str, pipes: bool) -> str:
    kind = "profile" if pipes else "duration"
    if op == "gemm":
        return f"{row['target']} {row['dtype']} {kind}"
    return f"{row['target']} {kind}"


def _shape(row: Record) -> ConvShape:
    axes = slice(0 if whole(row, "D") > 1 or whole(row, "Kd") > 1 else 1, 3)
    lows, highs = (numbers(row, name, 0) for name in ("pad_low", "pad_high"))
    return ConvShape(
        n=whole(row, "N"),
        cin=whole(row, "Cin"),
        size=[whole(row, a) for a in "DHW"[axes]],
        cout=whole(row, "Cout"),
        kernel=[whole(row, f"K{a}") for a in "dhw"[axes]],
        stride=numbers(row, "stride", 1)[axes],
        padding=list(zip(lows, highs, strict=True))[axes],
        dilation=numbers(row, "dilation", 1)[axes],
        groups=whole(row, "groups"),
    )


def _product(row: Record) -> Product:
    turned = (one_of(row, name, ("N", "T")) == "T" for name in ("trans_a", "trans_b"))
    return Product(whole(row, "m"), whole(row, "n"), whole(row, "k"), *turned)


def sizes_of(problem: ConvShape | Product) -> str:
    """The sizes of a problem, for a table."""
    if isinstance(problem, Product):
        return f"{problem.m}x{problem.n}x{problem.k}"
    size, kernel = ("x".join(map(str, v)) for v in (problem.size, problem.kernel))
    return f"{problem.n}x{problem.cin}x{size} -> {problem.cout}, {kernel}"
