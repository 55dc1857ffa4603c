"""The written rules of tilings, against the tiles that profiles and the vendor's sources show."""

from __future__ import annotations

import pytest

from kernels.davinci.image_rules import Setting, plan_image
from kernels.davinci.product_rules import Matrices, plan_product
from kernels.davinci.sides import Sides
from kernels.davinci.weight_rules import plan_weights
from kernels.errors import TilingError
from kernels.shape.shapes import ConvShape
from simulator.values.numerics import dtype
from targets.loader import load_target

LAYER = ConvShape(32, 192, (13, 13), 384, (3, 3), padding=1)


def setting(shape: ConvShape, target: str = "ascend910b2", kind: str = "fp32") -> Setting:
    """What a rule sees of a layer."""
    chip, operand = load_target(target), dtype(kind)
    return Setting(Sides.of(shape, 32 // operand.size_bytes), chip, operand, shape.ndim, chip.groups)


@pytest.mark.parametrize(("channels", "n"), [(192, 64), (384, 128), (256, 128)])
def test_legacy_dx(channels: int, n: int) -> None:
    """All rows of an image, N the largest power of two, K steps of four fractals, chunks of 32 channels."""
    tiling = plan_image(setting(ConvShape(32, channels, (13, 13), 384, (3, 3), padding=1)), "scatter", {})
    assert (tiling.rule, tiling.walk, tiling.m, tiling.n, tiling.k) == ("legacy", "rows", 208, n, 32)
    assert (tiling.channels, tiling.taps, tiling.l1_a, tiling.l1_b) == (32, 9, 2, 2)


@pytest.mark.parametrize(
    ("shape", "m", "n", "weights"),
    [
        (LAYER, 176, 128, "l0b"),
        (ConvShape(32, 384, (13, 13), 256, (3, 3), padding=1), 176, 128, "l0b"),
        (ConvShape(32, 64, (27, 27), 192, (5, 5), padding=2), 160, 192, "step"),
    ],
)
def test_legacy_forward(shape: ConvShape, m: int, n: int, weights: str) -> None:
    """Consecutive positions: 11 x 8 fractals of a 13 x 13 image, 10 x 12 of a 27 x 27 one."""
    tiling = plan_image(setting(shape), "gather", {})
    assert (tiling.walk, tiling.m, tiling.n, tiling.k, tiling.weights) == ("flat", m, n, 32, weights)


def test_legacy_dw() -> None:
    """M of 8 fractals, 8 parts of images times 3 of N, steps of 16 positions, one buffer where two exceed L1."""
    tiling = plan_weights(setting(LAYER), {})
    assert (tiling.m, tiling.k, tiling.batch, tiling.n_parts, tiling.m_parts) == (128, 16, 8, 3, 1)
    first = plan_weights(
        setting(ConvShape(32, 3, (224, 224), 64, (11, 11), stride=4, padding=((2, 1), (2, 1)))), {}
    )
    assert (first.m, first.rows, first.l1_a, first.l1_b) == (64, 5, 2, 1)


def test_which_rules() -> None:
    """2-D and 3-D on A2, the first generation, and Ascend 950."""
    cube = ConvShape(1, 32, (8, 8, 8), 32, (3, 3, 3), padding=1)
    found = [
        setting(shape, target, "fp16").rule
        for shape, target in (
            (LAYER, "ascend910b1"),
            (cube, "ascend910b1"),
            (LAYER, "ascend910a"),
            (cube, "ascend910_9391"),
            (LAYER, "ascend950pr"),
        )
    ]
    assert found == ["legacy", "v2", "legacy", "v2", "v2_950"]


@pytest.mark.parametrize("target", ["ascend910a", "ascend310p3", "ascend310b1", "ascend910b1", "ascend950pr"])
@pytest.mark.parametrize(
    "shape",
    [
        ConvShape(1, 3, (1, 100_000), 3, (1, 5)),
        ConvShape(1, 64, (600, 600), 64, (31, 31)),
        ConvShape(1, 2048, (7, 7), 2048, (1, 1)),
        ConvShape(1, 4, (3000,), 4, (3,), stride=1000),
        ConvShape(1, 4, (3000,), 4, (1000,), dilation=2),
    ],
)
def test_something_always_fits(target: str, shape: ConvShape) -> None:
    """Whatever the geometry, rules end in tiles that the memories hold."""
    here = setting(shape, target, "fp16")
    for way in ("gather", "scatter"):
        assert plan_image(here, way, {}).m >= 1
    assert plan_weights(here, {}).m >= 16


def test_given_fields_stay() -> None:
    """Fields that are given are kept, and refused where no fractal divides them or nothing fits."""
    assert plan_image(setting(LAYER), "scatter", {"n": 32}).n == 32
    with pytest.raises(TilingError, match="multiple of 16"):
        plan_image(setting(LAYER), "scatter", {"n": 40})
    with pytest.raises(TilingError, match="no tiling fits"):
        plan_image(setting(LAYER), "scatter", {"m": 208, "n": 384})
    with pytest.raises(TilingError, match="unknown field"):
        plan_weights(setting(LAYER), {"colour": 1})


@pytest.mark.parametrize(
    ("sizes", "kind", "tile"),
    [
        ((4096, 1024, 3072), "bf16", (128, 256, 64)),
        ((32, 1000, 4096), "fp32", (32, 48, 8)),
        ((32, 4096, 4096), "fp32", (32, 256, 8)),
        ((4096, 4096, 32), "fp32", (128, 128, 8)),
    ],
)
def test_products(sizes: tuple[int, int, int], kind: str, tile: tuple[int, int, int]) -> None:
    """The base tile; a single fractal of K in true fp32; N divided where too few cores would have a tile."""
    chip = load_target("ascend910b2")
    found = plan_product(Matrices(*sizes, False, False, dtype(kind), kind, chip, chip.groups), {})
    assert (found.m, found.n, found.k) == tile
