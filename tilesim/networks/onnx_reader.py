"""The convolutions of an ONNX model, with the tensors that they read and write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onnx import AttributeProto, GraphProto, NodeProto

from tilesim.networks.layers import Layer, Network, NetworkError
from tilesim.networks.onnx_conv import conv_shape
from tilesim.networks.onnx_graph import Graph, open_model, qualified

CONVOLUTIONS = ("Conv", "ConvTranspose")
SIMILAR = ("ConvInteger", "QLinearConv", "DeformConv", "FusedConv", "QConv", "NhwcConv")
"""Convolutions by name that are not simulated: the figures lack them, which is said."""

IN_PLACE = frozenset(
    {
        *("BatchNormalization", "Cast", "Clip", "Dropout", "Elu", "HardSigmoid", "HardSwish", "Identity"),
        *(
            "InstanceNormalization",
            "LeakyRelu",
            "Mish",
            "PRelu",
            "Relu",
            "Selu",
            "Sigmoid",
            "Softplus",
            "Tanh",
        ),
    }
)
"""Operators of one tensor whose output has the shape of the input: taken to be computed where the input lies."""

ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div"})
"""The same where only one of the operands depends on the model's input."""


@dataclass
class _Walk:
    """What is known of tensors while the nodes are passed in their order.

    Attributes:
        live: those that depend on the model's input.
        behind: those that depend on a convolution.
        place: where a tensor lies: the name of the one that was written there first.
    """

    live: set[str]
    behind: set[str] = field(default_factory=set)
    place: dict[str, str] = field(default_factory=dict)

    def lies(self, name: str) -> str:
        """The tensor in whose place this one lies."""
        return self.place.get(name, name)

    def passed(self, node: NodeProto) -> None:
        """Take what a node makes."""
        live = [name for name in node.input if name in self.live]
        if not live:
            return
        self.live.update(node.output)
        if node.op_type in CONVOLUTIONS or self.behind.intersection(live):
            self.behind.update(node.output)
        if node.op_type in IN_PLACE or (node.op_type in ARITHMETIC and len(live) == 1):
            self.place[node.output[0]] = self.lies(live[0])


def read_onnx(path: Path, batch: int | None, dims: Mapping[str, int]) -> Network:
    """The convolutions of a model.

    `batch` stands for the first dimension of the inputs where the model leaves it open; where the model says one, the
    convolutions' batches are scaled to the one asked for. Values of weights are not read.

    Raises:
        NetworkError: it is no model, or a convolution's shape is not known or cannot be.
    """
    graph = open_model(path, batch, dims)
    walk = _Walk(set(graph.inputs))
    layers: list[Layer] = []
    others: Counter[str] = Counter()
    for node in graph.nodes:
        _refuse_hidden(node, graph.where)
        if node.op_type in CONVOLUTIONS and node.domain in ("", "ai.onnx"):
            layers.append(_layer(graph, node, walk))
        else:
            others[qualified(node)] += 1
        walk.passed(node)
    if not layers:
        listed = ", ".join(f"{count} {name}" for name, count in others.most_common(5))
        raise NetworkError("a model without a convolution", where=graph.where, got=listed)
    return Network(path.name, tuple(layers), dict(sorted(others.items())), tuple(_notes(others)))


def _layer(graph: Graph, node: NodeProto, walk: _Walk) -> Layer:
    shape = graph.scaled(conv_shape(graph, node), _name(node))
    first = not walk.behind.intersection(node.input[:1])
    return Layer(_name(node), shape, walk.lies(node.input[0]), node.output[0], first)


def _name(node: NodeProto) -> str:
    return node.name or node.output[0]


def _notes(others: Mapping[str, int]) -> Iterator[str]:
    for name, count in others.items():
        if name.rpartition(".")[2] in SIMILAR:
            yield f"{count} {name} left out: its gradients are not simulated"


def _refuse_hidden(node: NodeProto, where: str) -> None:
    """Refuse a convolution in a branch or a loop: how often it runs is not known before.

    Raises:
        NetworkError: names both.
    """
    for graph in _subgraphs(node):
        for inner in graph.node:
            if inner.op_type in CONVOLUTIONS:
                what = f"a convolution ({_name(inner)}) inside {node.op_type} {_name(node)}"
                raise NetworkError(what, where=where, limit="convolutions that run once")
            _refuse_hidden(inner, where)


def _subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs
