"""Which sizes fit together: the output size of a convolution, and its inverse, on plain tuples."""

from collections.abc import Sequence

from kernels.errors import ShapeError
from kernels.shape.checks import SIZE_LIMIT, Axes, PadPairs, is_listed, per_axis, shown, whole


def extents(kernel: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """Return how many positions a dilated kernel spans on each axis: dilation * (kernel - 1) + 1."""
    return tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))


def plain_out(
    size: Sequence[int], extent: Sequence[int], stride: Sequence[int], pads: PadPairs
) -> tuple[int, ...]:
    """Return floor((size + low + high - extent) / stride) + 1 on each axis, at least 0 (PyTorch's Conv2d)."""
    rows = zip(size, extent, stride, pads, strict=True)
    return tuple(max(0, (i + low + high - e) // s + 1) for i, e, s, (low, high) in rows)


def transposed_out(
    size: Sequence[int], extent: Sequence[int], stride: Sequence[int], pads: PadPairs, extra: Sequence[int]
) -> tuple[int, ...]:
    """Return (size - 1) * stride - low - high + extent + output_padding (PyTorch's ConvTranspose2d).

    The values may be zero or negative: the caller refuses them.
    """
    rows = zip(size, extent, stride, pads, extra, strict=True)
    return tuple((i - 1) * s - low - high + e + more for i, e, s, (low, high), more in rows)


def plain_size(
    out: Sequence[int], extent: Sequence[int], stride: Sequence[int], pads: PadPairs
) -> tuple[int, ...]:
    """Return the only input size that gives this output, or raise `ShapeError` naming `input_size`.

    Only stride 1 has one: with stride s, s input sizes give the same output; an empty output says nothing.
    """
    rows = zip(out, extent, stride, pads, strict=True)
    smallest = tuple((o - 1) * s + e - low - high for o, e, s, (low, high) in rows)
    if all(s == 1 for s in stride) and all(o > 0 for o in out):
        return smallest
    largest = tuple(i + s - 1 for i, s in zip(smallest, stride, strict=True))
    raise ShapeError(
        "the input's size is not determined by the output's",
        argument="input_size",
        got=f"output {tuple(out)}, stride {tuple(stride)}",
        limit=f"{smallest} to {largest}" if all(o > 0 for o in out) else "",
        remedy="give x or input_size",
    )


def transposed_size(
    out: Sequence[int], extent: Sequence[int], stride: Sequence[int], pads: PadPairs, extra: Sequence[int]
) -> tuple[int, ...]:
    """Return the input size of a transposed convolution with this output, or raise `ShapeError` for `dy`."""
    rows = zip(out, extent, stride, pads, extra, strict=True)
    steps = [(o + low + high - e - more, s) for o, e, s, (low, high), more in rows]
    if any(distance % s for distance, s in steps):
        raise ShapeError(
            "no input size gives dy's size",
            argument="dy",
            got=f"output {tuple(out)}, stride {tuple(stride)}, output_padding {tuple(extra)}",
            remedy="correct output_padding, or give x or input_size",
        )
    return tuple(distance // s + 1 for distance, s in steps)


def tensor_shape(argument: str, value: object) -> tuple[int, ...]:
    """Return an array's shape [batch or channels, channels, 1 to 3 sizes] as ints, or raise `ShapeError`."""
    if not is_listed(value) or not 3 <= len(value) <= 5:
        raise ShapeError(
            f"{argument} must have 3 to 5 axes",
            argument=argument,
            got=shown(value),
            remedy="give 1 to 3 sizes",
        )
    return tuple(whole(argument, item, 0, SIZE_LIMIT) for item in value)


def require_equal(argument: str, got: Sequence[int] | None, wanted: Sequence[int], remedy: str = "") -> None:
    """Raise `ShapeError` naming the argument when its shape is given and is not the wanted one."""
    if got is not None and tuple(got) != tuple(wanted):
        raise ShapeError(
            f"{argument} must be {shown(tuple(wanted))} to fit the other arguments",
            argument=argument,
            got=shown(tuple(got)),
            remedy=remedy,
        )


def same_rank(argument: str, value: object, ndim: int) -> tuple[int, ...]:
    """Return an array's shape as ints when it has `ndim` spatial axes, or raise `ShapeError`."""
    shape = tensor_shape(argument, value)
    if len(shape) != ndim + 2:
        what = f"{argument} must have as many axes as dy"
        raise ShapeError(what, argument=argument, got=shown(shape), limit=f"{ndim + 2} axes")
    return shape


def spatial_sizes(
    argument: str, value: Axes | None, tensor: str, shape: tuple[int, ...] | None, ndim: int
) -> tuple[int, ...]:
    """Return a tensor's spatial sizes: of its shape, or of the argument that stands in for it.

    Raises:
        ShapeError: neither is given.
    """
    if value is None:
        if shape is None:
            raise ShapeError(f"{argument} or {tensor} is needed", argument=argument)
        return shape[2:]
    sizes = per_axis(argument, value, ndim, 1, SIZE_LIMIT)
    if shape is not None:
        require_equal(argument, sizes, shape[2:], f"leave it out where {tensor} is given")
    return sizes


def channels_of(
    dy: tuple[int, ...], w: tuple[int, ...] | None, x: tuple[int, ...] | None, groups: int, transposed: bool
) -> tuple[int, int]:
    """Return cin and cout: cin of x before w, cout of w before dy; whether the rest fits is checked later.

    Raises:
        ShapeError: neither w nor x is given.
    """
    if w is None:
        if x is None:
            raise ShapeError("w or x is needed to know the input channels", argument="w")
        return x[1], dy[1]
    cin, cout = (w[0], w[1] * groups) if transposed else (w[1] * groups, w[0])
    return (cin if x is None else x[1]), cout
