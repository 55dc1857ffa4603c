"""Rows of published measurements of matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tilesim.validation.tables import Record, read_table

PUBLISHED = Path(__file__).with_name("gemm_ft_m7032.csv")
"""Micro-kernels and products of the FT-M7032 GEMM papers."""

BLOCKING = ("M_G", "K_G", "M_A", "K_A", "N_A", "M_S")
"""Columns that hold the blocking of a row, where it was published."""

COLUMNS = ("id", "chip", "cores", "dtype", "kind", "mode", "M", "N", "K", "gflops_per_core")
"""Columns that a file must have."""

MICROKERNEL = "microkernel"
"""The kind of a row that is one call of a micro-kernel on one core."""


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


def read_rows(path: Path = PUBLISHED) -> list[Row]:
    """The rows of a file.

    Raises:
        TilesimError: it cannot be read, a column is missing, or a value is no number.
    """
    return read_table(path, COLUMNS, _row)


def _row(record: Record) -> Row:
    measured, formula = record["gflops_per_core"], record.get("cycles")
    if record["mode"][:2] not in ("NN", "NT", "TN", "TT"):
        raise ValueError(f"mode {record['mode']!r}")
    return Row(
        name=record["id"],
        chip=record["chip"],
        cores=int(record["cores"]),
        dtype=record["dtype"],
        kind=record["kind"],
        mode=record["mode"],
        m=int(record["M"]),
        n=int(record["N"]),
        k=int(record["K"]),
        blocking={name: int(record[name]) for name in BLOCKING if record.get(name)},
        gflops_per_core=float(measured) if measured else None,
        cycles=int(formula) if formula else None,
    )
