"""How many additions one element of a result has been through, at most: what the bound of its error depends on."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, prod

from kernels.davinci.sides import Sides
from kernels.shape.shapes import ConvShape

VECTOR_CORES = 2
"""Vector cores of a group, at most."""


def longest_chain(
    name: str, tiling: Mapping[str, object], shape: ConvShape, item_bytes: int, groups: int
) -> int:
    """Additions behind one element of dx, y, dw or db: a step, the steps, and the cores that add to it."""
    sides = Sides.of(shape, 32 // item_bytes)
    if name in ("dx", "y"):
        return _image(sides, (name == "dx") != shape.transposed, tiling)
    if name == "dw":
        return _weights(sides, tiling) + groups
    k, outputs = _number(tiling, "db.k"), shape.n * prod(shape.out)
    strips = shape.n * prod(shape.out[:-2]) * ceil(prod(shape.out[-2:]) / k)
    return min(k, outputs) + strips + VECTOR_CORES * groups


def _image(sides: Sides, scatter: bool, tiling: Mapping[str, object]) -> int:
    """K steps of all chunks, and the length of one."""
    source = sides.small if scatter else sides.large
    blocks = min(max(1, _number(tiling, "channels") // sides.c0), max(1, source.blocks))
    taps = min(_number(tiling, "taps"), sides.plane_taps)
    steps = ceil(blocks * taps * sides.c0 / _number(tiling, "k"))
    chunks = ceil(source.blocks / blocks) * ceil(sides.plane_taps / taps) * sides.kernel[0]
    return min(_number(tiling, "k"), blocks * taps * sides.c0) + chunks * steps


def _weights(sides: Sides, tiling: Mapping[str, object]) -> int:
    """Steps of all pieces, each of which may leave the core by itself, and the length of one."""
    depth, height, width = sides.small_size
    rows, columns, k = (_number(tiling, f"dw.{field}") for field in ("rows", "columns", "k"))
    if columns >= width:
        pieces, size = ceil(height / rows), rows * width
    else:
        pieces, size = height * ceil(width / columns), columns
    return min(k, size) + sides.n * depth * pieces * (ceil(size / k) + 1)


def _number(tiling: Mapping[str, object], field: str) -> int:
    return int(str(tiling[field]))
