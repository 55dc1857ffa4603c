"""DeformShape: the checked geometry of a two-dimensional deformable convolution."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.errors import ShapeError
from kernels.shape.shapes import ConvShape

THROUGH_FEATURES = ("dx", "doffset", "dmask")
"""Gradients that need the gradient of the resampled features."""


@dataclass(frozen=True)
class DeformShape:
    """A plain convolution whose taps are moved by offsets, an offset a tap, output position and deformable group.

    Attributes:
        conv: the convolution with taps that do not move: plain, with two spatial axes and at least one output.
        deform_groups: groups of input channels that are sampled at the same places.
        masked: whether each tap also has a factor (version 2).

    Raises:
        ShapeError: it is none of the convolutions that can be deformed, or the groups do not divide the channels.
    """

    conv: ConvShape
    deform_groups: int = 1
    masked: bool = False

    def __post_init__(self) -> None:
        """Check what a ConvShape does not."""
        c, dg = self.conv, self.deform_groups
        if c.transposed or c.ndim != 2:
            got = f"{c.ndim} axes{', transposed' if c.transposed else ''}"
            raise ShapeError("only plain convolutions of two spatial axes deform", argument="shape", got=got)
        if 0 in c.out:
            raise ShapeError("a deformable convolution without outputs", argument="shape", got=c.out)
        if dg < 1 or c.cin % dg:
            what = "deform_groups must divide the input channels"
            raise ShapeError(what, argument="deform_groups", got=dg, limit=f"a divisor of {c.cin}")

    @property
    def points(self) -> int:
        """Sampling points of an output position: taps of all deformable groups."""
        return self.deform_groups * self.conv.taps

    @property
    def channels(self) -> int:
        """Input channels of a deformable group."""
        return self.conv.cin // self.deform_groups

    @property
    def offset_shape(self) -> tuple[int, ...]:
        """[N, 2 x points, *out]: (dy, dx) of a tap, tap by tap, deformable group by deformable group."""
        return (self.conv.n, 2 * self.points, *self.conv.out)

    @property
    def mask_shape(self) -> tuple[int, ...]:
        """[N, points, *out]."""
        return (self.conv.n, self.points, *self.conv.out)

    @property
    def features(self) -> ConvShape:
        """The convolution of the resampled features [N, Cin, Ho x Kh, Wo x Kw]: its stride is its kernel."""
        c = self.conv
        size = tuple(o * k for o, k in zip(c.out, c.kernel, strict=True))
        return ConvShape(c.n, c.cin, size, c.cout, c.kernel, stride=c.kernel, groups=c.groups)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to sample: no images, or no input channels."""
        return 0 in (self.conv.n, self.conv.cin)

    def to_dict(self) -> dict[str, object]:
        """Plain values, for a run."""
        return {**self.conv.to_dict(), "deform_groups": self.deform_groups, "mask": self.masked}
