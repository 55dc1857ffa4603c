"""Memories: capacity, addresses, buffers that start as NaN, and views of them."""

from __future__ import annotations

from math import prod

import numpy as np

from simulator.errors import BoundsError, CapacityError
from simulator.numerics import Array, DType, poisoned
from simulator.ranges import Range, collapse
from targets.schema import MemorySpec


class Buffer:
    """A named, allocated range of one memory, seen as a row-major array.

    Buffers of one memory never overlap. `data` is None while only time is simulated. A constant buffer is only read by
    the kernels: it can cause no hazard, and a write to it is refused.
    """

    __slots__ = ("_views", "address", "constant", "data", "dtype", "memory", "name", "shape", "shared", "size", "strides")

    def __init__(self, memory: str, name: str, address: int, shape: tuple[int, ...], dtype: DType, shared: bool) -> None:
        """Describe a buffer; `Memory.allocate` is how one is made."""
        self.memory = memory
        self.name = name
        self.address = address
        self.shape = shape
        self.dtype = dtype
        self.shared = shared
        self.constant = False
        self.size = prod(shape)
        strides = [dtype.size_bytes]
        for extent in reversed(shape[1:]):
            strides.append(strides[-1] * extent)
        self.strides = tuple(reversed(strides))
        self.data: Array | None = None
        self._views: dict[tuple[int, tuple[int, ...]], View] = {}

    @property
    def bytes(self) -> int:
        """The size in bytes."""
        return self.size * self.dtype.size_bytes

    def materialise(self) -> None:
        """Give the buffer storage, filled with NaN."""
        if self.data is None:
            self.data = poisoned(self.size, self.dtype).reshape(self.shape)

    def box(self, start: tuple[int, ...], size: tuple[int, ...]) -> View:
        """The view of [start, start + size) on every axis.

        Raises:
            BoundsError: the box leaves the buffer.
        """
        offset = self.address
        for first, extent, limit, stride in zip(start, size, self.shape, self.strides, strict=True):
            if first < 0 or extent < 0 or first + extent > limit:
                raise self._out_of_bounds(start, size)
            offset += first * stride
        (rows, row_bytes, stride), exact = collapse(tuple(zip(size, self.strides, strict=True)), self.dtype.size_bytes)
        return View(self, start, size, Range(offset, rows, row_bytes, stride), exact)

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


class View:
    """A part of a buffer: what an instruction reads or writes.

    `range` covers its bytes, exactly where `exact`; `shape` is how the instruction sees it.
    """

    __slots__ = ("buffer", "exact", "range", "shape", "start")

    def __init__(self, buffer: Buffer, start: tuple[int, ...], shape: tuple[int, ...], covered: Range, exact: bool) -> None:
        """Describe a part; `Buffer.box` and `Buffer.dense` check it against the buffer."""
        self.buffer = buffer
        self.start = start
        self.shape = shape
        self.range = covered
        self.exact = exact

    def array(self) -> Array:
        """The numbers, as a numpy view that can be written."""
        data = self.buffer.data
        if data is None:
            raise BoundsError("numbers of a buffer that has none", where=f"{self.buffer.name} in {self.buffer.memory}")
        if len(self.start) == 1 and len(self.shape) != 1 or data.ndim == 1:
            first = self.start[0]
            return data[first : first + prod(self.shape)].reshape(self.shape)
        return data[tuple(slice(f, f + s) for f, s in zip(self.start, self.shape, strict=True))]


class Memory:
    """One storage level of a core or of the chip: hands out addresses and refuses what does not fit."""

    def __init__(self, name: str, spec: MemorySpec, *, core: int = 0) -> None:
        """Bring the memory called `name` of core `core` to life."""
        self.name = name
        self.spec = spec
        self.shared = spec.scope == "chip"
        self.base = spec.base_address + core * spec.core_stride_bytes
        self._taken: list[tuple[int, int, str]] = []

    @property
    def used_bytes(self) -> int:
        """Bytes that are taken, with the gaps that alignment left."""
        return max((end for _, end, _ in self._taken), default=self.base) - self.base

    @property
    def free_bytes(self) -> int:
        """Bytes above the highest buffer."""
        return self.spec.size_bytes - self.used_bytes

    def allocate(
        self, name: str, shape: tuple[int, ...], dtype: DType, *, address: int | None = None, remedy: str = ""
    ) -> Buffer:
        """A buffer at the next aligned address, or at `address`.

        Raises:
            CapacityError: it does not fit; `remedy` says which field of the tiling to lower.
            BoundsError: `address` lies outside the memory or in another buffer.
        """
        wanted = prod(shape) * dtype.size_bytes
        if address is None:
            align = self.spec.align_bytes
            address = self.base + -(-self.used_bytes // align) * align
            if address + wanted > self.base + self.spec.size_bytes:
                free = self.base + self.spec.size_bytes - address
                raise CapacityError(
                    f"buffer {name} does not fit", memory=self.name, wanted_bytes=wanted, free_bytes=max(0, free),
                    remedy=remedy,
                )
        else:
            self._check_place(name, address, wanted)
        self._taken.append((address, address + wanted, name))
        return Buffer(self.name, name, address, shape, dtype, self.shared)

    def _check_place(self, name: str, address: int, wanted: int) -> None:
        end = self.base + self.spec.size_bytes
        if address < self.base or address + wanted > end:
            raise BoundsError(
                "address outside a memory", where=f"{name} in {self.name}", got=f"{address:#x} + {wanted} bytes",
                limit=f"{self.base:#x} to {end:#x}",
            )
        for first, last, other in self._taken:
            if address < last and first < address + wanted:
                raise BoundsError(
                    "two buffers overlap", where=f"{name} in {self.name}", got=f"{address:#x} + {wanted} bytes",
                    limit=f"{other} lies at {first:#x} to {last:#x}",
                )

    def release_all(self) -> None:
        """Forget every buffer: the next launch finds the memory empty."""
        self._taken.clear()


def fill_from(buffer: Buffer, values: Array) -> None:
    """Put an operand into a buffer, as its storage type."""
    buffer.data = np.ascontiguousarray(values, dtype=buffer.dtype.storage).reshape(buffer.shape)
