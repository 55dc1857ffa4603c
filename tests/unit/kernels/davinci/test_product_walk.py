"""Which tiles of a product each core has: every element of c once, in the vendor's orders."""

from __future__ import annotations

from itertools import product

import pytest

from kernels.davinci.product import Product, ProductTensors
from kernels.davinci.product_rules import Matrices, plan_product
from kernels.davinci.product_walk import Division, Parts, Tile, division_of, divisions, in_windows
from kernels.davinci.tiles import pieces
from simulator.machine import Machine
from simulator.values.numerics import dtype
from targets.loader import load_target


def _kernel(
    target: str, sizes: tuple[int, int, int], cores: int, kind: str = "fp16", **given: object
) -> Product:
    chip = load_target(target)
    m, n, k = sizes
    p = Matrices(m, n, k, False, False, dtype(kind), kind, chip, cores)
    machine = Machine(chip, tuple(range(cores)), numerics=False)
    return Product(p, plan_product(p, given), _tensors(machine, p))


def _tensors(machine: Machine, p: Matrices) -> ProductTensors:
    a = machine.tensor("a", (p.m, p.k), p.operand)
    b = machine.tensor("b", (p.k, p.n), p.operand)
    return ProductTensors(a, b, machine.tensor("c", (p.m, p.n), p.operand))


@pytest.mark.parametrize("walk", ["run", "block", "window"])
@pytest.mark.parametrize(
    "sizes", [(2208, 2048, 64), (1000, 2368, 64), (40, 600, 64), (700, 300, 64)], ids=str
)
def test_each_element_belongs_to_one_core(walk: str, sizes: tuple[int, int, int]) -> None:
    """The tiles of all cores lie side by side and fill c."""
    kernel = _kernel("ascend950pr", sizes, 32, walk=walk)
    tiles = [tile for rank in range(32) for tile in kernel.tiles(rank, 32)]
    assert sum(tile.rows * tile.columns for tile in tiles) == sizes[0] * sizes[1]
    fractals = {
        (tile.row + i, tile.column + j)
        for tile in tiles
        for i, j in product(range(0, tile.rows, 16), range(0, tile.columns, 16))
    }
    assert len(fractals) == len({(16 * (i // 16), 16 * (j // 16)) for i, j in fractals})
    assert len(fractals) == -(-sizes[0] // 16) * -(-sizes[1] // 16)


def test_a_window_has_four_rows_and_every_second_one_runs_backwards() -> None:
    """Nine rows of tiles: a window of four, then one of five from the last column."""
    order = [(t.row, t.column) for t in in_windows(pieces(9, 1), pieces(3, 1), [(0, 8)])]
    first = [(row, column) for column in range(3) for row in range(4)]
    second = [(row, column) for column in (2, 1, 0) for row in range(4, 9)]
    assert order == first + second


def test_a_last_round_is_divided() -> None:
    """72 tiles on 32 cores: two rounds, and 8 tiles as 32 quarters."""
    kernel = _kernel("ascend950pr", (2208, 2048, 512), 32)
    mine = [kernel.tiles(rank, 32) for rank in range(32)]
    assert [len(tiles) for tiles in mine] == [3] * 32
    assert {(tiles[-1].rows, tiles[-1].columns) for tiles in mine} <= {(128, 128), (80, 128)}
    assert (
        _kernel("ascend950pr", (1024, 1024, 1024), 32).tiles(16, 32) == []
    )  # fewer tiles than cores stay whole


@pytest.mark.parametrize(
    ("left", "sides", "wanted"),
    [
        (8, (None, None), (2, 2)),
        (8, (512, None), (2, 2)),
        (8, (128, None), (1, 1)),
        (17, (None, None), (1, 1)),
        (1, (None, 512), (8, 4)),
        (0, (None, None), (1, 1)),
    ],
)
def test_division(left: int, sides: tuple[int | None, int | None], wanted: tuple[int, int]) -> None:
    """Rows and columns in turn as long as 32 cores last, contiguous sides no shorter than 128 bytes."""
    assert division_of(left, 32, *sides) == Division(*wanted)


def test_a_block_is_kept_in_l1() -> None:
    """Short K: 22 of 24 cores have blocks, and each loads each of its rows of a and columns of b once."""
    kernel = _kernel("ascend910b2", (4096, 4096, 32), 24, "fp32")
    assert kernel.tiling.walk == "block"
    blocks = [kernel.tiles(rank, 24) for rank in range(24)]
    assert sum(map(bool, blocks)) == 22
    chip = load_target("ascend910b2")
    machine = Machine(chip, tuple(range(24)), numerics=False)
    machine.launch(Product(kernel.matrices, kernel.tiling, _tensors(machine, kernel.matrices)))
    names = machine.trace().to_pandas()["name"]
    rows = sum(len({tile.row for tile in tiles}) for tiles in blocks)
    columns = sum(len({tile.column for tile in tiles}) for tiles in blocks)
    assert (names == "load_left").sum() == rows
    assert (names == "load_right").sum() == columns


def test_divisions_use_most_cores() -> None:
    """Few parts of columns first; what leaves more than a fifth of the cores without work is no division."""
    assert divisions(32, 32, 24)[0] == Parts(11, 2)
    assert all(d.rows * d.columns >= 19.2 for d in divisions(32, 32, 24))
    assert divisions(2, 3, 24) == []


def test_long_k_has_no_block() -> None:
    """What does not fit L1 as a whole is loaded tile by tile."""
    assert _kernel("ascend910b2", (4096, 4096, 1024), 24).tiling.walk == "run"
    assert isinstance(_kernel("ascend910b2", (4096, 4096, 1024), 24).tiles(0, 24)[0], Tile)
