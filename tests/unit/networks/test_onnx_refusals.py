"""ONNX files that are refused: each with one line that names the file, the node, and what is missing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper

from tests.unit.networks.models import LIGHT, conv, model, saved
from tilesim.networks.layers import NetworkError
from tilesim.networks.reading import read_network


def refused(path: Path, *words: str, batch: int | None = None) -> None:
    """See that a file is refused with these words, in one line."""
    with pytest.raises(NetworkError) as caught:
        read_network(path, batch)
    text = str(caught.value)
    assert "\n" not in text
    assert not [word for word in words if word not in text], text


@pytest.mark.parametrize("part", [0.5, 0.9])
def test_half_a_file_is_refused(tmp_path: Path, part: float) -> None:
    """Cut anywhere, it is no model."""
    whole = (LIGHT / "light_resnet50.onnx").read_bytes()
    (tmp_path / "half.onnx").write_bytes(whole[: int(len(whole) * part)])
    refused(tmp_path / "half.onnx", "half.onnx", "is the file whole?")


@pytest.mark.parametrize("content", [b"", b"layer,N,Cin\n", b"\x00" * 100, b"PK\x03\x04 something else"])
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    """Empty files, text, zeros and archives."""
    (tmp_path / "other.onnx").write_bytes(content)
    refused(tmp_path / "other.onnx", "no ONNX model", "other.onnx")


def test_names_that_are_no_text_are_refused(tmp_path: Path) -> None:
    """A byte of an operator's name that was overwritten."""
    made = model([conv("x", "y", name="convolution")], {"x": (1, 3, 8, 8)}, {"w": (4, 3, 3, 3)})
    path = saved(made, tmp_path)
    path.write_bytes(path.read_bytes().replace(b"convolution", b"convo\xffution"))
    refused(path, "a name that is not UTF-8", "convo")


def test_a_file_that_is_not_there_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    """Before onnx is asked."""
    refused(tmp_path / "none.onnx", "no such file", "none.onnx")
    refused(tmp_path, "no such file")
    (tmp_path / "net.txt").write_text("layer", encoding="utf-8")
    refused(tmp_path / "net.txt", "neither an ONNX model nor a table")


def test_without_the_package_onnx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever reads tables only does not need it."""
    (tmp_path / "net.onnx").write_bytes(b"")
    (tmp_path / "net.csv").write_text("N,Cin,W,Cout,Kw\n1,8,8,8,3\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "tilesim.networks.onnx_reader", None)
    refused(tmp_path / "net.onnx", "the package onnx is not installed", ".[onnx]")
    assert len(read_network(tmp_path / "net.csv").layers) == 1
    with pytest.raises(NetworkError, match="sizes by name"):
        read_network(tmp_path / "net.csv", dims={"height": 3})


def test_a_custom_operator_before_a_convolution_is_named(tmp_path: Path) -> None:
    """Its output has no shape that could be inferred, and so the convolution behind it has none."""
    nodes = [
        helper.make_node("Swirl", ["x"], ["s"], name="swirl_1", domain="com.example"),
        helper.make_node("Relu", ["s"], ["r"]),
        conv("r", "y"),
    ]
    made = model(nodes, {"x": (1, 3, 8, 8)}, {"w": (4, 3, 3, 3)}, domains=["com.example"])
    refused(saved(made, tmp_path), "conv_y", "com.example.Swirl swirl_1 whose output cannot be inferred")


def test_a_custom_operator_elsewhere_does_no_harm(tmp_path: Path) -> None:
    """It is counted under its own name."""
    nodes = [conv("x", "y"), helper.make_node("Swirl", ["y"], ["s"], domain="com.example")]
    made = model(nodes, {"x": (1, 3, 8, 8)}, {"w": (4, 3, 3, 3)}, ("s",), domains=["com.example"])
    assert read_network(saved(made, tmp_path)).others == {"com.example.Swirl": 1}


def test_an_input_without_a_shape_is_refused(tmp_path: Path) -> None:
    """Nothing can be inferred from it."""
    made = model([conv("x", "y")], {"x": (1, 3, 8, 8)}, {"w": (4, 3, 3, 3)})
    made.graph.input[0].type.tensor_type.ClearField("shape")
    refused(saved(made, tmp_path), "the shape of x is not known", "conv_y")


def test_weights_without_a_shape_are_refused(tmp_path: Path) -> None:
    """They come from a node whose output depends on values."""
    nodes = [
        helper.make_node("Reshape", ["v", "sizes"], ["w"], name="shaped"),
        conv("x", "y"),
    ]
    made = model(nodes, {"x": (1, 3, 8, 8), "v": (108,)}, {})
    made.graph.input.append(helper.make_tensor_value_info("sizes", TensorProto.INT64, (4,)))
    refused(saved(made, tmp_path), "of w is not known", "Reshape shaped")


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"auto_pad": "SAME"}, ("auto_pad", "SAME_UPPER")),
        ({"strides": [-1, 1]}, ("stride must be positive",)),
        ({"strides": [1, 1, 1]}, ("strides of 3 values",)),
        ({"pads": [1, 1]}, ("pads of 2 values",)),
        ({"pads": [-1, 0, 0, 0]}, ("padding must not be negative",)),
        ({"dilations": [0, 1]}, ("dilation must be positive",)),
        ({"group": 2}, ("groups must divide cin",)),
        ({"kernel_shape": [5, 5]}, ("kernel_shape", "5x5")),
    ],
)
def test_an_attribute_that_cannot_be_is_named(
    tmp_path: Path, attributes: dict[str, Any], words: tuple[str, ...]
) -> None:
    """With the node and the file."""
    made = model([conv("x", "y", **attributes)], {"x": (1, 3, 8, 8)}, {"w": (4, 3, 3, 3)})
    refused(saved(made, tmp_path), "model.onnx", "conv_y", *words)


def test_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """By channels, or by the number of axes."""
    made = model([conv("x", "y")], {"x": (1, 4, 8, 8)}, {"w": (4, 3, 3, 3)})
    refused(saved(made, tmp_path), "conv_y", "4x3x3x3")
    made = model([conv("x", "y")], {"x": (1, 3, 8)}, {"w": (4, 3, 3, 3)})
    refused(saved(made, tmp_path), "conv_y", "1x3x8")


def test_a_convolution_of_four_axes_is_refused(tmp_path: Path) -> None:
    """The geometry has one to three."""
    made = model([conv("x", "y")], {"x": (1, 3, 4, 4, 4, 4)}, {"w": (4, 3, 1, 1, 1, 1)})
    refused(saved(made, tmp_path), "conv_y", "1 to 3 axes")


def test_a_convolution_in_a_loop_is_refused(tmp_path: Path) -> None:
    """How often it runs is not known before."""
    inner = helper.make_graph(
        [conv("x", "z", name="inner")],
        "body",
        [],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
    )
    node = helper.make_node("If", ["flag"], ["y"], name="choice", then_branch=inner, else_branch=inner)
    made = model([node], {"x": (1, 3, 8, 8)}, {"w": (4, 3, 3, 3)})
    made.graph.input.append(helper.make_tensor_value_info("flag", TensorProto.BOOL, ()))
    refused(saved(made, tmp_path), "a convolution (inner) inside If choice")


def test_a_model_without_a_convolution_is_refused(tmp_path: Path) -> None:
    """There is nothing to time."""
    made = model([helper.make_node("Relu", ["x"], ["y"])], {"x": (1, 3, 8, 8)}, {})
    refused(saved(made, tmp_path), "a model without a convolution", "1 Relu")


def test_a_batch_that_does_not_divide_is_refused(tmp_path: Path) -> None:
    """A convolution's own batch is 3 where the model's is 2: it cannot be scaled."""
    nodes = [conv("z", "y")]
    made = model(nodes, {"x": (2, 3, 8, 8), "z": (3, 3, 8, 8)}, {"w": (4, 3, 3, 3)})
    refused(saved(made, tmp_path), "no multiple of the model's", batch=4)
