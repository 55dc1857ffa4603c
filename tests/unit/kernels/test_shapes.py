"""ConvShape: the sizes it derives, and the arguments it refuses."""

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given

from kernels.errors import OperandError, ShapeError, TilingError
from kernels.shape.shapes import ConvShape
from tests.shape_strategies import conv_shapes

RESNET = ConvShape(n=50, cin=3, size=(224, 224), cout=64, kernel=7, stride=2, padding=3)

LEGAL = {
    "n": 2,
    "cin": 6,
    "size": (9, 8),
    "cout": 4,
    "kernel": (3, 3),
    "stride": 2,
    "padding": 1,
    "dilation": 1,
    "groups": 2,
    "transposed": True,
    "output_padding": 1,
}
ABSURD: tuple[object, ...] = (
    2**62,
    10**5000,
    -1,
    1.5,
    float("nan"),
    True,
    "3",
    None,
    b"",
    [],
    [1] * 4,
    {1: 2},
    np.zeros((2, 2)),
)


def conv(**changes: object) -> ConvShape:
    """Return the legal geometry with some arguments changed, whatever their types."""
    return ConvShape(**{**LEGAL, **changes})  # type: ignore[arg-type]


def test_a_layer_of_a_network() -> None:
    """The first layer of ResNet-50 has its published output, and its last pads are the effective ones."""
    assert RESNET.out == (112, 112)
    assert RESNET.pads == ((3, 2), (3, 2))
    assert RESNET.padding == ((3, 3), (3, 3))
    assert (RESNET.dy_shape, RESNET.w_shape, RESNET.x_shape) == (
        (50, 64, 112, 112),
        (64, 3, 7, 7),
        (50, 3, 224, 224),
    )
    assert (RESNET.ndim, RESNET.taps) == (2, 49)
    assert RESNET.useful_macs == 50 * 64 * 112 * 112 * 3 * 49


def test_a_transposed_layer() -> None:
    """A transposed layer adds its output padding, and counts the work of its adjoint."""
    shape = ConvShape(2, 4, (4, 4), 6, (4, 5), (3, 2), (1, 2), 4, 2, True, (2, 3))
    assert shape.out == (22, 22)
    assert shape.w_shape == (4, 3, 4, 5)
    assert shape.pads == ((1, -1), (2, -1))
    assert shape.useful_macs == 2 * 4 * 16 * 3 * 20


@given(conv_shapes())
def test_outputs_are_the_places_where_a_window_fits(shape: ConvShape) -> None:
    """Output sizes equal a count of window starts, or of the places a transposed layer writes."""
    for axis, out in enumerate(shape.out):
        size, stride, (low, high) = shape.size[axis], shape.stride[axis], shape.padding[axis]
        last_tap = shape.dilation[axis] * (shape.kernel[axis] - 1)
        if shape.transposed:
            written = max(i * stride + last_tap for i in range(size)) + 1
            assert out == written - low - high + shape.output_padding[axis]
        else:
            line = range(-low, size + high)
            assert out == sum(start in line and start + last_tap in line for start in line[::stride])


@given(conv_shapes())
def test_effective_pads_are_exact(shape: ConvShape) -> None:
    """With the effective pads given, the output is the same and the windows end exactly at the high pad."""
    exact = dataclasses.replace(shape, padding=shape.pads, output_padding=(0,) * shape.ndim)
    assert exact.out == shape.out
    assert exact.pads == shape.pads


@given(conv_shapes())
def test_arguments_survive_a_dictionary(shape: ConvShape) -> None:
    """A geometry is rebuilt from its plain dictionary, and from its pickle."""
    assert ConvShape(**shape.to_dict()) == shape  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(shape)) == shape  # noqa: S301


@given(conv_shapes())
def test_three_axes_hold_the_same_geometry(shape: ConvShape) -> None:
    """Added axes have one position, one tap and no pad."""
    lead = 3 - shape.ndim
    wide = shape.as_3d()
    assert wide.out == (1,) * lead + shape.out
    assert wide.pads == ((0, 0),) * lead + shape.pads
    assert wide.useful_macs == shape.useful_macs


@given(conv_shapes())
def test_a_geometry_follows_from_its_output(shape: ConvShape) -> None:
    """Given the low pads and the output's size, the high pads are found again."""
    found = ConvShape.from_out(
        *(shape.n, shape.cin, shape.size, shape.cout, shape.kernel, shape.out),
        low_pads=[low for low, _ in shape.padding],
        stride=shape.stride,
        dilation=shape.dilation,
        groups=shape.groups,
        transposed=shape.transposed,
    )
    assert found.out == shape.out
    assert 0 in shape.out or found.pads == shape.pads


def test_from_out_prefers_output_padding() -> None:
    """A transposed output one longer than the shortest is told by output_padding, not by an uneven pad."""
    shape = ConvShape.from_out(1, 1, (7, 7), 3, (3, 3), (14, 14), low_pads=1, stride=2, transposed=True)
    assert (shape.padding, shape.output_padding) == (((1, 1), (1, 1)), (1, 1))


def test_negative_high_pads_are_unread_input() -> None:
    """A negative high pad is legal and shortens what is read."""
    shape = ConvShape(1, 1, (10,), 1, (3,), padding=((1, -4),))
    assert shape.out == (5,)
    assert shape.pads == ((1, -4),)


def test_an_empty_plain_output_is_legal() -> None:
    """A kernel that does not fit gives an empty output, not a negative one and not an error."""
    shape = ConvShape(1, 1, (34, 1), 1, (3, 3), stride=2)
    assert shape.out == (16, 0)
    assert ConvShape(1, 1, (2,), 1, (9,)).out == (0,)


def test_empty_batches_and_channels_are_legal() -> None:
    """Zero images or channels make empty tensors and no work."""
    shape = ConvShape(0, 0, (5,), 3, (3,), groups=3)
    assert (shape.x_shape, shape.w_shape, shape.useful_macs) == ((0, 0, 5), (3, 0, 3), 0)


def test_numbers_of_numpy_are_whole_numbers() -> None:
    """Sizes may come from arrays, and become plain ints."""
    shape = ConvShape(np.int64(1), 2, np.array([4, 5]), 2, (np.int32(3), 3))  # type: ignore[arg-type]
    assert shape == ConvShape(1, 2, (4, 5), 2, (3, 3))
    assert {type(value) for value in (shape.n, *shape.size, *shape.kernel)} == {int}


@pytest.mark.parametrize("argument", LEGAL)
@pytest.mark.parametrize("value", ABSURD, ids=lambda value: str(type(value)))
def test_absurd_values_are_refused(argument: str, value: object) -> None:
    """Any value that is no whole number in range raises ShapeError, which names the argument."""
    if argument == "transposed" and value is True:
        value = 1
    with pytest.raises(ShapeError) as caught:
        conv(**{argument: value})
    assert caught.value.argument == argument


REFUSED: tuple[tuple[dict[str, object], str, str], ...] = (
    ({"groups": 0, "kernel": 0, "stride": -1, "n": -1}, "groups", "must be positive"),
    ({"kernel": (0, 3), "stride": 0}, "kernel", "must be positive"),
    ({"stride": (2**31, 1)}, "stride", "limit 2147483647"),
    ({"stride": 0, "dilation": 0}, "stride", "must be positive"),
    ({"dilation": 0, "n": -1}, "dilation", "must be positive"),
    ({"size": (9, 0)}, "size", "must be positive"),
    ({"cin": 20, "groups": 3}, "groups", "remainder 2"),
    ({"cout": 5}, "groups", "divide cout"),
    ({"output_padding": 2}, "output_padding", "limit 1"),
    ({"output_padding": 1, "transposed": False}, "output_padding", "needs transposed"),
    ({"padding": ((1, 1, 1), (0, 0))}, "padding", "(low, high)"),
    ({"padding": ((-1, 1), (0, 0))}, "padding", "must not be negative"),
    ({"padding": (1,)}, "padding", "limit 2 values"),
    ({"size": (2, 2), "kernel": 2, "padding": 2, "output_padding": 0}, "padding", "0x0"),
    ({"padding": "same"}, "padding", "whole number"),
    ({"size": 9, "kernel": 3}, "size", "one value an axis"),
    ({"kernel": (3, 3, 3)}, "kernel", "limit 2 values"),
    ({"cin": 2**39, "cout": 2**39}, "kernel", "too many elements"),
    ({"size": (2**39, 1), "stride": 2**30}, "size", "output is too large"),
)


@pytest.mark.parametrize(("changes", "argument", "words"), REFUSED)
def test_refusals_name_the_first_argument_at_fault(
    changes: dict[str, object], argument: str, words: str
) -> None:
    """Arguments are checked in a fixed order, and the message says what is wrong with the first bad one."""
    with pytest.raises(ShapeError) as caught:
        conv(**changes)
    assert caught.value.argument == argument
    assert words in str(caught.value)


def test_errors_have_fields_for_programs() -> None:
    """The fields that the kernels' errors add are among those a program reads."""
    assert ShapeError("w", argument="a").fields()["argument"] == "a"
    assert OperandError("w", argument="a").fields()["argument"] == "a"
    assert TilingError("w", field="f").fields()["field"] == "f"
