"""Which tiles of a matrix product each core computes, and in which order.

`run`: each core has a run of all tiles, row of tiles by row, and as few cores are used as keep the number of rounds.

`block`: each core has a block of rows and columns of tiles, whose parts of both operands stay in L1 and are loaded once
(the vendor's full-load templates: hicann/cann-samples, page on the performance of products; a profile of 4096 x 4096
x 32 loads 1.8 us worth of operands, a ninth of what its tiles read).

`window`: the adaptive sliding window of the vendor's products on Ascend 950 (hicann/ops-nn, mat_mul_v3,
op_kernel/arch35/mat_mul_asw_block.h and op_tiling/arch35/matmul_v3_asw_tiling.cpp). Windows of four rows of tiles are
walked column by column, every second one backwards, and core i takes tile i of each round: what a round reads is nearly
a square of the product, which L2 serves. Where the last round has fewer tiles than cores, its tiles are divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kernels.davinci.sides import FRACTAL
from kernels.davinci.split import share, used
from kernels.davinci.tiles import ceil_to, pieces

WINDOW_ROWS = 4
"""Rows of tiles of a window; the last one takes what is left, up to seven."""

LEAST_RUN_BYTES = 128
"""A side along which main memory is contiguous is not divided once its pieces are as short as this."""

LEAST_SHARE = 0.8
"""Of the cores that a division has to use: a rule of the vendor's weight gradients (yueliang13/cann-ops-adv-vllm)."""

Piece = tuple[int, int]
"""(first, length) along an axis."""


class Tile(NamedTuple):
    """Rows [row, row + rows) and columns [column, column + columns) of c, summed over [k, k + depth)."""

    row: int
    rows: int
    column: int
    columns: int
    k: int
    depth: int


class Division(NamedTuple):
    """Parts that each tile of the last round is divided into."""

    rows: int
    columns: int

    @property
    def parts(self) -> int:
        """Of one tile."""
        return self.rows * self.columns


def in_run(rows: Sequence[Piece], columns: Sequence[Piece], depths: Sequence[Piece]) -> list[Tile]:
    """All tiles, columns inside, parts of K outside."""
    return [Tile(*row, *column, *depth) for depth in depths for row in rows for column in columns]


def in_windows(rows: Sequence[Piece], columns: Sequence[Piece], depths: Sequence[Piece]) -> list[Tile]:
    """All tiles, window by window; in a window rows inside, every second window from its last column."""
    found = []
    for depth in depths:
        for number, window in enumerate(_windows(rows)):
            across = columns if number % 2 == 0 else columns[::-1]
            found += [Tile(*row, *column, *depth) for column in across for row in window]
    return found


def _windows(rows: Sequence[Piece]) -> list[Sequence[Piece]]:
    """Rows of tiles in fours; the last window is not shorter than the others."""
    whole = max(1, len(rows) // WINDOW_ROWS)
    ends = [*(WINDOW_ROWS * i for i in range(1, whole)), len(rows)]
    return [rows[first:end] for first, end in zip([0, *ends[:-1]], ends, strict=True)]


def of_run(every: Sequence[Tile], cores: int, rank: int) -> list[Tile]:
    """A core's run of all tiles."""
    return [every[i] for i in share(len(every), used(len(every), cores), rank)]


class Parts(NamedTuple):
    """How many parts the rows and the columns of tiles are divided into among cores."""

    rows: int
    columns: int


def divisions(rows: int, columns: int, cores: int) -> list[Parts]:
    """Blocks that use enough of the cores, those with the fewest parts of columns first."""
    found = {}
    for wanted in range(1, cores + 1):
        across = used(columns, wanted)
        down = used(rows, cores // max(1, across))
        if across * down >= LEAST_SHARE * cores:
            found[across] = Parts(down, across)
    return [found[across] for across in sorted(found)]


def of_block(
    rows: Sequence[Piece], columns: Sequence[Piece], depth: Piece, parts: Parts, rank: int
) -> list[Tile]:
    """A core's block of tiles, columns inside."""
    row, column = divmod(rank, parts.columns)
    if row >= parts.rows:
        return []
    mine = (share(len(rows), parts.rows, row), share(len(columns), parts.columns, column))
    return [Tile(*rows[i], *columns[j], *depth) for i in mine[0] for j in mine[1]]


def of_rounds(every: Sequence[Tile], cores: int, rank: int, division: Division) -> list[Tile]:
    """A core's tile of each whole round, and its part of a tile of the last one."""
    whole = len(every) // cores * cores
    mine = list(every[rank:whole:cores])
    left, part = divmod(rank, division.parts)
    if whole + left < len(every):
        mine += _part_of(every[whole + left], division, part)
    return mine


def _part_of(tile: Tile, division: Division, part: int) -> list[Tile]:
    """One part of a divided tile, in whole fractals; none where the tile has fewer."""
    column, row = divmod(part, division.rows)
    rows = pieces(tile.rows, ceil_to(-(-tile.rows // division.rows), FRACTAL))
    columns = pieces(tile.columns, ceil_to(-(-tile.columns // division.columns), FRACTAL))
    if row >= len(rows) or column >= len(columns):
        return []
    (top, high), (left, wide) = rows[row], columns[column]
    return [tile._replace(row=tile.row + top, rows=high, column=tile.column + left, columns=wide)]


def division_of(left: int, cores: int, m_bytes: int | None, n_bytes: int | None) -> Division:
    """How `left` tiles of a last round are divided among all cores: rows and columns in turn, while cores last.

    `m_bytes` and `n_bytes` are the bytes of a tile's side where main memory is contiguous along it, else None.
    """
    rows = columns = 1
    while left and (rows + 1) * columns * left <= cores and _divisible(m_bytes, rows):
        rows += 1
        if rows * (columns + 1) * left <= cores and _divisible(n_bytes, columns):
            columns += 1
    return Division(rows, columns)


def _divisible(side_bytes: int | None, parts: int) -> bool:
    return side_bytes is None or -(-side_bytes // parts) > LEAST_RUN_BYTES
