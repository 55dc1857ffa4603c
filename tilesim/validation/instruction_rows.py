"""Rows of published micro-benchmarks of Da Vinci instructions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from simulator.cube.fractals import FRACTAL_BYTES
from tilesim.validation.cells import CellError, Record, davinci_target, measured, one_of, shown
from tilesim.validation.tables import read_table

INSTRUCTIONS = Path(__file__).with_name("instructions_ascend.csv")
"""Micro-benchmarks of msKPP (xiaobingling93-pixel/Ascend-mskpp, csrc/prof_data/resource910b.cpp): moves, products and,
of each vector operation, its longest undisturbed point."""

COLUMNS = ("id", "target", "instruction", "size", "bursts", "clock_mhz", "cycles")
"""Columns that a file must have; it may have `mode`."""

ALONE = frozenset({"ascend910b3"})
"""Targets whose rows stand alone where `mode` does not say: the smallest product of 910B3 takes the head of an isolated
one, that of the others a few cycles."""

VECTOR = "VEC"
"""The class of all vector operations."""

Mode = Literal["isolated", "back-to-back"]


@dataclass(frozen=True)
class InstructionRow:
    """One measurement.

    Attributes:
        name: what the row is called.
        target: the target that stands for its chip.
        instruction: as the source calls it.
        sizes: numbers of the column `size` by name ("bytes", "repeat", or "m", "k", "n").
        bursts: one, several, or empty where that is not recorded.
        mode: whether the instruction stood alone or followed equal ones.
        clock_mhz: clock at which it was measured.
        cycles: measured, in cycles of that clock; None where nothing was recorded.
    """

    name: str
    target: str
    instruction: str
    sizes: dict[str, int]
    bursts: str
    mode: Mode
    clock_mhz: float
    cycles: float | None

    @property
    def family(self) -> str:
        """The class that the row is scored in."""
        return VECTOR if self.instruction.startswith(f"{VECTOR} ") else self.instruction

    @property
    def repeat(self) -> int:
        """Repeats of a vector operation, fractals of a load."""
        return self.sizes["repeat"]

    @property
    def bytes(self) -> int:
        """Bytes that were moved."""
        return self.sizes["bytes"] if "bytes" in self.sizes else self.repeat * FRACTAL_BYTES

    @property
    def chip(self) -> str:
        """The series that errors are summed up for."""
        return "950" if self.target.startswith("ascend950") else "910B"


def read_instruction_rows(path: Path = INSTRUCTIONS) -> list[InstructionRow]:
    """The rows of a file.

    Raises:
        TilesimError: it cannot be read, a column is missing, or a value is not usable.
    """
    return read_table(path, COLUMNS, _row)


def _row(record: Record) -> InstructionRow:
    davinci_target(record)
    return InstructionRow(
        name=record["id"],
        target=record["target"],
        instruction=record["instruction"],
        sizes=_sizes(record) if record["cycles"] else {},
        bursts=one_of(record, "bursts", ("", "one", "several")),
        mode=_mode(record.get("mode", ""), record["target"]),
        clock_mhz=measured(record, "clock_mhz") if record["cycles"] else 0.0,
        cycles=measured(record, "cycles") if record["cycles"] else None,
    )


def _sizes(record: Record) -> dict[str, int]:
    """Such as 1024, repeat=3 or m=32,k=16,n=16; a remark may follow after a space."""
    text = record["size"]
    first = text.split(maxsplit=1)[0] if text else ""
    pairs = [part.partition("=") for part in (first if "=" in first else f"bytes={first}").split(",")]
    found = {name: int(value) for name, _, value in pairs if value.isascii() and value.isdigit()}
    if (
        len(found) < len(pairs)
        or min(found.values()) < 1
        or set(found) not in _allowed(record["instruction"])
    ):
        names = " or ".join(", ".join(sorted(names)) for names in _allowed(record["instruction"]))
        raise CellError("size", shown(text), f"whole numbers from 1: {names}")
    return found


def _allowed(instruction: str) -> list[set[str]]:
    """The names of an instruction's sizes."""
    if instruction == "MMAD":
        return [set("mkn")]
    return [{"repeat"}] if instruction.startswith(f"{VECTOR} ") else [{"bytes"}, {"repeat"}]


def _mode(text: str, target: str) -> Mode:
    if not text:
        return "isolated" if target in ALONE else "back-to-back"
    for mode in get_args(Mode):
        if text == mode:
            return text  # type: ignore[return-value]  # one of the literals
    raise CellError("mode", text, ", ".join(get_args(Mode)))
