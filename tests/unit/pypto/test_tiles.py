"""Tile sizes: every formula of the settings, and what happens without them."""

from __future__ import annotations

import pytest

from kernels import pypto
from kernels.errors import TilingError
from kernels.pypto import pypto_impl
from tests.unit.pypto.call import Call, tiles

Sizes = tuple[int, int, int]
WIDE = {
    "grad_output": pypto.tensor((1, 512, 16, 32), pypto.DT_FP16),
    "weight": pypto.tensor((512, 128, 1, 1), pypto.DT_FP16),
    "input_size": (1, 128, 16, 32),
    "paddings": [0, 0, 0, 0],
}
"""A call whose tiles can be as large as the memories."""


def refusal(l1: Sizes, l0: Sizes, **changed: object) -> TilingError:
    """What a call with these tiles says."""
    tiles(l1, l0)
    with pytest.raises(TilingError) as caught:
        Call().change(**changed).run()
    return caught.value


@pytest.mark.parametrize(
    ("l1", "l0", "field"),
    [
        ((33, 144, 16), (16, 16, 16), "tileML1"),
        ((65, 144, 16), (16, 16, 16), "tileML1"),
        ((16, 144, 8), (16, 16, 16), "tileNL1"),
        ((16, 144, 24), (16, 16, 16), "tileNL1"),
        ((16, 16, 16), (16, 16, 16), "tileKL1"),
        ((16, 160, 16), (16, 16, 16), "tileKL1"),
        ((16, 144, 16), (8, 16, 16), "tileML0"),
        ((16, 144, 16), (32, 16, 16), "tileML0"),
        ((17, 144, 16), (48, 16, 16), "tileML0"),
        ((16, 144, 16), (16, 16, 24), "tileNL0"),
        ((16, 144, 16), (16, 16, 32), "tileNL0"),
        ((16, 144, 16), (16, 24, 16), "tileKL0"),
        ((16, 144, 16), (16, 160, 16), "tileKL0"),
    ],
)
def test_multiples_and_levels(l1: Sizes, l0: Sizes, field: str) -> None:
    """What must divide what, and what must fit into the level outside; the refusal names the field."""
    error = refusal(l1, l0)
    assert error.field == field
    assert error.limit


@pytest.mark.parametrize(
    ("l1", "fits", "breaks", "field", "memory"),
    [
        ((512, 128, 64), (512, 64, 16), (512, 80, 16), "tileML0", "l0a"),
        ((64, 512, 128), (16, 256, 128), (16, 272, 128), "tileNL0", "l0b"),
        ((512, 16, 128), (256, 16, 128), (272, 16, 128), "tileML0", "l0c"),
    ],
)
def test_capacities_of_l0(l1: Sizes, fits: Sizes, breaks: Sizes, field: str, memory: str) -> None:
    """64 KiB of L0A and of L0B, 128 KiB of L0C, without a second copy: exactly full is taken."""
    tiles(l1, fits)
    assert Call().change(**WIDE).run().run is not None
    error = refusal(l1, breaks, **WIDE)
    assert error.field == field
    assert memory in error.limit


def test_capacity_of_l1() -> None:
    """K x N of weights and the gradient that M reads, 512 KiB together: exactly full is taken."""
    full = 64 * 512 + 448 * 512  # weights of N = 448, 64 positions of a 1 x 1 kernel
    assert full * 2 == 524288
    tiles((64, 512, 448), (64, 128, 64))
    assert Call().change(**WIDE).run().run is not None
    error = refusal((64, 512, 464), (64, 128, 64), **WIDE)
    assert error.field == "tileML1"
    assert error.got == str(full * 2 + 16 * 512 * 2)


@pytest.mark.parametrize("m", [1, 7, 16, 31, 32, 64, 160, 320])
def test_m_of_l1_that_fit(m: int) -> None:
    """At most a row, or whole rows, also more than there are."""
    tiles((m, 144, 16), (16, 16, 16))
    assert Call().run().run is not None


@pytest.mark.parametrize("missing", ["both", "convbp", "vector"])
def test_settings_that_are_missing(missing: str) -> None:
    """Both settings are needed before a call."""
    if missing == "vector":
        pypto.set_convbp_input_tile_shapes(
            pypto_impl.ConvBpTileL1Info(16, 144, 16), pypto_impl.ConvBpTileL0Info(16, 16, 16)
        )
    if missing == "convbp":
        pypto.set_vec_tile_shapes(16, 16, 16, 16)
    with pytest.raises(TilingError, match="not set") as caught:
        Call().run()
    wanted = "set_vec_tile_shapes" if missing == "vector" else "set_convbp_input_tile_shapes"
    assert caught.value.field == wanted


@pytest.mark.parametrize("sizes", [(), (1, 2, 3, 4, 5), (0,), (16, 16, 16, -1), (16, 1.5), ("16",)])
def test_vector_tiles_that_cannot_be(sizes: tuple[object, ...]) -> None:
    """One to four sizes above 0."""
    with pytest.raises(TilingError) as caught:
        pypto.set_vec_tile_shapes(*sizes)  # type: ignore[arg-type]  # what is wrong here is the point
    assert caught.value.field == "set_vec_tile_shapes"


def test_a_vector_tile_for_each_axis() -> None:
    """The operands have four axes, so that a call needs four sizes."""
    tiles(vector=(16, 16))
    with pytest.raises(TilingError, match="n, c, h, w"):
        Call().run()


@pytest.mark.parametrize("value", [0, -16, 16.0, None, True])
@pytest.mark.parametrize("field", ["tileML1", "tileKL1", "tileNL1"])
def test_tile_sizes_are_whole_numbers(field: str, value: object) -> None:
    """A size of a tile is a whole number above 0."""
    sizes: dict[str, object] = {"tileML1": 16, "tileKL1": 144, "tileNL1": 16, field: value}
    with pytest.raises(TilingError) as caught:
        pypto_impl.ConvBpTileL1Info(**sizes)  # type: ignore[arg-type]  # what is wrong here is the point
    assert caught.value.field == field


def test_the_levels_are_not_exchanged() -> None:
    """L1 sizes first, then L0 sizes."""
    l1, l0 = pypto_impl.ConvBpTileL1Info(16, 144, 16), pypto_impl.ConvBpTileL0Info(16, 16, 16)
    with pytest.raises(TilingError) as caught:
        pypto.set_convbp_input_tile_shapes(l0, l1)  # type: ignore[arg-type]  # what is wrong here is the point
    assert caught.value.field == "tile_l1"
