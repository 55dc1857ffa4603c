"""Rows of published measurements of matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from targets.loader import available_targets, load_target
from targets.schema import Target
from tilesim.validation.cells import CellError, Record, measured, one_of, whole
from tilesim.validation.tables import read_table

PUBLISHED = Path(__file__).with_name("gemm_ft_m7032.csv")
"""Micro-kernels and products of the FT-M7032 GEMM papers."""

BLOCKING = ("M_G", "K_G", "M_A", "K_A", "N_A", "M_S")
"""Columns that hold the blocking of a row, where it was published."""

COLUMNS = ("id", "chip", "cores", "dtype", "kind", "mode", "M", "N", "K", "gflops_per_core")
"""Columns that a file must have."""

MICROKERNEL = "microkernel"
"""The kind of a row that is one call of a micro-kernel on one core."""

KINDS = (MICROKERNEL, "gemm", "gemm-skinny", "gemm-irregular")
MODES = ("NN", "NT", "TN", "TT", "NT-merged")
"""What a row may be."""

DEFAULT_TARGET = "ft_m7032"
"""What stands for the chip of the published rows."""


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        name: what the row is called.
        chip: the chip as the source calls it.
        cores: cores that took part.
        dtype: type of the operands.
        kind: microkernel, gemm, gemm-skinny or gemm-irregular.
        mode: N or T of each operand, and whether the kernel is a merged one.
        m, n, k: sizes of the product.
        blocking: the tile sizes that were published with it.
        gflops_per_core: measured, None where only cycles are known.
        cycles: of a micro-kernel by its published formula, None for others.
    """

    name: str
    chip: str
    cores: int
    dtype: str
    kind: str
    mode: str
    m: int
    n: int
    k: int
    blocking: dict[str, int]
    gflops_per_core: float | None
    cycles: int | None

    @property
    def trans_a(self) -> bool:
        """Whether the first operand is given transposed."""
        return self.mode[0] == "T"

    @property
    def trans_b(self) -> bool:
        """Whether the second operand is given transposed."""
        return self.mode[1] == "T"

    @property
    def label(self) -> str:
        """Mode, type, cores, sizes and the step of k, for a table."""
        step = f" K_A={self.blocking['K_A']}" if "K_A" in self.blocking else ""
        return f"{self.mode} {self.dtype} {self.cores}c {self.m}x{self.n}x{self.k}{step}"


def read_rows(path: Path = PUBLISHED, target: Target | None = None) -> list[Row]:
    """The rows of a file, for a target that stands for its chip (absent: `DEFAULT_TARGET`).

    Raises:
        TilesimError: it cannot be read, a column is missing, or a value is none that the target and the suite know.
    """
    target = target or load_target(DEFAULT_TARGET)
    return read_table(path, COLUMNS, lambda record: _row(record, target))


def _row(record: Record, target: Target) -> Row:
    formula = record.get("cycles")
    return Row(
        name=record["id"],
        chip=_chip(record, target),
        cores=whole(record, "cores", target.groups),
        dtype=one_of(record, "dtype", [name for name in target.matmul if "_" not in name]),
        kind=one_of(record, "kind", KINDS),
        mode=one_of(record, "mode", MODES),
        m=whole(record, "M"),
        n=whole(record, "N"),
        k=whole(record, "K"),
        blocking=_blocking(record),
        gflops_per_core=measured(record, "gflops_per_core") if record["gflops_per_core"] else None,
        cycles=whole(record, "cycles") if formula else None,
    )


def _chip(record: Record, target: Target) -> str:
    """A chip by the name of a target; case, and - for _, do not matter."""
    known = {name.lower().replace("_", "-") for name in (target.name, *available_targets())}
    if record["chip"].lower().replace("_", "-") not in known:
        raise CellError("chip", record["chip"] or "nothing", ", ".join(sorted(known)))
    return record["chip"]


def _blocking(record: Record) -> dict[str, int]:
    """The tile sizes that are given; the step of k is among them, which the others stand on."""
    given = [name for name in BLOCKING if record.get(name)]
    if given and "K_A" not in given:
        raise CellError("K_A", "nothing", f"a whole number from 1 beside {given[0]}")
    return {name: whole(record, name) for name in given}
