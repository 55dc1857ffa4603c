"""Geometries written as text."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.errors import ShapeError
from kernels.shape.benchdnn import parse_benchdnn
from kernels.shape.shapes import ConvShape
from kernels.shape.text import SHAPE_KEYS, parse_gemm, parse_shape
from tests.shape_strategies import conv_shapes

ONE = "n=1,cin=2,cout=4"


def written(shape: ConvShape) -> str:
    """Return the text of a geometry with every key spelled out."""
    axes = "dhw"[3 - shape.ndim :]
    sides = {"d": ("front", "back"), "h": ("top", "bottom"), "w": ("left", "right")}
    pairs: list[tuple[str, int]] = [("n", shape.n), ("cin", shape.cin), ("cout", shape.cout)]
    pairs += [("groups", shape.groups), ("transposed", int(shape.transposed))]
    for place, axis in enumerate(axes):
        low, high = shape.padding[place]
        pairs += [(axis, shape.size[place]), ("k" + axis, shape.kernel[place])]
        pairs += [(f"stride_{axis}", shape.stride[place]), (f"dilation_{axis}", shape.dilation[place])]
        pairs += [(f"pad_{sides[axis][0]}", low), (f"pad_{sides[axis][1]}", high)]
        pairs += [(f"output_padding_{axis}", shape.output_padding[place])]
    return ", ".join(f"{key}={value}" for key, value in pairs)


@given(conv_shapes())
def test_a_text_spells_out_any_geometry(shape: ConvShape) -> None:
    """Every geometry has a text, which is read back as the same geometry."""
    assert parse_shape(written(shape)) == shape


def test_short_keys_hold_for_all_axes() -> None:
    """stride, pad, dilation, kernel and output_padding speak of every axis."""
    text = "n=32,cin=256,h=14,w=14,cout=256,kh=3,kw=3,stride=1,pad=1,dilation=1,groups=1"
    assert parse_shape(text) == ConvShape(32, 256, (14, 14), 256, (3, 3), padding=1)
    text = ONE + ",d=4,h=5,w=6,kernel=3,stride=2,dilation=2,transposed=yes,output_padding=1,groups=2"
    assert parse_shape(text) == ConvShape(1, 2, (4, 5, 6), 4, 3, 2, 0, 2, 2, True, 1)


def test_special_keys_go_before_general_ones() -> None:
    """The order of the keys does not matter: pad_top goes before pad_h, which goes before pad."""
    text = ONE + ",pad_top=3,pad_h=2,pad=1,h=9,w=9,kw=1,kernel=3,stride_w=2,stride=1,pad_right=-1"
    expected = ConvShape(1, 2, (9, 9), 4, (3, 1), (1, 2), ((3, 2), (1, -1)))
    assert parse_shape(text) == expected


REFUSED = (
    (ONE + ",w=5,kw=3,strid=2", "strid", "did you mean stride?"),
    (ONE + ",w=5,kw=3,padding=2", "padding", "did you mean"),
    (ONE + ",w=5,kw=3,zzz=2", "zzz", "did you mean"),
    (ONE + ",w=5,kw=3,w=6", "w", "given twice"),
    (ONE + ",w=5,kw", "'kw'", "key=value"),
    (ONE + ",w=5,kw=3.0", "kw", "whole number"),
    (ONE + ",w=5,kw=", "kw", "whole number"),
    (ONE + ",w=5,kw=1_0", "kw", "whole number"),
    (ONE + ",w=" + "9" * 5000 + ",kw=3", "w", "whole number"),
    (ONE + ",w=" + "9" * 25 + ",kw=3", "size", "too large"),
    (ONE + ",w=5,kw=3,groups=0", "groups", "positive"),
    (ONE + ",w=5,kw=3,transposed=2", "transposed", "0 or 1"),
    (ONE + ",w=5", "kw", "add kw or kernel"),
    (ONE + ",h=5,kernel=3", "w", "missing"),
    (ONE + ",d=3,w=5,kernel=3", "h", "missing"),
    (ONE + ",w=5,kernel=3,stride_h=2", "stride_h", "needs h"),
    (ONE + ",w=5,kernel=3,pad_front=2", "pad_front", "needs d"),
    ("cin=2,cout=2,w=5,kw=3", "n", "missing"),
    ("n=1,cout=2,w=5,kw=3", "cin", "missing"),
    ("n=1,cin=2,w=5,kw=3", "cout", "missing"),
    ("", "shape", "spatial axes"),
    ("nonsense", "shape", "spatial axes"),
    ("ic3oc4 ih5", "shape", "not a benchdnn problem"),
)


@pytest.mark.parametrize(("text", "argument", "words"), REFUSED)
def test_faulty_texts_are_refused(text: str, argument: str, words: str) -> None:
    """The error names the key at fault and says what to write instead."""
    with pytest.raises(ShapeError, match=re.escape(words)) as caught:
        parse_shape(text)
    assert caught.value.argument == argument


def outcome(parse: Callable[[str], object], text: str) -> object:
    """Return what a parser makes of a text: a value or a ShapeError."""
    try:
        return parse(text)
    except ShapeError as error:
        return error


@given(st.text(alphabet="nciwhdko=,0123456789-_ mbgps\"'\u00e9", max_size=60))
def test_any_text_is_a_geometry_or_a_shape_error(text: str) -> None:
    """No text makes the parsers raise anything else."""
    assert isinstance(outcome(parse_shape, text), (ConvShape, ShapeError))
    assert isinstance(outcome(parse_benchdnn, text), (ConvShape, ShapeError))
    assert isinstance(outcome(parse_gemm, text), (tuple, ShapeError))


@pytest.mark.parametrize("key", SHAPE_KEYS)
def test_every_key_is_read(key: str) -> None:
    """A change of any known key changes the geometry."""
    values = dict.fromkeys(("n", "cin", "cout", "stride", "dilation"), 2)
    values |= {"d": 8, "h": 8, "w": 8, "kernel": 3, "groups": 1, "transposed": 1}
    changed = values | {key: {"groups": 2, "transposed": 0}.get(key, 1)}
    before, after = (",".join(f"{k}={v}" for k, v in pairs.items()) for pairs in (values, changed))
    assert parse_shape(before) != parse_shape(after)


BENCHDNN = (
    (
        'mb50ic3ih224oc64oh112kh7sh2ph3n"resnet_50:conv1"',
        ConvShape(50, 3, (224, 224), 64, (7, 7), 2, ((3, 2), (3, 2))),
    ),
    ("ic16iw8oc16kw3", ConvShape(2, 16, (8,), 16, (3,))),
    ("g4mb1_ic8oc8_id5kd3od5pd1", ConvShape(1, 8, (5, 5, 5), 8, 3, padding=1, groups=4)),
    ("mb2ic3ih41iw79oc4oh16ow75kh10kw5sh2", ConvShape(2, 3, (41, 79), 4, (10, 5), (2, 1), ((0, -1), (0, 0)))),
    ("mb1ic2ih8oc2oh4kh3dh1", ConvShape(1, 2, (8, 8), 2, (3, 3), dilation=2)),
    ("--deconv mb1ic16ih7oc3oh14kh3sh2ph1", ConvShape(1, 16, (7, 7), 3, (3, 3), 2, 1, 1, 1, True, 1)),
    ("--conv mb1ic16ih7oc3oh7kh3ph1", ConvShape(1, 16, (7, 7), 3, (3, 3), 1, 1)),
)


@pytest.mark.parametrize(("text", "shape"), BENCHDNN)
def test_benchdnn_problems(text: str, shape: ConvShape) -> None:
    """A benchdnn problem has its defaults, its own count of dilation, and pads that its output tells."""
    assert parse_shape(text) == shape


BENCHDNN_REFUSED = (
    ("ic3iw8kw3", "oc"),
    ("oc3iw8kw3", "ic"),
    ("ic3oc3iw8", "kw"),
    ("ic3oc3kw8", "iw"),
    ("ic3ic3oc3iw8kw3", "ic"),
    ("ic3oc3id8kd3iw8kw3", "shape"),
    ("ic3oc3iw8kw9", "ow"),
    ("ic3oc3iw8kw3sw0", "sw"),
    ("ic3oc3iw8kw3g2", "groups"),
    ("ic" + "9" * 25 + "oc3iw8kw3", "ic"),
)


@pytest.mark.parametrize(("text", "argument"), BENCHDNN_REFUSED)
def test_faulty_benchdnn_problems_are_refused(text: str, argument: str) -> None:
    """The error names the key at fault in benchdnn's own spelling."""
    with pytest.raises(ShapeError) as caught:
        parse_benchdnn(text)
    assert caught.value.argument == argument


def test_products() -> None:
    """m, n and k may come in any order, each exactly once."""
    assert parse_gemm("k=3, m=1,n=2") == (1, 2, 3)
    for text, argument in (("m=1,n=2", "k"), ("m=1,n=2,k=-3", "k"), ("m=1,n=2,q=3", "q"), ("m=1,m=2", "m")):
        with pytest.raises(ShapeError) as caught:
            parse_gemm(text)
        assert caught.value.argument == argument
