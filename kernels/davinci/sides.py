"""The two sides of a convolution as the cube sees them: channels in blocks, groups merged, axes of reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Literal

from kernels.davinci.reach import Reach
from kernels.shape.shapes import ConvShape

FRACTAL = 16
"""Rows, and columns, of a block that the cube multiplies at once."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side: its sizes (D, H, W), and its channels in a merged group, as they are and in blocks of C0."""

    size: tuple[int, int, int]
    channels: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Sides:
    """A convolution, plain or transposed, between its strided side `small` and the side `large` that taps read.

    Of a plain convolution, small is the output; of a transposed one, the input. Weights are [small channels, large
    channels of a group, taps] in both.

    Attributes:
        n: images.
        groups: merged groups.
        merged: groups that lie in one merged group, side by side (the last may hold fewer).
        c0: channels of a block: 32 bytes of the operands' type.
        cs, cl: channels of a single group on each side.
        kernel, stride, dilation, low: of the axes D, H, W.
    """

    n: int
    groups: int
    single: int
    merged: int
    c0: int
    cs: int
    cl: int
    small_size: tuple[int, int, int]
    large_size: tuple[int, int, int]
    kernel: tuple[int, int, int]
    stride: tuple[int, int, int]
    dilation: tuple[int, int, int]
    low: tuple[int, int, int]

    @classmethod
    def of(cls, shape: ConvShape, c0: int) -> Sides:
        """The sides of a checked shape.

        Groups are merged while their channels on both sides fit one fractal of 16; the weights between different
        groups are zeros that the cube multiplies.
        """
        s = shape.as_3d()
        outer, inner = (s.size, s.out) if s.transposed else (s.out, s.size)
        channels = (s.cin, s.cout) if s.transposed else (s.cout, s.cin)
        cs, cl = (c // s.groups for c in channels)
        merged = max(1, min(s.groups, FRACTAL // max(1, cs, cl)))
        return cls(
            s.n, ceil(s.groups / merged), s.groups, merged, c0, cs, cl,
            _three(outer), _three(inner), _three(s.kernel), _three(s.stride), _three(s.dilation),
            _three([low for low, _ in s.pads]),
        )  # fmt: skip

    @property
    def small(self) -> Side:
        """The strided side."""
        return Side(self.small_size, self.merged * self.cs, ceil(self.merged * self.cs / self.c0))

    @property
    def large(self) -> Side:
        """The side that taps read."""
        return Side(self.large_size, self.merged * self.cl, ceil(self.merged * self.cl / self.c0))

    @property
    def plane_taps(self) -> int:
        """Taps of one depth: kernel height times width."""
        return self.kernel[1] * self.kernel[2]

    @property
    def weight_shape(self) -> tuple[int, int, int, int, int, int, int]:
        """FRACTAL_Z: [groups, depth taps, blocks of large channels, plane taps, ceil(small / 16), 16, C0]."""
        wide = ceil(self.small.channels / FRACTAL)
        return self.groups, self.kernel[0], self.large.blocks, self.plane_taps, wide, FRACTAL, self.c0

    def image_shape(self, side: Side) -> tuple[int, int, int, int, int, int]:
        """NDC1HWC0: [N, D, groups x blocks, H, W, C0]."""
        d, h, w = side.size
        return self.n, d, self.groups * side.blocks, h, w, self.c0

    def reach(self, way: Literal["gather", "scatter"]) -> tuple[Reach, Reach, Reach]:
        """The axes D, H, W seen from the small side (gather) or from the large one (scatter)."""
        make = Reach.gather if way == "gather" else Reach.scatter
        rows = zip(
            self.small_size, self.large_size, self.kernel, self.stride, self.dilation, self.low, strict=True
        )
        depth, height, width = [make(*row) for row in rows]
        return depth, height, width

    @property
    def empty(self) -> bool:
        """Whether no product has any term."""
        sizes = (self.n, self.cs, self.cl, *self.small_size, *self.large_size)
        return prod(sizes) == 0


def _three(values: Sequence[int]) -> tuple[int, int, int]:
    """Three axes, as as_3d makes them."""
    return values[0], values[1], values[2]
