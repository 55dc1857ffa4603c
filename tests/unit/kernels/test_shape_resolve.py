"""ConvShape.resolve: a geometry out of the shapes of arrays."""

from typing import Any

import pytest
from hypothesis import given

from kernels.errors import ShapeError
from kernels.shape.shapes import ConvShape
from tests.shape_strategies import conv_shapes


def options(shape: ConvShape) -> dict[str, Any]:
    """Return the arguments that arrays do not tell."""
    names = ("stride", "padding", "dilation", "groups", "transposed", "output_padding")
    return {name: getattr(shape, name) for name in names}


@given(conv_shapes())
def test_all_arrays_tell_the_geometry(shape: ConvShape) -> None:
    """The shapes of dy, w and x give the geometry back."""
    assert ConvShape.resolve(shape.dy_shape, shape.w_shape, shape.x_shape, **options(shape)) == shape


@given(conv_shapes())
def test_sizes_stand_in_for_absent_arrays(shape: ConvShape) -> None:
    """input_size stands in for x, and weight_size for w."""
    without_x = ConvShape.resolve(shape.dy_shape, shape.w_shape, input_size=shape.size, **options(shape))
    without_w = ConvShape.resolve(
        shape.dy_shape, None, shape.x_shape, weight_size=shape.kernel, **options(shape)
    )
    assert (without_x, without_w) == (shape, shape)


@given(conv_shapes())
def test_input_size_is_derived_or_asked_for(shape: ConvShape) -> None:
    """Without x, stride 1 and transposed layers have one input size; others must be told which one it is."""
    unique = shape.transposed or (set(shape.stride) == {1} and 0 not in shape.out)
    if unique:
        assert ConvShape.resolve(shape.dy_shape, shape.w_shape, **options(shape)) == shape
    else:
        with pytest.raises(ShapeError, match="input") as caught:
            ConvShape.resolve(shape.dy_shape, shape.w_shape, **options(shape))
        assert caught.value.argument == "input_size"


def test_the_refusal_lists_the_input_sizes_that_fit() -> None:
    """A 3x3 kernel with stride 2 and pad 1 gives 16 outputs from 31 or 32 inputs."""
    with pytest.raises(ShapeError, match=r"limit \(31, 31\) to \(32, 32\)"):
        ConvShape.resolve((32, 20, 16, 16), (20, 3, 3, 3), stride=2, padding=1)


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"groups": 0, "stride": 65534, "dilation": 2**29, "output_padding": 1879048192}, "groups"),
    ({"dy": (2, 4, 9, 8)}, "dy"),
    ({"dy": (1, 4, 8, 8)}, "dy"),
    ({"dy": (2, 4)}, "dy"),
    ({"dy": "dy"}, "dy"),
    ({"dy": (2, 4, -8, 8)}, "dy"),
    ({"dy": (2, 5, 8, 8)}, "dy"),
    ({"w": (4, 5, 3, 3)}, "w"),
    ({"w": (4, 6, 3)}, "w"),
    ({"w": None}, "weight_size"),
    ({"w": None, "x": None, "weight_size": 3}, "w"),
    ({"w": (4, 6, 0, 3)}, "kernel"),
    ({"x": (2, 6, 8, 0)}, "size"),
    ({"x": (2, 6, 8, 9)}, "dy"),
    ({"input_size": (8, 9)}, "input_size"),
    ({"weight_size": (3, 2)}, "weight_size"),
    ({"x": None, "padding": 30}, "padding"),
    ({"stride": 0}, "stride"),
    ({"transposed": 1}, "transposed"),
    ({"groups": 4}, "groups"),
)


@pytest.mark.parametrize(("changes", "argument"), REFUSED)
def test_arrays_that_do_not_fit_are_refused(changes: dict[str, Any], argument: str) -> None:
    """The error names the array or argument that does not fit the others."""
    legal = {"dy": (2, 4, 8, 8), "w": (4, 6, 3, 3), "x": (2, 6, 8, 8), "padding": 1}
    with pytest.raises(ShapeError) as caught:
        ConvShape.resolve(**{**legal, **changes})
    assert caught.value.argument == argument


@pytest.mark.parametrize("out", [10, 12, 13])
def test_a_transposed_output_outside_the_range_is_refused(out: int) -> None:
    """Five inputs with kernel 3 and stride 2 give 11 outputs, or 12 with output padding, and no other."""
    arrays = ((1, 2, out), (4, 2, 3), (1, 4, 5))
    with pytest.raises(ShapeError, match="output_padding") as caught:
        ConvShape.resolve(*arrays, stride=2, transposed=True)
    assert caught.value.argument == "dy"


def test_output_padding_admits_the_longer_output() -> None:
    """The longer of the two outputs is legal once output_padding says so, with or without x."""
    shape = ConvShape.resolve((1, 2, 12), (4, 2, 3), stride=2, transposed=True, output_padding=1)
    assert shape.size == (5,)


def test_a_transposed_output_between_two_inputs_is_refused() -> None:
    """Without x, an output that no input size reaches is refused with the remedies."""
    with pytest.raises(ShapeError, match=r"no input size .* output_padding, or give x") as caught:
        ConvShape.resolve((1, 2, 12), (4, 2, 3), stride=2, transposed=True)
    assert caught.value.argument == "dy"
