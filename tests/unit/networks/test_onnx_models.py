"""ONNX models: networks as they are published, batches, and which layer reads what."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np
import onnx
import onnx.shape_inference
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilesim
from tests.unit.networks.models import LIGHT, conv, model, saved
from tilesim.networks.reading import read_network

NETWORKS = (
    *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50"),
    *("shufflenet", "squeezenet", "vgg19", "zfnet512"),
)


def counted(path: Path) -> tuple[int, int]:
    """How many convolutions a model has, and their multiply-adds: elements of the output x weights of a channel."""
    made = onnx.shape_inference.infer_shapes(onnx.load(str(path)))
    infos = (*made.graph.value_info, *made.graph.input, *made.graph.output)
    sizes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in infos}
    sizes |= {i.name: list(i.dims) for i in made.graph.initializer}
    convolutions = [node for node in made.graph.node if node.op_type == "Conv"]
    return len(convolutions), sum(
        prod(sizes[n.output[0]]) * prod(sizes[n.input[1]][1:]) for n in convolutions
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_has_the_convolutions_of_its_graph(name: str) -> None:
    """Number and multiply-adds are those of the graph's own sizes."""
    path = LIGHT / f"light_{name}.onnx"
    network = read_network(path)
    macs = sum(layer.shape.useful_macs for layer in network.layers)
    assert (len(network.layers), macs) == counted(path)
    assert [layer.first for layer in network.layers] == [True] + [False] * (len(network.layers) - 1)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_runs_on_both_families(name: str) -> None:
    """Every convolution runs on a DSP and on an Ascend chip; the work is dx and dw of all, but for the first dx."""
    path = LIGHT / f"light_{name}.onnx"
    times = tilesim.network(path, targets=("mt7004", "ascend910b1"), batch=1, jobs=2)
    count, macs = counted(path)
    first = read_network(path).layers[0].shape.useful_macs
    assert [(len(each.which), each.refused) for each in times.targets] == [(count, 0)] * 2
    assert [each.macs for each in times.targets] == [2 * macs - first] * 2
    assert all(each.layer(place).total > 0 for each in times.targets for place in range(count))


def test_a_batch_scales_a_model_that_says_one() -> None:
    """ShuffleNet's reshapes name its batch of 1; its convolutions are scaled all the same."""
    path = LIGHT / "light_shufflenet.onnx"
    one, eight = read_network(path), read_network(path, batch=8)
    assert {layer.shape.n for layer in eight.layers} == {8}
    assert [a.shape.useful_macs * 8 for a in one.layers] == [b.shape.useful_macs for b in eight.layers]


@pytest.mark.parametrize("batch", [None, "N", -1])
def test_an_open_batch_is_the_one_asked_for(tmp_path: Path, batch: str | int | None) -> None:
    """Whether the model names it, leaves it out, or writes -1."""
    made = model([conv("x", "y")], {"x": (batch, 3, 8, 8)}, {"w": (4, 3, 3, 3)})
    path = saved(made, tmp_path)
    assert read_network(path, batch=6).layers[0].shape.x_shape == (6, 3, 8, 8)
    with pytest.raises(tilesim.NetworkError, match="--batch"):
        read_network(path)


def test_other_open_dimensions_have_names(tmp_path: Path) -> None:
    """Sizes by name reach every tensor, and the refusal says the name."""
    nodes = [conv("x", "t"), conv("t", "y", "v")]
    made = model(nodes, {"x": ("N", 3, "height", 8)}, {"w": (4, 3, 3, 3), "v": (4, 4, 1, 1)})
    path = saved(made, tmp_path)
    layers = read_network(path, 2, {"height": 12}).layers
    assert [layer.shape.x_shape for layer in layers] == [(2, 3, 12, 8), (2, 4, 10, 6)]
    with pytest.raises(tilesim.NetworkError, match="--dim height=SIZE"):
        read_network(path, 2)
    with pytest.raises(tilesim.NetworkError, match="no such dimension"):
        read_network(path, 2, {"height": 12, "hight": 3})


def test_layers_read_what_others_write(tmp_path: Path) -> None:
    """Operators of one tensor work in place; sums and joins make tensors of their own; two readers share one."""
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["scaled"]),
        conv("scaled", "a"),
        helper.make_node("Relu", ["a"], ["b"]),
        conv("b", "c", "v"),
        conv("b", "d", "v"),
        helper.make_node("Add", ["c", "d"], ["e"]),
        conv("e", "y", "v"),
    ]
    made = model(nodes, {"x": (1, 3, 8, 8)}, {"w": (4, 3, 3, 3), "v": (4, 4, 1, 1), "scale": (1,)})
    network = read_network(saved(made, tmp_path))
    rows = [(layer.reads, layer.writes, layer.first) for layer in network.layers]
    assert rows == [("x", "a", True), ("a", "c", False), ("a", "d", False), ("e", "y", False)]
    assert network.others == {"Add": 1, "Mul": 1, "Relu": 1}


def test_weights_may_be_computed_or_given_by_the_caller(tmp_path: Path) -> None:
    """Only their sizes matter: a node that dequantizes them, or an input of the model."""
    nodes = [helper.make_node("Neg", ["w"], ["m"]), conv("x", "t", "m"), conv("t", "y", "given")]
    made = model(nodes, {"x": (1, 3, 8, 8), "given": (2, 4, 1, 1)}, {"w": (4, 3, 3, 3)})
    assert [layer.shape.cout for layer in read_network(saved(made, tmp_path)).layers] == [4, 2]


def test_weights_in_other_files_are_not_read(tmp_path: Path) -> None:
    """A model whose weights were stored beside it, and lost, has its geometry still."""
    made = model([conv("x", "y")], {"x": (1, 8, 9, 9)}, {"w": (64, 8, 3, 3)})
    onnx.save(made, str(tmp_path / "m.onnx"), save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    assert read_network(tmp_path / "m.onnx").layers[0].shape.w_shape == (64, 8, 3, 3)


def test_sizes_in_other_files_are_read(tmp_path: Path) -> None:
    """Those of a reshape, without which the convolution behind it has no shape; lost, they are named."""
    nodes = [helper.make_node("Reshape", ["x", "sizes"], ["r"]), conv("r", "y")]
    made = model(nodes, {"x": (1, 3, 64)}, {"w": (4, 3, 3, 3)})
    made.graph.initializer.append(numpy_helper.from_array(np.array([1, 3, 8, 8]), "sizes"))
    path = tmp_path / "m.onnx"
    onnx.save(made, str(path), save_as_external_data=True, location="w.bin", size_threshold=0)
    assert read_network(path).layers[0].shape.out == (6, 6)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(tilesim.NetworkError, match="external data of sizes missing"):
        read_network(path)


def test_local_functions_are_opened(tmp_path: Path) -> None:
    """A convolution inside a function of the model is one of the network's."""
    body = [helper.make_node("Conv", ["a", "b"], ["c"])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "Block", ["a", "b"], ["c"], body, opsets[:1])
    made = model(
        [helper.make_node("Block", ["x", "w"], ["y"], domain="own")], {"x": (1, 3, 8, 8)}, {"w": (4, 3, 3, 3)}
    )
    whole = helper.make_model(made.graph, functions=[function], opset_imports=opsets)
    assert read_network(saved(whole, tmp_path)).layers[0].shape.out == (6, 6)


def test_convolutions_of_other_kinds_are_named(tmp_path: Path) -> None:
    """A quantized one is left out, and the notes say so."""
    integer = helper.make_node("ConvInteger", ["q", "v"], ["z"])
    made = model([conv("x", "y"), integer], {"x": (1, 3, 8, 8)}, {"w": (4, 3, 3, 3)}, ("y", "z"))
    made.graph.input.append(helper.make_tensor_value_info("q", TensorProto.UINT8, (1, 3, 8, 8)))
    made.graph.input.append(helper.make_tensor_value_info("v", TensorProto.UINT8, (4, 3, 3, 3)))
    network = read_network(saved(made, tmp_path))
    assert len(network.layers) == 1
    assert network.notes == ("1 ConvInteger left out: its gradients are not simulated",)
