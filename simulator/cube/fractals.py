"""Fractals: what the cube and its loads count in."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import TypeVar

from simulator.errors import ProgramError

FRACTAL_ROWS = 16
"""Rows (of m, or of n) of a fractal, and of what the cube multiplies at once."""

BLOCK_BYTES = 32
"""Bytes of a row of a fractal; C0 elements."""

FRACTAL_BYTES = FRACTAL_ROWS * BLOCK_BYTES
"""Bytes of a fractal of operands."""

Spec = TypeVar("Spec")


def block_elements(item_bytes: int) -> int:
    """C0: elements of a row of a fractal."""
    return BLOCK_BYTES // item_bytes


def round_up(count: int, granule: int) -> int:
    """The least multiple of a granule that is not below a count."""
    return ceil(count / granule) * granule


def fractals(rows: int, columns: int, item_bytes: int) -> int:
    """Fractals that hold a matrix: rows in sixteens, columns (of k) in blocks of 32 bytes."""
    return ceil(rows / FRACTAL_ROWS) * ceil(columns / block_elements(item_bytes))


def table_of(tables: Mapping[str, Spec], kind: str, name: str, target: str) -> Spec:
    """The table of a name.

    Raises:
        ProgramError: the target has no such table.
    """
    if name not in tables:
        limit = ", ".join(tables) or "the target has none"
        raise ProgramError(f"no such {kind}", where=target, got=name, limit=limit)
    return tables[name]
