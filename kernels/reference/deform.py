"""The float64 reference of a deformable convolution, forward and backward, written from its formula.

Tap (a, b) of output (i, j) reads x at (i sh - ph + a dh + oy, j sw - pw + b dw + ox), between pixels by the bilinear
formula, times its mask; pixels outside x count as 0. A tap whose point lies at or beyond one pixel outside (h <= -1,
h >= H, the same for w) is absent: it adds nothing to y and to no gradient. So is one whose offset is NaN or infinite,
which no comparison puts inside. At whole coordinates the derivative is that of the cell above, [h, h + 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from kernels.errors import OperandError
from kernels.reference.references import conv_backward_reference, conv_forward_reference
from kernels.shape.checks import shown
from kernels.shape.deform import DeformShape

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Tap:
    """The points of one tap of one deformable group that lie inside, a row each.

    Attributes:
        group, tap: which.
        n, i, j: image and output position of each point.
        row, column: the pixel at its low corner.
        y, x: how far it lies behind that, in [0, 1).
        mask: its factor.
    """

    group: int
    tap: int
    n: npt.NDArray[np.intp]
    i: npt.NDArray[np.intp]
    j: npt.NDArray[np.intp]
    row: npt.NDArray[np.intp]
    column: npt.NDArray[np.intp]
    y: Array
    x: Array
    mask: Array


def deform_forward_reference(
    shape: DeformShape,
    x: npt.ArrayLike,
    w: npt.ArrayLike,
    offset: npt.ArrayLike,
    mask: npt.ArrayLike | None = None,
    *,
    coordinates: str = "float64",
) -> Array:
    """Return y [N, Cout, *out]: the convolution of the resampled features. Arguments are those of the gradients."""
    features = resampled_reference(shape, x, offset, mask, coordinates=coordinates)
    return conv_forward_reference(shape.features, features, w)


def resampled_reference(
    shape: DeformShape,
    x: npt.ArrayLike,
    offset: npt.ArrayLike,
    mask: npt.ArrayLike | None = None,
    *,
    coordinates: str = "float64",
) -> Array:
    """Return x as the taps see it, times the mask: [N, Cin, Ho x Kh, Wo x Kw]; 0 where a tap is absent."""
    source = _operand("x", x, shape.conv.x_shape)
    found = _blocks(shape)
    for tap in _taps(shape, offset, mask, coordinates):
        values = sum(
            _factor(tap, dy, dx)[:, None] * _pixels(shape, source, tap, dy, dx) for dy, dx in CORNERS
        )
        _put(shape, found, tap, tap.mask[:, None] * values)
    return _unblocked(shape, found)


def deform_backward_reference(
    shape: DeformShape,
    dy: npt.ArrayLike,
    w: npt.ArrayLike,
    x: npt.ArrayLike,
    offset: npt.ArrayLike,
    mask: npt.ArrayLike | None = None,
    *,
    coordinates: str = "float64",
    magnitude: bool = False,
) -> dict[str, Array]:
    """Return dx, dw, db, doffset and, where there is a mask, dmask, in float64.

    Args:
        shape: the geometry.
        dy: [N, Cout, *out].
        w: [Cout, Cin / groups, Kh, Kw].
        x: [N, Cin, H, W].
        offset: [N, 2 x deformable groups x Kh x Kw, *out], (dy, dx) a tap.
        mask: [N, deformable groups x Kh x Kw, *out].
        coordinates: what points are computed in, "float64" or, as on the chips, "float32".
        magnitude: sum |a||b| behind each element instead, which scales its rounding errors.

    Raises:
        OperandError: an array has another shape.
    """
    sized = np.abs if magnitude else np.asarray
    upstream = sized(_operand("dy", dy, shape.conv.dy_shape))
    weight, source = sized(_operand("w", w, shape.conv.w_shape)), sized(_operand("x", x, shape.conv.x_shape))
    taps = list(_taps(shape, offset, mask, coordinates))
    factors = None if mask is None else sized(np.asarray(mask, np.float64))
    features = resampled_reference(shape, source, offset, factors, coordinates=coordinates)
    of_conv = conv_backward_reference(shape.features, upstream, weight, features)
    found = {"dx": np.zeros(shape.conv.x_shape), "dw": of_conv["dw"], "db": of_conv["db"]}
    found["doffset"], dmask = np.zeros(shape.offset_shape), np.zeros(shape.mask_shape)
    towards = _blocked(shape, of_conv["dx"])
    for tap in taps:
        _add_tap(shape, found, dmask, tap, _get(shape, towards, tap), source, magnitude)
    return found if mask is None else {**found, "dmask": dmask}


CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))
"""The pixels around a point: rows and columns from its low corner."""


def _add_tap(
    shape: DeformShape,
    found: dict[str, Array],
    dmask: Array,
    tap: _Tap,
    upstream: Array,
    source: Array,
    magnitude: bool,
) -> None:
    """Add what one tap passes on: `upstream` is the gradient of its resampled features, [points, channels]."""
    factor = np.abs(tap.mask) if magnitude else tap.mask
    through = upstream * factor[:, None]
    (x00, x01), (x10, x11) = ([_pixels(shape, source, tap, dy, dx) for dx in (0, 1)] for dy in (0, 1))
    sign = 1.0 if magnitude else -1.0
    y, x = tap.y[:, None], tap.x[:, None]
    down = (1 - x) * (x10 + sign * x00) + x * (x11 + sign * x01)
    right = (1 - y) * (x01 + sign * x00) + y * (x11 + sign * x10)
    value = (1 - y) * ((1 - x) * x00 + x * x01) + y * ((1 - x) * x10 + x * x11)
    point = tap.group * shape.conv.taps + tap.tap
    dmask[tap.n, point, tap.i, tap.j] = (upstream * value).sum(axis=1)
    found["doffset"][tap.n, 2 * point, tap.i, tap.j] = (through * down).sum(axis=1)
    found["doffset"][tap.n, 2 * point + 1, tap.i, tap.j] = (through * right).sum(axis=1)
    first = tap.group * shape.channels
    channels = np.arange(first, first + shape.channels)
    for dy, dx in CORNERS:
        row, column = tap.row + dy, tap.column + dx
        there = _inside(shape, row, column)
        place = (tap.n[there, None], channels, row[there, None], column[there, None])
        np.add.at(found["dx"], place, through[there] * _factor(tap, dy, dx)[there, None])


def _taps(
    shape: DeformShape, offset: npt.ArrayLike, mask: npt.ArrayLike | None, coordinates: str
) -> Iterator[_Tap]:
    """Every tap with the points of it that lie inside."""
    moved, kind = _operand("offset", offset, shape.offset_shape), np.dtype(coordinates)
    given = np.ones(shape.mask_shape) if mask is None else _operand("mask", mask, shape.mask_shape)
    (height, width), (rows, columns) = shape.conv.size, shape.conv.kernel
    (top, _), (left, _) = shape.conv.padding
    i, j = np.ogrid[: shape.conv.out[0], : shape.conv.out[1]]
    for group, a, b in product(range(shape.deform_groups), range(rows), range(columns)):
        tap = a * columns + b
        point = group * shape.conv.taps + tap
        h = (i * shape.conv.stride[0] - top + a * shape.conv.dilation[0]).astype(kind) + moved[
            :, 2 * point
        ].astype(kind)
        v = (j * shape.conv.stride[1] - left + b * shape.conv.dilation[1]).astype(kind) + moved[
            :, 2 * point + 1
        ].astype(kind)
        at = np.nonzero((h > -1) & (h < height) & (v > -1) & (v < width))
        low_h, low_v = np.floor(h[at]), np.floor(v[at])
        pixel = low_h.astype(np.intp), low_v.astype(np.intp)
        part = (h[at] - low_h).astype(np.float64), (v[at] - low_v).astype(np.float64)
        n, of_i, of_j = at
        yield _Tap(group, tap, n, of_i, of_j, *pixel, *part, given[:, point][at])


def _factor(tap: _Tap, dy: int, dx: int) -> Array:
    """The share of a corner."""
    return (tap.y if dy else 1 - tap.y) * (tap.x if dx else 1 - tap.x)


def _inside(
    shape: DeformShape, row: npt.NDArray[np.intp], column: npt.NDArray[np.intp]
) -> npt.NDArray[np.bool_]:
    height, width = shape.conv.size
    return np.asarray((row >= 0) & (row < height) & (column >= 0) & (column < width))


def _pixels(shape: DeformShape, source: Array, tap: _Tap, dy: int, dx: int) -> Array:
    """The channels of a corner of each point, 0 outside: [points, channels]."""
    row, column = tap.row + dy, tap.column + dx
    there = _inside(shape, row, column)
    first = tap.group * shape.channels
    found = np.zeros((len(row), shape.channels))
    found[there] = source[:, first : first + shape.channels][tap.n[there], :, row[there], column[there]]
    return found


def _blocks(shape: DeformShape) -> Array:
    """Zeros [N, Cin, Ho, Kh, Wo, Kw]."""
    (ho, wo), (kh, kw) = shape.conv.out, shape.conv.kernel
    return np.zeros((shape.conv.n, shape.conv.cin, ho, kh, wo, kw))


def _blocked(shape: DeformShape, features: Array) -> Array:
    return features.reshape(_blocks(shape).shape)


def _unblocked(shape: DeformShape, blocks: Array) -> Array:
    return blocks.reshape(shape.features.x_shape)


def _place(shape: DeformShape, tap: _Tap) -> tuple[object, ...]:
    a, b = divmod(tap.tap, shape.conv.kernel[1])
    first = tap.group * shape.channels
    channels = np.arange(first, first + shape.channels)
    return tap.n[:, None], channels, tap.i[:, None], a, tap.j[:, None], b


def _put(shape: DeformShape, blocks: Array, tap: _Tap, values: Array) -> None:
    blocks[_place(shape, tap)] = values  # type: ignore[index]  # indices of several kinds


def _get(shape: DeformShape, blocks: Array, tap: _Tap) -> Array:
    """[points, channels]."""
    return np.asarray(blocks[_place(shape, tap)])  # type: ignore[index]  # indices of several kinds


def _operand(argument: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    array = np.asarray(value).astype(np.float64, copy=False)
    if array.shape != shape:
        raise OperandError(f"{argument} must be {shown(shape)}", argument=argument, got=shown(array.shape))
    return array
