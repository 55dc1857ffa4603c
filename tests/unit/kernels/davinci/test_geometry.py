"""Sides, reach, tiles and layouts of a convolution as the cube sees it."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.davinci.layout import from_blocks, from_fractals, to_blocks, to_fractals
from kernels.davinci.reach import Reach
from kernels.davinci.sides import Sides
from kernels.davinci.tiles import Positions, box_of, most_box, tiles_of
from kernels.shape.shapes import ConvShape

SHAPES = (
    ConvShape(2, 20, (5, 7), 24, (3, 3), padding=1),
    ConvShape(1, 6, (4, 5, 3), 10, (2, 3, 1), groups=2, stride=2, padding=1),
    ConvShape(2, 40, (6,), 40, (3,), groups=40),
    ConvShape(1, 6, (5, 7), 10, (3, 3), stride=2, padding=1, transposed=True, output_padding=1),
)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("c0", [8, 16])
def test_layouts_go_there_and_back(shape: ConvShape, c0: int) -> None:
    """Images and weights survive; what pads them is zero."""
    sides, rng = Sides.of(shape, c0), np.random.default_rng(0)
    pairs = [(sides.large, shape.x_shape), (sides.small, shape.dy_shape)]
    if shape.transposed:
        pairs = [(sides.small, shape.x_shape), (sides.large, shape.dy_shape)]
    for side, dims in pairs:
        image = rng.standard_normal(dims).astype(np.float32)
        blocks = to_blocks(sides, side, image)
        assert blocks.shape == sides.image_shape(side)
        np.testing.assert_array_equal(from_blocks(sides, side, blocks).reshape(dims), image)
        assert np.count_nonzero(blocks) == np.count_nonzero(image)
    weights = rng.standard_normal(shape.w_shape).astype(np.float32)
    fractals = to_fractals(sides, weights)
    assert fractals.shape == sides.weight_shape
    assert np.count_nonzero(fractals) == np.count_nonzero(weights)
    np.testing.assert_array_equal(from_fractals(sides, fractals).reshape(shape.w_shape), weights)


def test_groups_are_merged_while_they_fit_a_fractal() -> None:
    """Depthwise: 16 groups in one; 5 channels: 3 groups; 17 channels: none."""
    merged = [
        Sides.of(ConvShape(1, c * g, (3, 3), c * g, (1, 1), groups=g), 16).merged
        for c, g in ((1, 64), (5, 8), (17, 2))
    ]
    assert merged == [16, 3, 1]


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("low", [0, 2])
def test_scatter_is_the_adjoint_of_gather(stride: int, dilation: int, low: int) -> None:
    """Target i reads source o with a tap exactly where target o reads source i; spans hold all that is read."""
    args = (5, 11, 3, stride, dilation, low)
    gather, scatter = Reach.gather(*args), Reach.scatter(*args)
    there = {
        (o, gather.source(o, q), q) for o in range(5) for q in range(3) if gather.source(o, q) is not None
    }
    back = {
        (scatter.source(i, q), i, q) for i in range(11) for q in range(3) if scatter.source(i, q) is not None
    }
    assert there == back
    for reach in (gather, scatter):
        a, b = reach.span(1, 3, 0, 2)
        read = {reach.source(t, q) for t in (1, 2, 3) for q in range(3)} - {None}
        assert read <= set(range(a, b))


@pytest.mark.parametrize(("height", "width"), [(13, 13), (1, 100), (5, 40), (3, 1)])
@pytest.mark.parametrize("m", [1, 16, 48, 208])
@pytest.mark.parametrize("rows", [False, True])
def test_tiles_cover_a_plane(height: int, width: int, m: int, rows: bool) -> None:
    """Every position lies in one tile, none has more than m (whole fractals of rows, where rows are padded)."""
    tiles = tiles_of(height, width, m, rows)
    covered = [p for tile in tiles for p in range(tile.first, tile.first + tile.length)]
    assert covered == list(range(height * width))
    assert all(tile.length <= m for tile in tiles)


def test_padded_rows() -> None:
    """13 rows of 13 are 13 fractals, 208 rows of the product; consecutive positions are 169."""
    (whole,) = tiles_of(13, 13, 208, True)
    assert whole.executed == 208
    (flat,) = tiles_of(13, 13, 176, False)
    assert flat.executed == 169


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("way", ["gather", "scatter"])
@pytest.mark.parametrize("m", [1, 5, 16, 64])
@pytest.mark.parametrize("taps", [1, 2, 3, 9])
def test_no_box_exceeds_its_bound(shape: ConvShape, way: str, m: int, taps: int) -> None:
    """What a buffer is sized for holds what any tile reads."""
    sides = Sides.of(shape, 16)
    axes = sides.reach("gather" if way == "gather" else "scatter")
    _, height, width = axes
    most = min(taps, sides.plane_taps)
    for rows in (False, True):
        bound = most_box(axes, m, rows, most)
        for tile in tiles_of(height.targets, width.targets, m, rows):
            for tap in range(0, sides.plane_taps, most):
                box = box_of(axes, tile, tap, min(most, sides.plane_taps - tap))
                assert box.rows <= bound[0]
                assert box.columns <= bound[1]


def test_columns_of_a_part_of_a_row() -> None:
    """A tile inside a row reads what its columns reach."""
    axes = Sides.of(ConvShape(1, 1, (1, 100), 1, (1, 3), padding=((0, 0), (1, 1))), 16).reach("gather")
    box = box_of(axes, Positions(10, 5, 100, False), 0, 3)
    assert (box.row, box.rows, box.column, box.columns) == (0, 1, 9, 7)
