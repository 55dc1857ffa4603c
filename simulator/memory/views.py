"""Views of buffers: what an instruction reads or writes, as ranges of bytes and as numbers."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simulator.memory.ranges import Dims, Range, Runs, nested, packed_strides
from simulator.values.numerics import Array

if TYPE_CHECKING:
    from simulator.memory.memories import Buffer


class View:
    """A part of a buffer: what an instruction reads or writes.

    `range` covers its bytes, exactly where `exact`; `shape` is how the instruction sees it. A box carries the frame
    (shape of the whole, size of the box, first element) that it was cut from; a packed view has none.
    """

    __slots__ = ("_frame", "buffer", "exact", "range", "shape", "start")

    def __init__(
        self,
        buffer: Buffer,
        start: tuple[int, ...],
        shape: tuple[int, ...],
        covered: Range,
        exact: bool,
        frame: tuple[tuple[int, ...], tuple[int, ...], int] | None = None,
    ) -> None:
        """Describe a part; `Buffer.box` and `Buffer.dense` check it against the buffer."""
        self.buffer = buffer
        self.start = start
        self.shape = shape
        self.range = covered
        self.exact = exact
        self._frame = frame

    @property
    def pieces(self) -> Range:
        """Its rows as a transfer counts them: the range where that is exact, else every contiguous piece of the box."""
        if self.exact or self._frame is None:
            return self.range
        frame, size, _ = self._frame
        item = self.buffer.dtype.size_bytes
        inner = next(axis for axis in reversed(range(len(size))) if size[axis] != frame[axis])
        run = prod(size[inner:]) * item
        return Range(self.range.base, prod(size[:inner]), run, packed_strides(frame, item)[inner - 1])

    def array(self) -> Array:
        """The numbers: a view to write to, or a read-only copy of a box that is seen in a shape no view has."""
        part = self._part()
        if part.shape == self.shape:
            return part
        seen = part.reshape(self.shape)
        if not np.may_share_memory(seen, part):
            seen.flags.writeable = False
        return seen

    def levels(self) -> tuple[Range, Dims]:
        """A range of two levels, and (size, stride in bytes) of the axes along which it is repeated.

        What is not a box is its covering range.
        """
        if self.exact or self._frame is None:
            return self.range, ()
        frame, size, _ = self._frame
        item = self.buffer.dtype.size_bytes
        inner, outer = nested(tuple(zip(size, packed_strides(frame, item), strict=True)), item)
        return Range(self.range.base, *inner), outer

    def put(self, values: Array) -> None:
        """Write as many numbers as the view has, in its order."""
        part = self._part()
        part[...] = values.reshape(part.shape)

    def _part(self) -> Array:
        """The numbers where they lie: a packed view in its shape, a box in its size."""
        data = self.buffer.numbers()
        if self._frame is None:
            first = self.start[0]
            return data[first : first + prod(self.shape)].reshape(self.shape)
        whole, size, offset = self._frame
        if data.shape != whole:
            data = data.reshape(-1)[offset : offset + prod(whole)].reshape(whole)
        return data[tuple(slice(f, f + s) for f, s in zip(self.start, size, strict=True))]


class StridedView(View):
    """Every so many elements of each axis of an array of this shape."""

    __slots__ = ("_index", "_whole")

    def __init__(
        self,
        buffer: Buffer,
        start: tuple[int, ...],
        shape: tuple[int, ...],
        covered: Range,
        exact: bool,
        index: tuple[slice, ...],
        whole: tuple[int, ...],
    ) -> None:
        super().__init__(buffer, start, shape, covered, exact)
        self._index = index
        self._whole = whole

    def _part(self) -> Array:
        data = self.buffer.numbers()
        if data.shape != self._whole:
            data = data.reshape(-1)[: prod(self._whole)].reshape(self._whole)
        return data[self._index]


class WindowView(View):
    """Windows of contiguous elements whose starts lie on a grid; neighbours may share elements. It is only read."""

    __slots__ = ("_distances", "_first")

    def __init__(
        self,
        buffer: Buffer,
        first: int,
        shape: tuple[int, ...],
        distances: tuple[int, ...],
        covered: Range,
        exact: bool,
    ) -> None:
        """Describe [*grid, elements] from element `first`, axes so many elements apart; `Buffer.windows` checks it."""
        super().__init__(buffer, (first,), shape, covered, exact)
        self._first = first
        self._distances = distances

    def _part(self) -> Array:
        data = self.buffer.numbers().reshape(-1)
        strides = tuple(distance * data.itemsize for distance in self._distances)
        return np.lib.stride_tricks.as_strided(data[self._first :], self.shape, strides, writeable=False)


class ScatteredView(View):
    """Runs of elements that lie anywhere in a buffer, also twice at the same place: [runs, elements of a run].

    The range covers all of them in one row; `runs` says where each is.
    """

    __slots__ = ("_runs", "_starts")

    def __init__(self, buffer: Buffer, starts: NDArray[np.intp], run: int) -> None:
        """Describe the runs of `run` elements that start at these elements; `Buffer.scattered` checks them."""
        item = buffer.dtype.size_bytes
        low, high = int(starts.min()) * item, (int(starts.max()) + run) * item
        covered = Range(buffer.address + low, 1, high - low, high - low)
        super().__init__(buffer, (), (len(starts), run), covered, False)
        self._starts = starts
        self._runs = Runs(tuple((buffer.address + starts * item).tolist()), run * item)

    @property
    def runs(self) -> Runs:
        """The addresses of the runs, and their bytes."""
        return self._runs

    def elements(self) -> NDArray[np.intp]:
        """The number of each element in the buffer, run by run."""
        return np.asarray(self._starts[:, None] + np.arange(self.shape[1]))

    def _part(self) -> Array:
        """A copy: what lies anywhere has no view. Not to be written to; see `put` and `add`."""
        return self.buffer.numbers().reshape(-1)[self.elements()]

    def put(self, values: Array) -> None:
        """Write the runs, in their order."""
        self.buffer.numbers().reshape(-1)[self.elements()] = values.reshape(self.shape)

    def add(self, values: Array) -> None:
        """Add the runs one by one, in their order, in the buffer's type."""
        flat = self.buffer.numbers().reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.at(flat, self.elements().reshape(-1), values.reshape(-1))
