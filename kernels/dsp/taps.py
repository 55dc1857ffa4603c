"""Which taps of a kernel row the outputs of a row have inside what is read, as runs of outputs that are alike."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from kernels.dsp.dx.geometry import Axis


class TapRun(NamedTuple):
    """Output columns [ow, end) that have exactly the taps [first, first + taps) of those that are looked at."""

    first: int
    taps: int
    ow: int
    end: int


def taps_join(axis: Axis, whole: bool) -> bool:
    """Whether one copy brings in neighbouring taps along the innermost axis; `whole` says that it takes all channels.

    Then they lie side by side, unless there is a dilation. With a stride of one the rows of one tap are contiguous
    as well, and cost no bursts but their ends'.
    """
    return whole and axis.dilation == 1 < min(axis.stride, axis.kernel)


def runs_of(ranges: Sequence[tuple[int, int, int]]) -> list[TapRun]:
    """The runs of columns with equal taps, from (tap, first column, end) of each tap; from left to right.

    The taps of one column follow each other: what a column reads is an interval.
    """
    ranges = [(tap, low, high) for tap, low, high in ranges if low < high]
    found = []
    for ow, end in pairwise(sorted({edge for _, *edges in ranges for edge in edges})):
        here = [tap for tap, low, high in ranges if low <= ow and end <= high]
        if here:
            found.append(TapRun(here[0], len(here), ow, end))
    return found
