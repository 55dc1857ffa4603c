"""The tiling of the scatter, beside that of the convolution."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from kernels.davinci.tiling import Tiling, checked
from kernels.davinci.vectors import PIECE
from targets.schema import Target

PREFIX = "scatter."

ELEMENT_BYTES = 2 * (5 * 4 + 4 * 4)
"""UB for a channel of a point, in fp32 at most: its gradient, four pixels and four additions, in two tiles."""

RESERVED_BYTES = 4 * PIECE + 32768
"""UB for zeros, offsets and their gradients."""


class ScatterTiling(Tiling):
    """How the scatter is cut.

    Attributes:
        elements: channels of all points of a tile at most; a tile has one point at least.
    """

    elements: int = Field(ge=1)


def split_tiling(given: Mapping[str, object], target: Target) -> tuple[dict[str, object], int]:
    """The fields of the convolution, and the elements of a tile: by default as many as fit.

    Raises:
        TilingError: a field of the scatter is unknown or not usable.
    """
    room = (target.memory["ub"].size_bytes - RESERVED_BYTES) // ELEMENT_BYTES
    own = {name.removeprefix(PREFIX): value for name, value in given.items() if name.startswith(PREFIX)}
    rest = {name: value for name, value in given.items() if not name.startswith(PREFIX)}
    return rest, checked(ScatterTiling, {"elements": room, **own}, PREFIX).elements
