"""The geometry of a node Conv or ConvTranspose, from its attributes and the sizes of what it reads.

The rules are those of the ONNX operators' pages (Conv-22, ConvTranspose-22): pads of all low sides before those of all
high sides; `auto_pad` in place of `pads`; `output_shape` of a transposed one from which pads follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx
from onnx import NodeProto

from kernels.shape.checks import PadPairs
from kernels.shape.fit import extents
from kernels.shape.shapes import ConvShape
from tilesim.networks.layers import NetworkError, said_at
from tilesim.networks.onnx_graph import Graph

AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


@dataclass(frozen=True)
class _Window:
    """What the attributes say, one value a spatial axis."""

    where: str
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[int, ...]
    auto_pad: str
    output_padding: tuple[int, ...]
    output_shape: tuple[int, ...]

    @property
    def extent(self) -> tuple[int, ...]:
        """Positions that the dilated kernel spans."""
        return extents(self.kernel, self.dilation)

    @property
    def given(self) -> PadPairs:
        """The pads as pairs; none where `auto_pad` says so."""
        half = len(self.size)
        return tuple(zip(self.pads[:half], self.pads[half:], strict=True))

    def same(self) -> PadPairs:
        """Pads of a plain convolution with ceil(size / stride) outputs."""
        rows = zip(self.size, self.extent, self.stride, strict=True)
        return tuple(
            self.halves(max(0, (-(-size // step) - 1) * step + extent - size)) for size, extent, step in rows
        )

    def transposed(self) -> PadPairs:
        """Pads of a transposed one that give `output_shape`, or size * stride outputs as far as the taps reach."""
        outs = self.output_shape or tuple(i * s for i, s in zip(self.size, self.stride, strict=True))
        rows = zip(self.size, self.extent, self.stride, self.output_padding, outs, strict=True)
        totals = [(size - 1) * step + more + extent - out for size, extent, step, more, out in rows]
        return tuple(self.halves(total if self.output_shape else max(0, total)) for total in totals)

    def halves(self, total: int) -> tuple[int, int]:
        """A total of pads on two sides; the odd one is at the end for SAME_UPPER, else at the beginning.

        A total below 0, of an output larger than the taps reach, adds to the end.
        """
        if total < 0:
            return 0, total
        low = total // 2 if self.auto_pad == "SAME_UPPER" else total - total // 2
        return low, total - low


def conv_shape(graph: Graph, node: NodeProto) -> ConvShape:
    """The geometry of a node.

    Raises:
        NetworkError: a size is not known, an attribute is not usable, or the geometry cannot be.
    """
    name = node.name or node.output[0]
    where = f"{graph.where}, {node.op_type} {name}"
    if len(node.input) < 2 or not node.output:
        raise NetworkError("a convolution without operands", where=where)
    x, w = (graph.sizes(each, f"{node.op_type} {name}") for each in node.input[:2])
    if len(x) != len(w) or len(x) < 3:
        what = "input and weights that do not fit"
        raise NetworkError(what, where=where, got=f"input {_text(x)}, weights {_text(w)}")
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    window = _window(where, attributes, x[2:], w[2:])
    with said_at(where):
        shape = _shape(window, x, w, int(attributes.get("group", 1)), node.op_type == "ConvTranspose")
    _check(graph, node, where, shape, w)
    return shape


def _window(
    where: str, attributes: dict[str, object], size: tuple[int, ...], kernel: tuple[int, ...]
) -> _Window:
    """The attributes checked: one value an axis, pads two.

    Raises:
        NetworkError: names the attribute.
    """
    ndim = len(size)

    def listed(name: str, default: Sequence[int], wanted: int = ndim) -> tuple[int, ...]:
        value = attributes.get(name)
        found = tuple(int(each) for each in value) if isinstance(value, Sequence) else tuple(default)
        if len(found) not in {len(default), wanted}:
            raise NetworkError(f"{name} of {len(found)} values", where=where, got=_text(found), limit=wanted)
        return found

    said = attributes.get("auto_pad", b"NOTSET")
    auto_pad = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    if auto_pad not in AUTO_PADS:
        raise NetworkError("auto_pad", where=where, got=auto_pad, limit=", ".join(AUTO_PADS))
    if listed("kernel_shape", kernel) != kernel:
        got = f"{_text(listed('kernel_shape', kernel))}, weights {_text(kernel)}"
        raise NetworkError("kernel_shape is not that of the weights", where=where, got=got)
    pads = listed("pads", (0,) * 2 * ndim, 2 * ndim)
    return _Window(
        where=where,
        size=size,
        kernel=kernel,
        stride=listed("strides", (1,) * ndim),
        dilation=listed("dilations", (1,) * ndim),
        pads=pads if auto_pad == "NOTSET" else (0,) * 2 * ndim,
        auto_pad=auto_pad,
        output_padding=listed("output_padding", (0,) * ndim),
        output_shape=listed("output_shape", ()),
    )


def _shape(
    window: _Window, x: tuple[int, ...], w: tuple[int, ...], groups: int, transposed: bool
) -> ConvShape:
    bare = ConvShape(
        n=x[0],
        cin=x[1],
        size=x[2:],
        cout=w[1] * groups if transposed else w[0],
        kernel=w[2:],
        stride=window.stride,
        dilation=window.dilation,
        groups=groups,
    )
    same = window.auto_pad.startswith("SAME")
    if transposed:
        derived = same or bool(window.output_shape)
        padding = window.transposed() if derived else window.given
        return ConvShape(
            **{**vars(bare), "padding": padding, "transposed": True, "output_padding": window.output_padding}
        )
    return ConvShape(**{**vars(bare), "padding": window.same() if same else window.given})


def _check(graph: Graph, node: NodeProto, where: str, shape: ConvShape, w: tuple[int, ...]) -> None:
    """Refuse weights that do not fit the groups, and an output that is not what the model says.

    Raises:
        NetworkError: says both.
    """
    if shape.w_shape != w:
        what = "weights that do not fit the input's channels and groups"
        raise NetworkError(what, where=where, got=_text(w), limit=_text(shape.w_shape))
    said = graph.known(node.output[0])
    if said is not None and said != shape.dy_shape:
        what = "an output that is not what the geometry makes"
        raise NetworkError(what, where=where, got=_text(said), limit=_text(shape.dy_shape))


def _text(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes)) or "none"
