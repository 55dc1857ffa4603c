"""Memories: capacity, addresses, buffers that start as NaN, and views of them."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from simulator.errors import BoundsError, CapacityError
from simulator.memory.ranges import Range, collapse, packed_strides
from simulator.memory.views import ScatteredView, StridedView, View, WindowView
from simulator.values.numerics import Array, DType, poisoned
from targets.schema import MemorySpec

__all__ = ["Buffer", "Memory", "View", "fill_from", "packed_strides", "placement"]


@lru_cache(maxsize=65536)
def placement(
    frame: tuple[int, ...], start: tuple[int, ...], size: tuple[int, ...], item_bytes: int
) -> tuple[int, int, int, int, bool] | None:
    """(offset, rows, row bytes, stride, exact) of a box in a row-major array; None when it leaves the array."""
    if len(start) != len(frame) or len(size) != len(frame):
        return None
    strides, offset = packed_strides(frame, item_bytes), 0
    for low, extent, limit, stride in zip(start, size, frame, strides, strict=True):
        if low < 0 or extent < 0 or low + extent > limit:
            return None
        offset += low * stride
    (rows, row_bytes, stride), exact = collapse(tuple(zip(size, strides, strict=True)), item_bytes)
    return offset, rows, row_bytes, stride, exact


class Buffer:
    """A named, allocated range of one memory, seen as a row-major array.

    Buffers of one memory never overlap. `data` is None until it is touched. A constant buffer is only read by
    the kernels: it can cause no hazard, and a write to it is refused.
    """

    __slots__ = (
        "_boxes",
        "_views",
        "address",
        "constant",
        "data",
        "dtype",
        "memory",
        "name",
        "shape",
        "shared",
        "size",
        "strides",
    )

    def __init__(
        self, memory: str, name: str, address: int, shape: tuple[int, ...], dtype: DType, shared: bool
    ) -> None:
        """Describe a buffer; `Memory.allocate` is how one is made."""
        self.memory = memory
        self.name = name
        self.address = address
        self.shape = shape
        self.dtype = dtype
        self.shared = shared
        self.constant = False
        self.size = prod(shape)
        self.strides = packed_strides(shape, dtype.size_bytes)
        self.data: Array | None = None
        self._views: dict[tuple[int, tuple[int, ...]], View] = {}
        self._boxes: dict[object, View] = {}

    @property
    def bytes(self) -> int:
        """The size in bytes."""
        return self.size * self.dtype.size_bytes

    def numbers(self) -> Array:
        """The numbers; a buffer that was never written holds NaN."""
        if self.data is None:
            self.data = poisoned(self.size, self.dtype).reshape(self.shape)
        return self.data

    def reshaped(self, shape: tuple[int, ...]) -> Buffer:
        """The same bytes under another shape, for a constant: hazards do not see that the two are one."""
        twin = Buffer(self.memory, self.name, self.address, shape, self.dtype, self.shared)
        twin.constant = True
        twin.data = None if self.data is None else self.data.reshape(shape)
        return twin

    def box(
        self,
        start: tuple[int, ...],
        size: tuple[int, ...],
        *,
        frame: tuple[int, ...] | None = None,
        shape: tuple[int, ...] | None = None,
        first: int = 0,
    ) -> View:
        """The view of [start, start + size) on every axis.

        Args:
            start: first index of each axis.
            size: extent on each axis.
            frame: see the buffer, or a part of it, as a packed array of this shape.
            shape: how the instruction sees the box, if not as `size`.
            first: element of the buffer at which the frame begins.

        Raises:
            BoundsError: the box leaves the buffer.
        """
        if frame is None:
            return self._cut(start, size, None, shape, first)
        key = (start, size, frame, shape, first)
        view = self._boxes.get(key)
        if view is None:
            view = self._boxes[key] = self._cut(start, size, frame, shape, first)
        return view

    def strided(
        self,
        start: tuple[int, ...],
        size: tuple[int, ...],
        steps: tuple[int, ...],
        *,
        frame: tuple[int, ...] | None = None,
    ) -> View:
        """The view of `size` elements on every axis from `start`, `steps` elements apart; none of the sizes is 0.

        With `frame` the first elements of the buffer are seen as a packed array of this shape.

        Raises:
            BoundsError: it leaves the buffer, or the frame.
        """
        index, whole = [], frame or self.shape
        if prod(whole) > self.size:
            raise self._out_of_bounds(start, whole)
        for low, count, step, limit in zip(start, size, steps, whole, strict=True):
            stop = low + (count - 1) * step + 1
            if low < 0 or count < 1 or stop > limit:
                raise self._out_of_bounds(start, size)
            index.append(slice(low, stop, step))
        item = self.dtype.size_bytes
        strides = packed_strides(whole, item)
        distances = tuple(step * stride for step, stride in zip(steps, strides, strict=True))
        (rows, row_bytes, stride), exact = collapse(tuple(zip(size, distances, strict=True)), item)
        offset = sum(low * stride for low, stride in zip(start, strides, strict=True))
        covered = Range(self.address + offset, rows, row_bytes, stride)
        return StridedView(self, start, size, covered, exact, tuple(index), whole)

    def windows(
        self,
        start: tuple[int, ...],
        size: tuple[int, ...],
        steps: tuple[int, ...],
        run: int,
        *,
        frame: tuple[int, ...] | None = None,
    ) -> WindowView:
        """The view of `run` contiguous elements from each of `size` places, `steps` places apart; they may overlap.

        A window goes on from one place to the next of the axis before the last, and stays in its row.

        Args:
            start: the first element of the first window, an index on each axis.
            size: windows along each axis but the last.
            steps: their distance along each axis but the last.
            run: elements of a window.
            frame: see the first elements of the buffer as a packed array of this shape.

        Raises:
            BoundsError: one leaves the buffer, the frame, or its row.
        """
        whole = frame or self.shape
        ends = [low + (count - 1) * step for low, count, step in zip(start, size, steps, strict=False)]
        inside = all(low >= 0 and end < limit for low, end, limit in zip(start, ends, whole, strict=False))
        room = (whole[-2] - ends[-1]) * whole[-1] - start[-1]
        if not inside or start[-1] < 0 or run > room or min(*size, run) < 1 or prod(whole) > self.size:
            raise self._out_of_bounds(start, (*size, run))
        each = packed_strides(whole, 1)
        first = sum(low * distance for low, distance in zip(start, each, strict=True))
        distances = (*(step * distance for step, distance in zip(steps, each, strict=False)), 1)
        item, shape = self.dtype.size_bytes, (*size, run)
        (rows, row_bytes, stride), exact = collapse(
            tuple((count, distance * item) for count, distance in zip(shape, distances, strict=True)), item
        )
        covered = Range(self.address + first * item, rows, row_bytes, stride)
        return WindowView(self, first, shape, distances, covered, exact)

    def scattered(self, starts: NDArray[np.intp], run: int) -> ScatteredView:
        """The view of runs of `run` elements that start at elements anywhere in the buffer; there is one at least.

        Raises:
            BoundsError: one leaves the buffer.
        """
        for first in (int(starts.min()), int(starts.max())):
            if first < 0 or first + run > self.size:
                raise self._out_of_bounds((first,), (run,))
        return ScatteredView(self, starts, run)

    def _cut(
        self,
        start: tuple[int, ...],
        size: tuple[int, ...],
        frame: tuple[int, ...] | None,
        shape: tuple[int, ...] | None,
        first: int,
    ) -> View:
        item = self.dtype.size_bytes
        placed = placement(frame or self.shape, start, size, item)
        if placed is None or (frame is not None and first + prod(frame) > self.size):
            raise self._out_of_bounds(
                start if placed is None else (first,), size if placed is None else frame or self.shape
            )
        offset, rows, row_bytes, stride, exact = placed
        covered = Range(self.address + first * item + offset, rows, row_bytes, stride)
        return View(self, start, shape or size, covered, exact, (frame or self.shape, size, first))

    def dense(self, shape: tuple[int, ...], first: int = 0) -> View:
        """The view of prod(shape) elements of a one-dimensional buffer from element `first`, packed, in this shape.

        Raises:
            BoundsError: the buffer is shorter.
        """
        view = self._views.get((first, shape))
        if view is None:
            count = prod(shape)
            if first < 0 or first + count > self.size or len(self.shape) != 1:
                raise self._out_of_bounds((first,), (count,))
            item = self.dtype.size_bytes
            covered = Range(self.address + first * item, 1, count * item, count * item)
            view = View(self, (first,), shape, covered, True)
            self._views[first, shape] = view
        return view

    def _out_of_bounds(self, start: tuple[int, ...], size: tuple[int, ...]) -> BoundsError:
        return BoundsError(
            "access outside a buffer",
            where=f"{self.name} in {self.memory}",
            got=f"start {start}, size {size}",
            limit=f"shape {self.shape}",
        )


class Memory:
    """One storage level of a core or of the chip: hands out addresses and refuses what does not fit."""

    def __init__(self, name: str, spec: MemorySpec, *, core: int = 0) -> None:
        """Bring the memory called `name` of core `core` to life."""
        self.name = name
        self.spec = spec
        self.shared = spec.scope == "chip"
        self.base = spec.base_address + core * spec.core_stride_bytes
        self._taken: list[tuple[int, int, str]] = []
        self._kept: list[tuple[int, int, str]] = []

    @property
    def used_bytes(self) -> int:
        """Bytes that are taken, with the gaps that alignment left."""
        return max((end for _, end, _ in self._taken), default=self.base) - self.base

    @property
    def taken(self) -> list[tuple[int, int]]:
        """First address and end of every buffer, in the order in which they were made."""
        return [(first, end) for first, end, _ in self._taken]

    @property
    def free_bytes(self) -> int:
        """Bytes above the highest buffer."""
        return self.spec.size_bytes - self.used_bytes

    def gaps(self) -> list[tuple[int, int]]:
        """The free ranges (start, end) with aligned starts, in order of their addresses."""
        align, start, found = self.spec.align_bytes, self.base, []
        for first, last, _ in [*sorted(self._taken), (self.base + self.spec.size_bytes, 0, "")]:
            if first > start:
                found.append((start, first))
            start = max(start, self.base + -(-(last - self.base) // align) * align)
        return found

    def allocate(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: DType,
        *,
        address: int | None = None,
        remedy: str = "",
        keep: bool = False,
    ) -> Buffer:
        """A buffer above the others, else in a gap, or at `address`; `release_all` leaves it where it is to be kept.

        Raises:
            CapacityError: it does not fit; `remedy` says which field of the tiling to lower.
            BoundsError: `address` lies outside the memory or in another buffer.
        """
        wanted = prod(shape) * dtype.size_bytes
        if address is None:
            address = self._free_place(name, wanted, remedy)
        else:
            self.check_place(name, address, wanted)
        self._taken.append((address, address + wanted, name))
        if keep:
            self._kept.append(self._taken[-1])
        return Buffer(self.name, name, address, shape, dtype, self.shared)

    def _free_place(self, name: str, wanted: int, remedy: str) -> int:
        """An aligned address with so many free bytes behind it: above the highest buffer, else in the first gap."""
        address = self.base + -(-self.used_bytes // self.spec.align_bytes) * self.spec.align_bytes
        free = self.base + self.spec.size_bytes - address
        if wanted <= free:
            return address
        found = next((start for start, end in self.gaps() if end - start >= wanted), None)
        if found is None:
            raise CapacityError(
                f"buffer {name} does not fit",
                memory=self.name,
                wanted_bytes=wanted,
                free_bytes=max(0, free),
                remedy=remedy,
            )
        return found

    def check_place(self, name: str, address: int, wanted: int) -> None:
        """Raise a BoundsError where a range lies outside the memory or in another buffer."""
        end = self.base + self.spec.size_bytes
        if address < self.base or address + wanted > end:
            raise BoundsError(
                "address outside a memory",
                where=f"{name} in {self.name}",
                got=f"{address:#x} + {wanted} bytes",
                limit=f"{self.base:#x} to {end:#x}",
            )
        for first, last, other in self._taken:
            if address < last and first < address + wanted:
                raise BoundsError(
                    "two buffers overlap",
                    where=f"{name} in {self.name}",
                    got=f"{address:#x} + {wanted} bytes",
                    limit=f"{other} lies at {first:#x} to {last:#x}",
                )

    def release(self, address: int) -> None:
        """Forget the buffer at an address, kept or not."""
        self._taken = [t for t in self._taken if t[0] != address]
        self._kept = [t for t in self._kept if t[0] != address]

    def release_all(self) -> None:
        """Forget every buffer that is not kept: the next launch finds its place empty."""
        self._taken = list(self._kept)


def fill_from(buffer: Buffer, values: Array) -> None:
    """Put an operand into a buffer, as its storage type."""
    buffer.data = np.ascontiguousarray(values, dtype=buffer.dtype.storage).reshape(buffer.shape)
