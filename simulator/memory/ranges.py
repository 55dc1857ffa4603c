"""Ranges of bytes in a memory, and whether two of them overlap.

A range is `rows` pieces of `row_bytes` bytes, `stride` bytes apart: what a two-dimensional DMA moves. Overlap is exact:
two column blocks of one matrix interleave without overlapping.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple


class Range(NamedTuple):
    """Bytes at base + i * stride + [0, row_bytes) for i in 0..rows-1; `stride` counts only when rows > 1."""

    base: int
    rows: int
    row_bytes: int
    stride: int

    @property
    def bytes(self) -> int:
        """The bytes that the range holds."""
        return self.rows * self.row_bytes

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.base + (self.rows - 1) * self.stride + self.row_bytes


class Runs(NamedTuple):
    """Runs of `run_bytes` bytes that lie anywhere: the address of each, in the order in which they are touched."""

    places: tuple[int, ...]
    run_bytes: int

    def bursts(self, burst_bytes: int) -> int:
        """Bursts that the runs touch, each of them counted once."""
        found: set[int] = set()
        for start in self.places:
            found.update(range(start // burst_bytes, -(-(start + self.run_bytes) // burst_bytes)))
        return len(found)

    def bursts_apart(self, burst_bytes: int) -> int:
        """Bursts that the runs touch, counted for each run."""
        ends = ((start, start + self.run_bytes) for start in self.places)
        return sum(-(-end // burst_bytes) - start // burst_bytes for start, end in ends)


def overlaps(a: Range, b: Range) -> bool:
    """Whether two ranges share a byte."""
    if a[0] == b[0]:
        return a[1] > 0 and b[1] > 0 and a[2] > 0 and b[2] > 0
    if a.end <= b[0] or b.end <= a[0] or not (a.bytes and b.bytes):
        return False
    if a.rows == 1 and b.rows == 1:
        return True
    few, many = (a, b) if a.rows <= b.rows else (b, a)
    if few.rows > 1 and few.stride == many.stride:
        return _same_stride(few, many)
    return any(_piece_hits(few.base + i * few.stride, few.row_bytes, many) for i in range(few.rows))


def _same_stride(a: Range, b: Range) -> bool:
    """Row i of a and row j of b meet when j - i lies strictly between two bounds; is there such a pair?"""
    stride = a.stride
    least = (a.base - b.base - b.row_bytes) // stride + 1
    most = -((b.base - a.base - a.row_bytes) // stride) - 1
    return max(least, 1 - a.rows) <= min(most, b.rows - 1)


def _piece_hits(start: int, length: int, b: Range) -> bool:
    """Whether [start, start + length) meets a row of b."""
    if b.rows == 1:
        return start < b.base + b.row_bytes and b.base < start + length
    first = max(0, (start - b.base - b.row_bytes) // b.stride + 1)
    return first < b.rows and b.base + first * b.stride < start + length


@lru_cache(maxsize=4096)
def packed_strides(shape: tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    """Distance in bytes between neighbours on each axis of a row-major array."""
    strides = [item_bytes]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides))


Dims = tuple[tuple[int, int], ...]


@lru_cache(maxsize=65536)
def collapse(dims: Dims, item_bytes: int) -> tuple[tuple[int, int, int], bool]:
    """(rows, row_bytes, stride) that cover a box of (size, stride in bytes) axes, and whether they cover nothing else.

    Neighbouring axes that are contiguous are merged. A box of more than two levels is covered by its whole span.
    """
    run, merged = levels(dims, item_bytes)
    if not merged:
        return (1, run, run), True
    if len(merged) == 1:
        return (merged[0][0], run, merged[0][1]), True
    span = run + sum((size - 1) * stride for size, stride in merged)
    return (1, span, span), False


def levels(dims: Dims, item_bytes: int) -> tuple[int, list[tuple[int, int]]]:
    """The contiguous bytes inside a box, and (size, stride) of the axes around them, the innermost first.

    Neighbouring axes that are contiguous are merged.
    """
    merged: list[tuple[int, int]] = []
    run = item_bytes
    for size, stride in reversed([d for d in dims if d[0] != 1]):
        if not merged and stride == run:
            run *= size
        elif merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * size, merged[-1][1])
        else:
            merged.append((size, stride))
    return run, merged


@lru_cache(maxsize=65536)
def nested(dims: Dims, item_bytes: int) -> tuple[tuple[int, int, int], Dims]:
    """(rows, row_bytes, stride) of the innermost two levels of a box, and (size, stride) of the axes around these."""
    run, merged = levels(dims, item_bytes)
    rows, stride = merged[0] if merged else (1, run)
    return (rows, run, stride), tuple(merged[1:])
