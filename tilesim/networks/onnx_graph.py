"""An ONNX model opened: its nodes, and the shapes of tensors as far as ONNX's own inference finds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

import onnx.checker
import onnx.external_data_helper
import onnx.inliner
import onnx.shape_inference
from google.protobuf.message import DecodeError
from onnx import ModelProto, NodeProto, TensorShapeProto, ValueInfoProto

from kernels.shape.shapes import ConvShape
from tilesim.networks.layers import NetworkError

Dims = tuple[int | str, ...]
"""Sizes of a tensor; a text is the name of a dimension that is not known, which may be empty."""

_SHOWN = 160

_FEW = 64
"""Elements of a tensor that may hold sizes, for a reshape say: only these are read from files of external data."""

_WHOLE = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)


@dataclass(frozen=True)
class Graph:
    """A model's nodes and what is known of its tensors.

    Attributes:
        where: the file.
        nodes: in the order in which they run.
        inputs: names of the model's inputs, without weights.
        shapes: sizes of tensors, those of unknown rank left out.
        batch: (asked for, the model's own) where the two differ.
        reason: why inference found no more, if it says so.
    """

    where: str
    nodes: tuple[NodeProto, ...]
    inputs: tuple[str, ...]
    shapes: Mapping[str, Dims]
    batch: tuple[int, int] | None
    reason: str

    def sizes(self, name: str, user: str) -> tuple[int, ...]:
        """The sizes of a tensor that node `user` reads.

        Raises:
            NetworkError: one is not known; says which, and which node is to blame.
        """
        found = self.shapes.get(name)
        if found is None:
            raise NetworkError(
                f"the shape of {name or 'an absent input'} is not known",
                where=f"{self.where}, {user}",
                got=self._blame(name) or "no shape in the model",
                remedy=self.reason,
            )
        unknown = [(axis, size) for axis, size in enumerate(found) if not isinstance(size, int)]
        if unknown:
            axis, size = unknown[0]
            label = f"dimension {axis}" + (f" ({size})" if size else "")
            remedy = "say --batch N" if axis == 0 else f"say --dim {size}=SIZE" if size else self.reason
            raise NetworkError(
                f"{label} of {name} is not known",
                where=f"{self.where}, {user}",
                got=self._blame(name),
                remedy=remedy,
            )
        return tuple(size for size in found if isinstance(size, int))

    def known(self, name: str) -> tuple[int, ...] | None:
        """The sizes of a tensor, None where one is not known."""
        found = self.shapes.get(name, ("",))
        sizes = tuple(size for size in found if isinstance(size, int))
        return sizes if len(sizes) == len(found) else None

    def scaled(self, shape: ConvShape, user: str) -> ConvShape:
        """A convolution with the batch that was asked for.

        Raises:
            NetworkError: its own is no multiple of the model's.
        """
        if self.batch is None:
            return shape
        asked, own = self.batch
        if shape.n % own:
            what = "a batch that is no multiple of the model's"
            raise NetworkError(what, where=f"{self.where}, {user}", got=shape.n, limit=own)
        return replace(shape, n=shape.n // own * asked)

    def _blame(self, name: str) -> str:
        """The first node before a tensor whose inputs are known and whose output is not."""
        makers = {output: node for node in self.nodes for output in node.output}
        seen: set[str] = set()
        while name in makers and name not in seen:
            seen.add(name)
            node = makers[name]
            unknown = next((each for each in node.input if each and self.known(each) is None), "")
            if not unknown or unknown not in makers:
                return f"{qualified(node)} {node.name or node.output[0]} whose output cannot be inferred"
            name = unknown
        return ""


def qualified(node: NodeProto) -> str:
    """The operator with its domain, where that is not ONNX's own."""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


def open_model(path: Path, batch: int | None, dims: Mapping[str, int]) -> Graph:
    """Read a model, without the values of weights that lie in other files, and infer the shapes of its tensors.

    Raises:
        NetworkError: it is no model, or `dims` names a dimension that it does not have.
    """
    model = _load(path)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    graph = model.graph
    if not graph.node:
        raise NetworkError("no ONNX model, or one without a graph", where=str(path))
    _check_names(graph.node, path)
    lost = _bring_sizes(model, path)
    weights = {each.name for each in graph.initializer} | {
        each.values.name for each in graph.sparse_initializer
    }
    inputs = [each for each in graph.input if each.name not in weights]
    own = _own_batch(inputs)
    _fill(model, inputs, batch, dims, path)
    model, reason = _inferred(model)
    return Graph(
        where=path.name,
        nodes=tuple(model.graph.node),
        inputs=tuple(each.name for each in inputs),
        shapes=_shapes(model),
        batch=(batch, own) if batch and own and batch != own else None,
        reason="; ".join(filter(None, [lost, reason])),
    )


def _check_names(nodes: Iterable[NodeProto], path: Path) -> None:
    """Refuse names that are no text: protobuf hands them out as bytes.

    Raises:
        NetworkError: shows the name.
    """
    for node in nodes:
        names: tuple[object, ...] = (node.op_type, node.domain, node.name, *node.input, *node.output)
        wrong = [name for name in names if not isinstance(name, str)]
        if wrong:
            raise NetworkError("a name that is not UTF-8", where=str(path), got=repr(wrong[0]))


def _bring_sizes(model: ModelProto, path: Path) -> str:
    """Read the short tensors of whole numbers that lie in other files; says which are missing."""
    lost = []
    for tensor in model.graph.initializer:
        external = tensor.data_location == onnx.TensorProto.EXTERNAL
        if external and tensor.data_type in _WHOLE and prod(tensor.dims) <= _FEW:
            try:
                onnx.external_data_helper.load_external_data_for_tensor(tensor, str(path.parent))
                tensor.data_location = onnx.TensorProto.DEFAULT
                del tensor.external_data[:]
            except (OSError, ValueError, onnx.checker.ValidationError):
                lost.append(tensor.name)
    return f"external data of {', '.join(lost)} missing" if lost else ""


def _load(path: Path) -> ModelProto:
    try:
        return onnx.load(str(path), format="protobuf", load_external_data=False)
    except DecodeError as error:
        remedy = "is the file whole?"
        raise NetworkError("no ONNX model", where=str(path), got=_short(error), remedy=remedy) from error
    except OSError as error:
        raise NetworkError("cannot read", where=str(path), got=error.strerror or str(error)) from error


def _own_batch(inputs: Iterable[ValueInfoProto]) -> int | None:
    """The batch that a model says: the first dimension of its first input with spatial axes."""
    for each in inputs:
        dims = each.type.tensor_type.shape.dim
        if len(dims) >= 3:
            return None if _open(dims[0]) else dims[0].dim_value or None
    return None


def _fill(
    model: ModelProto,
    inputs: Iterable[ValueInfoProto],
    batch: int | None,
    dims: Mapping[str, int],
    path: Path,
) -> None:
    """Write the batch and the named dimensions into the shapes that the model gives."""
    sizes = dict(dims)
    if batch is not None:
        for each in inputs:
            for dim in each.type.tensor_type.shape.dim[:1]:
                if dim.dim_param:
                    sizes.setdefault(dim.dim_param, batch)
                elif _open(dim):
                    dim.dim_value = batch
    used = set()
    for info in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                used.add(dim.dim_param)
                dim.dim_value = sizes[dim.dim_param]
    unused = [name for name in dims if name not in used]
    if unused:
        raise NetworkError("the model has no such dimension", where=f"{path.name}, --dim", got=unused[0])


def _inferred(model: ModelProto) -> tuple[ModelProto, str]:
    """The model with the shapes that inference finds, and why it found no more, if it says so."""
    try:
        return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True), ""
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        reason = f"inference says: {_short(error)}"
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True), reason
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return model, reason


def _shapes(model: ModelProto) -> dict[str, Dims]:
    graph = model.graph
    found: dict[str, Dims] = {}
    for info in (*graph.input, *graph.value_info, *graph.output):
        if info.type.tensor_type.HasField("shape"):
            found[info.name] = _dims(info.type.tensor_type.shape)
    found.update({each.name: tuple(each.dims) for each in graph.initializer})
    found.update({each.values.name: tuple(each.dims) for each in graph.sparse_initializer})
    return found


def _dims(shape: TensorShapeProto) -> Dims:
    return tuple(dim.dim_param if _open(dim) else dim.dim_value for dim in shape.dim)


def _open(dim: TensorShapeProto.Dimension) -> bool:
    """Whether a dimension is not said; some exporters write -1."""
    return not dim.HasField("dim_value") or dim.dim_value < 0


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 2]}.."
