"""Moving boxes of a tensor with a DMA of two levels: as few copies as its rows allow."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, product
from math import prod

from simulator.instructions import Coords, Copy
from simulator.memory.memories import Buffer, View, packed_strides
from simulator.memory.ranges import collapse


def load_box(
    local: Buffer,
    tensor: Buffer,
    start: tuple[int, ...],
    size: tuple[int, ...],
    *,
    channel: int = 0,
    coords: Coords = (),
    name: str = "load",
    first: int = 0,
    frame: tuple[int, ...] | None = None,
) -> list[Copy]:
    """Copies that bring a box of a tensor, packed, into a local buffer from element `first`."""
    pairs = _pieces(local, tensor, start, size, first, frame)
    return [Copy(dense, box, channel=channel, coords=coords, name=name) for dense, box in pairs]


def store_box(
    tensor: Buffer,
    start: tuple[int, ...],
    size: tuple[int, ...],
    local: Buffer,
    *,
    channel: int = 0,
    coords: Coords = (),
    name: str = "store",
    first: int = 0,
    frame: tuple[int, ...] | None = None,
) -> list[Copy]:
    """Copies that take a packed box from a local buffer to its place in a tensor."""
    pairs = _pieces(local, tensor, start, size, first, frame)
    return [Copy(box, dense, channel=channel, coords=coords, name=name) for dense, box in pairs]


def _pieces(
    local: Buffer,
    tensor: Buffer,
    start: tuple[int, ...],
    size: tuple[int, ...],
    first: int,
    frame: tuple[int, ...] | None,
) -> list[tuple[View, View]]:
    """Pairs (packed, box): the box itself, or its slices along as few axes, with as few slices, as its rows allow."""
    box = tensor.box(start, size, frame=frame)
    if box.exact:
        return [(local.dense(size, first), box)]
    axes, found = slicing(frame or tensor.shape, size), []
    for index in product(*(range(size[axis]) for axis in axes)):
        place, inner, within = list(start), list(size), [0] * len(size)
        for axis, offset in zip(axes, index, strict=True):
            place[axis] += offset
            inner[axis] = 1
            within[axis] = offset
        part = tuple(inner)
        packed = local.box(tuple(within), part, frame=size, first=first)
        found.append((packed, tensor.box(tuple(place), part, frame=frame)))
    return found


@lru_cache(maxsize=4096)
def slicing(frame: tuple[int, ...], size: tuple[int, ...]) -> tuple[int, ...]:
    """The axes along which a box is cut into slices so that each is two-level, in the tensor and when it is packed."""
    many = [axis for axis, extent in enumerate(size) if extent > 1]
    for count in range(1, len(many)):
        options = [axes for axes in combinations(many, count) if _two_level(frame, size, axes)]
        if options:
            return min(options, key=lambda axes: prod(size[axis] for axis in axes))
    return tuple(many)


def _two_level(frame: tuple[int, ...], size: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    inner = tuple(1 if axis in axes else extent for axis, extent in enumerate(size))
    return all(
        collapse(tuple(zip(inner, packed_strides(whole, 1), strict=True)), 1)[1] for whole in (frame, size)
    )
