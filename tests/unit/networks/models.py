"""Small ONNX models for tests, and the places of those that the package onnx ships."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.test
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

LIGHT = Path(onnx.backend.test.__file__).parent / "data" / "light"
"""Networks as they are published, with weights that nodes of the graph make up."""

Sizes = Sequence[int | str | None]


def conv(
    reads: str, writes: str, weights: str = "w", *, op: str = "Conv", name: str = "", **attributes: Any
) -> NodeProto:
    """A convolution that is called as what it writes, unless it has a name."""
    return helper.make_node(op, [reads, weights], [writes], name=name or f"conv_{writes}", **attributes)


def model(
    nodes: Sequence[NodeProto],
    inputs: dict[str, Sizes],
    weights: dict[str, Sequence[int]],
    outputs: Sequence[str] = ("y",),
    domains: Sequence[str] = (),
) -> ModelProto:
    """A model of these nodes; weights are small integers, always the same."""
    graph: GraphProto = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name, sizes in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(integers(tuple(s)), n) for n, s in weights.items()],
    )
    opsets = [helper.make_opsetid(domain, 17 if not domain else 1) for domain in ("", *domains)]
    return helper.make_model(graph, opset_imports=opsets)


def integers(sizes: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Small integers, always the same for the same sizes."""
    return np.random.default_rng(sum(sizes)).integers(-3, 4, sizes).astype(np.float32)


def saved(made: ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    """A model in a file."""
    onnx.save(made, str(folder / name))
    return folder / name
