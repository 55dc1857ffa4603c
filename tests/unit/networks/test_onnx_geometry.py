"""A node's geometry is that of ONNX: our reference computes what ONNX's own evaluator does, to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from kernels.reference.references import conv_forward_reference
from kernels.shape.shapes import ConvShape
from tests.unit.networks.models import conv, integers, model, saved
from tilesim.networks.reading import read_network

NODES: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ("Conv", (2, 2, 7, 9), (4, 2, 3, 2), {}),
    ("Conv", (1, 2, 7, 9), (4, 2, 3, 2), {"auto_pad": "NOTSET", "pads": [1, 0, 2, 1], "strides": [2, 1]}),
    ("Conv", (1, 2, 7, 9), (4, 2, 3, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ("Conv", (1, 2, 7, 9), (4, 2, 3, 2), {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    ("Conv", (1, 2, 7, 9), (4, 2, 1, 1), {"auto_pad": "SAME_UPPER", "strides": [3, 3]}),
    ("Conv", (1, 2, 7, 9), (4, 2, 3, 2), {"auto_pad": "VALID", "strides": [2, 2]}),
    ("Conv", (1, 4, 7, 9), (4, 2, 3, 2), {"group": 2, "pads": [0, 1, 2, 3], "dilations": [2, 1]}),
    ("Conv", (1, 6, 8, 8), (6, 1, 3, 3), {"group": 6, "kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ("Conv", (1, 2, 5), (4, 2, 3), {"pads": [1, 0]}),
    ("Conv", (1, 2, 5, 6, 7), (4, 2, 3, 1, 2), {"pads": [1, 0, 0, 0, 0, 1]}),
    ("ConvTranspose", (1, 2, 5, 5), (2, 4, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ("ConvTranspose", (1, 2, 5, 4), (2, 4, 3, 3), {"strides": [2, 2], "output_padding": [1, 0]}),
    ("ConvTranspose", (1, 2, 5, 5), (2, 4, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ("ConvTranspose", (1, 2, 5, 5), (2, 4, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ("ConvTranspose", (1, 2, 5), (2, 4, 3), {"strides": [2], "pads": [1, 0]}),
]


def shape_of(
    folder: Path, op: str, x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any]
) -> ConvShape:
    """The geometry that is read of a model with one node."""
    made = model([conv("x", "y", op=op, **attributes)], {"x": x}, {"w": w})
    return read_network(saved(made, folder)).layers[0].shape


@pytest.mark.parametrize(("op", "x", "w", "attributes"), NODES)
def test_a_node_computes_what_onnx_says(
    tmp_path: Path, op: str, x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    """Pads, strides, dilations, groups and the output's size give the values of ONNX's evaluator."""
    made = model([conv("x", "y", op=op, **attributes)], {"x": x}, {"w": w})
    (expected,) = ReferenceEvaluator(made).run(None, {"x": integers(x)})
    shape = shape_of(tmp_path, op, x, w, attributes)
    assert np.array_equal(conv_forward_reference(shape, integers(x), integers(w)), expected)


@pytest.mark.parametrize(
    ("attributes", "low_high"),
    [
        ({"output_shape": [10, 10]}, ((1, 0), (1, 0))),
        ({"output_shape": [10, 11]}, ((1, 0), (0, 0))),
        ({"output_shape": [10, 10], "auto_pad": "SAME_UPPER"}, ((0, 1), (0, 1))),
        ({"output_shape": [12, 11], "output_padding": [1, 0]}, ((0, 0), (0, 0))),
    ],
)
def test_output_shape_of_a_transposed_node_gives_its_pads(
    tmp_path: Path, attributes: dict[str, Any], low_high: tuple[tuple[int, int], ...]
) -> None:
    """Their total is stride * (size - 1) + output_padding + extent - output_shape; the odd one by auto_pad."""
    shape = shape_of(tmp_path, "ConvTranspose", (1, 2, 5, 5), (2, 4, 3, 3), {"strides": [2, 2], **attributes})
    assert shape.out == tuple(attributes["output_shape"])
    assert shape.padding == low_high


def test_a_transposed_node_has_groups_and_dilations(tmp_path: Path) -> None:
    """Weights are [Cin, Cout / groups, ...]."""
    attributes = {"group": 2, "dilations": [2, 1], "pads": [0, 1, 1, 0]}
    shape = shape_of(tmp_path, "ConvTranspose", (1, 4, 5, 5), (4, 3, 3, 2), attributes)
    assert (shape.cin, shape.cout, shape.groups, shape.transposed) == (4, 6, 2, True)
    assert shape.out == (4 + 5 - 1, 4 + 2 - 1)
