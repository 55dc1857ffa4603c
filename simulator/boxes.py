"""Moving boxes of a tensor with a DMA of two levels: as few copies as its rows allow."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from simulator.instructions import Coords, Copy
from simulator.memories import Buffer, View


def load_box(
    local: Buffer, tensor: Buffer, start: tuple[int, ...], size: tuple[int, ...], *, channel: int = 0, coords: Coords = (),
    name: str = "load", first: int = 0, frame: tuple[int, ...] | None = None,
) -> Iterator[Copy]:
    """Copies that bring a box of a tensor, packed, into a local buffer from element `first`."""
    for dense, box in _pieces(local, tensor, start, size, first, frame):
        yield Copy(dense, box, channel=channel, coords=coords, name=name)


def store_box(
    tensor: Buffer, start: tuple[int, ...], size: tuple[int, ...], local: Buffer, *, channel: int = 0, coords: Coords = (),
    name: str = "store", first: int = 0, frame: tuple[int, ...] | None = None,
) -> Iterator[Copy]:
    """Copies that take a packed box from a local buffer to its place in a tensor."""
    for dense, box in _pieces(local, tensor, start, size, first, frame):
        yield Copy(box, dense, channel=channel, coords=coords, name=name)


def _pieces(
    local: Buffer, tensor: Buffer, start: tuple[int, ...], size: tuple[int, ...], first: int,
    frame: tuple[int, ...] | None,
) -> Iterator[tuple[View, View]]:
    """Pairs (packed, box): the box itself, or its slices along the outermost axis that has several."""
    box = tensor.box(start, size, frame=frame)
    if box.exact:
        yield local.dense(size, first), box
        return
    axis = next(i for i, extent in enumerate(size) if extent > 1)
    inner = (*size[:axis], 1, *size[axis + 1 :])
    for index in range(size[axis]):
        place = (*start[:axis], start[axis] + index, *start[axis + 1 :])
        yield from _pieces(local, tensor, place, inner, first + index * prod(inner), frame)
