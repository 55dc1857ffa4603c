"""Tensors of a profile as what a convolution or a product reads: batch, channels and sizes, out of their layouts.

Plain layouts say their sizes exactly. Those of the cube (NC1HWC0, FRACTAL_Z, FRACTAL_NZ) hold whole blocks, so that a
number of channels is known up to the block that it fills.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from tilesim.validation.profile_columns import Tensor

PLAIN = {3: "NCH", 4: "NCHW", 5: "NCDHW"}
"""What ND means, by the number of axes."""

BLOCKED = {"NC1HWC0": "NCHWc", "NDC1HWC0": "NDCHWc"}
FRACTAL = ("FRACTAL_Z", "FRACTAL_Z_3D", "FRACTAL_Z_C04")
NZ = "FRACTAL_NZ"


class UnclearError(ValueError):
    """A line whose problem cannot be told; the text is the reason."""


class Count(NamedTuple):
    """A number of channels, or a number that is at most one block below it."""

    number: int
    block: int = 1

    def means(self, exact: int) -> bool:
        """Whether it may stand for an exact number."""
        return 0 <= self.number - exact < self.block


def agreed(what: str, *counts: Count) -> int:
    """The number that all counts mean: the exact one, else the least.

    Raises:
        UnclearError: they disagree.
    """
    number = min(count.number for count in counts)
    if not all(count.means(number) for count in counts):
        listed = " and ".join(str(count.number) for count in counts)
        raise UnclearError(f"{what} disagree: {listed}")
    return number


class Image(NamedTuple):
    """x, y or a gradient of them."""

    n: int
    channels: Count
    size: tuple[int, ...]


class Weights(NamedTuple):
    """A filter: output channels, input channels of a group, and its kernel; or, of fractals, input blocks x taps."""

    out: Count
    into: int
    kernel: tuple[int, ...]
    blocks_taps: int = 0
    c0: int = 1


def image_of(tensor: Tensor) -> Image:
    """The sizes of an image.

    Raises:
        UnclearError: the layout is not one of an image.
    """
    layout = BLOCKED.get(tensor.format) or _plain(tensor)
    axes = dict(zip(layout, tensor.shape, strict=True))
    c0 = axes.get("c", 1)
    size = tuple(axes[axis] for axis in "DHW" if axis in axes)
    return Image(axes["N"], Count(axes["C"] * c0, c0), size)


def weights_of(tensor: Tensor) -> Weights:
    """The sizes of a filter.

    Raises:
        UnclearError: the layout is not one of a filter.
    """
    if tensor.format in FRACTAL:
        if len(tensor.shape) != 4:
            raise UnclearError(f"a filter in {tensor.format} of {len(tensor.shape)} axes")
        rows, n1, n0, c0 = tensor.shape
        return Weights(Count(n1 * n0, n0), 0, (), rows, c0)
    layout = _plain(tensor)
    axes = dict(zip(layout, tensor.shape, strict=True))
    return Weights(Count(axes["N"]), axes["C"], tuple(axes[axis] for axis in "DHW" if axis in axes))


def _plain(tensor: Tensor) -> str:
    """A letter an axis.

    Raises:
        UnclearError: the format is of another number of axes, or unknown.
    """
    layout = PLAIN.get(len(tensor.shape), "") if tensor.format in ("", "ND") else tensor.format
    if layout in BLOCKED or len(layout) != len(tensor.shape) or not set("NC") <= set(layout) <= set("NCDHW"):
        raise UnclearError(f"no layout known for {tensor.format or 'no format'} {shown(tensor)}")
    return layout


class Matrix(NamedTuple):
    """An operand of a product: leading axes, rows and columns."""

    batch: int
    rows: Count
    columns: Count


def matrix_of(tensor: Tensor) -> Matrix:
    """The sizes of a matrix; an axis alone is a row.

    Raises:
        UnclearError: it has no axes.
    """
    shape = tensor.shape
    if tensor.format == NZ and len(shape) >= 4:
        *batch, x1, y1, y0, x0 = shape
        return Matrix(prod(batch), Count(y1 * y0, y0), Count(x1 * x0, x0))
    if not shape:
        raise UnclearError("a matrix without a shape")
    *batch, rows, columns = shape if len(shape) > 1 else (1, *shape)
    return Matrix(prod(batch), Count(rows), Count(columns))


def shown(tensor: Tensor) -> str:
    """A shape as the profiler writes it."""
    return ",".join(map(str, tensor.shape)) or "scalar"
