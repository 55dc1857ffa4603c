"""ConvShape: the checked geometry of one convolution, plain or transposed, with 1 to 3 spatial axes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Self

from kernels.errors import ShapeError
from kernels.shape.checks import (
    SIZE_LIMIT,
    Axes,
    Padding,
    PadPairs,
    is_listed,
    pad_pairs,
    per_axis,
    shown,
    spatial_rank,
    truth,
    whole,
)
from kernels.shape.fit import (
    channels_of,
    extents,
    plain_out,
    plain_size,
    require_equal,
    same_rank,
    spatial_sizes,
    tensor_shape,
    transposed_out,
    transposed_size,
)

__all__ = ["ConvShape", "PadPairs"]

MOST_ELEMENTS = 2**60
"""Elements of one tensor: its bytes, at 8 an element, are then a 64-bit number."""


@dataclass(frozen=True, init=False)
class ConvShape:
    """The geometry of a convolution as PyTorch defines it; an argument that cannot be raises `ShapeError`.

    Sizes are counted in elements. `size` and `kernel` have one value an axis (one of the two may be one for
    all); `stride`, `dilation` and `output_padding` one value, or one an axis; `padding` also one (low, high)
    pair an axis, where high may be negative: trailing input that no tap reads. Of a transposed convolution,
    `cin` and `size` are its input, and `output_padding` adds to the high side of its output. An empty output
    of a plain convolution is legal (its gradients are zeros), of a transposed one it is not.
    """

    n: int
    cin: int
    size: tuple[int, ...]
    cout: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: PadPairs
    dilation: tuple[int, ...]
    groups: int
    transposed: bool
    output_padding: tuple[int, ...]

    def __init__(
        self,
        n: int,
        cin: int,
        size: Axes,
        cout: int,
        kernel: Axes,
        stride: Axes = 1,
        padding: Padding = 0,
        dilation: Axes = 1,
        groups: int = 1,
        transposed: bool = False,
        output_padding: Axes = 0,
    ) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)  # the class is frozen for everybody else

        put("groups", whole("groups", groups, 1))
        ndim = _rank(size, kernel)
        put("kernel", per_axis("kernel", kernel, ndim, 1))
        put("stride", per_axis("stride", stride, ndim, 1))
        put("dilation", per_axis("dilation", dilation, ndim, 1))
        put("n", whole("n", n, 0, SIZE_LIMIT))
        put("cin", whole("cin", cin, 0, SIZE_LIMIT))
        put("cout", whole("cout", cout, 0, SIZE_LIMIT))
        put("size", per_axis("size", size, ndim, 1, SIZE_LIMIT))
        put("transposed", truth("transposed", transposed))
        _require_whole_groups(self)
        put("output_padding", per_axis("output_padding", output_padding, ndim, 0))
        _require_small_output_padding(self)
        put("padding", pad_pairs("padding", padding, ndim))
        _require_legal_output(self)
        _require_countable(self)

    @property
    def ndim(self) -> int:
        """The number of spatial axes: 1, 2 or 3."""
        return len(self.size)

    @property
    def out(self) -> tuple[int, ...]:
        """The output's size on each spatial axis."""
        extent = extents(self.kernel, self.dilation)
        if self.transposed:
            return transposed_out(self.size, extent, self.stride, self.padding, self.output_padding)
        return plain_out(self.size, extent, self.stride, self.padding)

    @property
    def pads(self) -> PadPairs:
        """The effective (low, high) pads of each axis: high is what the taps reach; it may be negative.

        With `small` the output (transposed: the input) and `large` the other one, high is
        (small - 1) * stride + dilation * (kernel - 1) + 1 - large - low. An empty output keeps its pads.
        """
        if 0 in self.out:
            return self.padding
        small, large = (self.size, self.out) if self.transposed else (self.out, self.size)
        extent = extents(self.kernel, self.dilation)
        rows = zip(small, large, self.stride, extent, self.padding, strict=True)
        return tuple((low, (o - 1) * s + e - i - low) for o, i, s, e, (low, _) in rows)

    @property
    def x_shape(self) -> tuple[int, ...]:
        """The input's shape [N, Cin, *size]."""
        return (self.n, self.cin, *self.size)

    @property
    def w_shape(self) -> tuple[int, ...]:
        """The weight's shape [Cout, Cin / groups, *kernel], transposed [Cin, Cout / groups, *kernel]."""
        if self.transposed:
            return (self.cin, self.cout // self.groups, *self.kernel)
        return (self.cout, self.cin // self.groups, *self.kernel)

    @property
    def dy_shape(self) -> tuple[int, ...]:
        """The output's shape, and its gradient's: [N, Cout, *out]."""
        return (self.n, self.cout, *self.out)

    @property
    def taps(self) -> int:
        """The number of kernel positions."""
        return prod(self.kernel)

    @property
    def useful_macs(self) -> int:
        """Multiply-adds of one gradient: N * Cout * outputs * Cin / groups * taps, those in the padding too.

        A transposed convolution counts as its adjoint, whose outputs are its inputs.
        """
        places = prod(self.size) if self.transposed else prod(self.out)
        return self.n * self.cout * places * (self.cin // self.groups) * self.taps

    def to_dict(self) -> dict[str, object]:
        """Return the arguments as plain numbers and lists: `ConvShape(**shape.to_dict())` is equal."""
        return {name: _listed(value) for name, value in asdict(self).items()}

    def as_3d(self) -> Self:
        """Return the same geometry with three spatial axes: leading ones of size 1, kernel 1 and pad 0."""
        lead = 3 - self.ndim
        ones, zeros = (1,) * lead, (0,) * lead
        return replace(
            self,
            size=ones + self.size,
            kernel=ones + self.kernel,
            stride=ones + self.stride,
            padding=((0, 0),) * lead + self.padding,
            dilation=ones + self.dilation,
            output_padding=zeros + self.output_padding,
        )

    @classmethod
    def from_out(
        cls,
        n: int,
        cin: int,
        size: Axes,
        cout: int,
        kernel: Axes,
        out: Axes,
        *,
        low_pads: Axes = 0,
        stride: Axes = 1,
        dilation: Axes = 1,
        groups: int = 1,
        transposed: bool = False,
    ) -> Self:
        """Return the geometry with this output size: the high pads, or the output padding, are derived."""
        bare = cls(n, cin, size, cout, kernel, stride, 0, dilation, groups, transposed)
        lows = per_axis("padding", low_pads, bare.ndim, 0)
        outs = per_axis("out", out, bare.ndim, 0, SIZE_LIMIT)
        small, large = (bare.size, outs) if bare.transposed else (outs, bare.size)
        extent = extents(bare.kernel, bare.dilation)
        rows = zip(small, large, bare.stride, extent, lows, strict=True)
        highs = [(o - 1) * s + e - i - low for o, i, s, e, low in rows]
        if not bare.transposed:
            return replace(bare, padding=tuple(zip(lows, highs, strict=True)))
        padding, extra = transposed_padding(lows, highs, bare.stride, bare.dilation)
        return replace(bare, padding=padding, output_padding=extra)

    @classmethod
    def resolve(
        cls,
        dy: Sequence[int],
        w: Sequence[int] | None = None,
        x: Sequence[int] | None = None,
        *,
        input_size: Axes | None = None,
        weight_size: Axes | None = None,
        stride: Axes = 1,
        padding: Padding = 0,
        dilation: Axes = 1,
        groups: int = 1,
        transposed: bool = False,
        output_padding: Axes = 0,
    ) -> Self:
        """Return the geometry of a backward call from the shapes of its arrays, all of which must fit.

        Without x, `input_size` (spatial) is needed, as for PyTorch's `conv2d_input`, unless one size fits:
        stride 1 on all axes, or transposed. Without w, `weight_size` (spatial) is needed. One of w and x must
        be given: dy alone does not tell the input channels.
        """
        groups = whole("groups", groups, 1)
        dy = tensor_shape("dy", dy)
        ndim = len(dy) - 2
        w = None if w is None else same_rank("w", w, ndim)
        x = None if x is None else same_rank("x", x, ndim)
        kernel = spatial_sizes("weight_size", weight_size, "w", w, ndim)
        cin, cout = channels_of(dy, w, x, groups, truth("transposed", transposed))
        batch = dy[0] if x is None else x[0]
        known = x is not None or input_size is not None
        size = spatial_sizes("input_size", input_size, "x", x, ndim) if known else None
        bare = cls(
            batch, cin, size or 1, cout, kernel, stride, 0, dilation, groups, transposed, output_padding
        )
        pairs = pad_pairs("padding", padding, ndim)
        shape = replace(bare, size=size or _input_size(bare, dy[2:], pairs), padding=pairs)
        remedy = "output_padding chooses among the sizes that stride allows" if shape.transposed else ""
        require_equal("dy", dy, shape.dy_shape, remedy)
        require_equal("w", w, shape.w_shape)
        return shape


def transposed_padding(
    lows: Sequence[int], highs: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[PadPairs, tuple[int, ...]]:
    """Return padding and output_padding of effective pads: PyTorch's form where it has one, else pairs."""
    most = [max(s, d) for s, d in zip(stride, dilation, strict=True)]
    extra = tuple(
        low - high if 0 <= low - high < m else 0 for low, high, m in zip(lows, highs, most, strict=True)
    )
    pairs = tuple((low, high + more) for low, high, more in zip(lows, highs, extra, strict=True))
    return pairs, extra


def _rank(size: object, kernel: object) -> int:
    """Return the number of spatial axes, told by whichever of the two lists them."""
    for argument, value in (("size", size), ("kernel", kernel)):
        if is_listed(value):
            return spatial_rank(argument, value)
    raise ShapeError(
        "size must give one value an axis", argument="size", got=shown(size), limit="1 to 3 values"
    )


def _require_whole_groups(shape: ConvShape) -> None:
    for name, channels in (("cin", shape.cin), ("cout", shape.cout)):
        if channels % shape.groups:
            raise ShapeError(
                f"groups must divide {name}",
                argument="groups",
                got=f"groups {shape.groups}, {name} {channels}, remainder {channels % shape.groups}",
            )


def _require_small_output_padding(shape: ConvShape) -> None:
    if not shape.transposed and any(shape.output_padding):
        raise ShapeError(
            "output_padding needs transposed", argument="output_padding", got=shown(shape.output_padding)
        )
    for extra, s, d in zip(shape.output_padding, shape.stride, shape.dilation, strict=True):
        if extra and extra >= max(s, d):
            raise ShapeError(
                "output_padding must be smaller than stride or dilation",
                argument="output_padding",
                got=extra,
                limit=max(s, d) - 1,
            )


def _require_legal_output(shape: ConvShape) -> None:
    out = shape.out
    if shape.transposed and min(out) < 1:
        size = "x".join(map(str, out))
        raise ShapeError(
            f"padding leaves no output: its size would be {size}",
            argument="padding",
            got=shown(shape.padding),
            remedy="lower padding",
        )
    if max(out) >= SIZE_LIMIT:
        raise ShapeError("the output is too large", argument="size", got=shown(out), limit=SIZE_LIMIT - 1)


def _require_countable(shape: ConvShape) -> None:
    tensors = (("size", shape.x_shape), ("kernel", shape.w_shape), ("size", shape.dy_shape))
    for argument, tensor in tensors:
        if prod(tensor) >= MOST_ELEMENTS:
            raise ShapeError(
                "a tensor has too many elements",
                argument=argument,
                got=shown(tensor),
                limit=f"fewer than 2**{MOST_ELEMENTS.bit_length() - 1}",
            )


def _input_size(shape: ConvShape, out: tuple[int, ...], pads: PadPairs) -> tuple[int, ...]:
    extent = extents(shape.kernel, shape.dilation)
    if shape.transposed:
        size = transposed_size(out, extent, shape.stride, pads, shape.output_padding)
    else:
        size = plain_size(out, extent, shape.stride, pads)
    if min(size) < 1:
        raise ShapeError(
            f"padding leaves no input: its size would be {'x'.join(map(str, size))}",
            argument="padding",
            got=shown(pads),
        )
    return size


def _listed(value: object) -> object:
    """Return the value with lists in place of tuples, as JSON has them."""
    return [_listed(item) for item in value] if isinstance(value, tuple) else value
