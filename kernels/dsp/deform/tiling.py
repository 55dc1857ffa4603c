"""The tiling of what surrounds the products of a deformable convolution on a DSP: plain data, which can be given."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernels.dsp.places import places
from kernels.errors import TilingError
from kernels.shape.deform import DeformShape
from simulator.values.numerics import DType
from targets.schema import Target

BLOCK_BYTES = 128
"""Channels of a block of dx in fp32: two bursts, and a register of the Matrix family."""

COLUMNS = 64
"""Outputs of a tile at most: longer tiles leave less to run beside their loads."""

PREFIXES = ("sample_", "scatter_")
"""How the fields begin."""


class DeformTiling(BaseModel):
    """How the sampling and the scatter are cut. Cores divide the tiles, whose sizes do not depend on how many they are.

    Attributes:
        sample_positions, sample_channels: outputs of a tile, all taps of a deformable group each, and the channels
            of them that are sampled at a time.
        scatter_positions: outputs of a tile whose points are added together.
        scatter_rows, scatter_channels: the band of dx that one core owns until it is complete.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sample_positions: int = Field(ge=1)
    sample_channels: int = Field(ge=1)
    scatter_positions: int = Field(ge=1)
    scatter_rows: int = Field(ge=1)
    scatter_channels: int = Field(ge=1)


def split_tiling(
    given: Mapping[str, object], shape: DeformShape, kind: DType, target: Target
) -> tuple[dict[str, object], DeformTiling]:
    """The fields of the convolution, and the tiling of the rest, chosen by rule where it is not given.

    Raises:
        TilingError: a field is not usable.
    """
    own = {name: value for name, value in given.items() if name.startswith(PREFIXES)}
    rest = {name: value for name, value in given.items() if name not in own}
    try:
        return rest, DeformTiling.model_validate({**_by_rule(shape, kind, target), **own})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise TilingError(
            "a field of the tiling is not usable", field=name, got=repr(first["input"]), limit=first["msg"]
        ) from None


def _by_rule(shape: DeformShape, kind: DType, target: Target) -> dict[str, object]:
    """Tiles that fill three quarters of AM twice; bands as high as fit, but one for every core of the chip at least."""
    conv, channels, item = shape.conv, max(1, shape.channels), kind.size_bytes
    room = places(target).array_bytes * 3 // 4
    scalars = conv.taps * 3 * (4 + 4 * item)
    sampled = 2 * 6 * conv.taps * item
    together = max(1, min(channels, (room - scalars) // sampled))
    block = max(1, min(channels, BLOCK_BYTES // 4))
    added = 2 * conv.taps * (block * item + 3 * item)
    columns = max(1, min(COLUMNS, conv.out[1], room // 4 // added))
    row = max(1, conv.size[1] * block * (4 + (item if item < 4 else 0)))
    fits = max(1, (room - columns * added) // row)
    shared = -(-target.groups // max(1, conv.n * shape.deform_groups * -(-channels // block)))
    return {
        "sample_positions": max(1, min(COLUMNS, conv.out[1], room // (sampled * together + scalars))),
        "sample_channels": together,
        "scatter_positions": columns,
        "scatter_rows": max(1, min(fits, -(-conv.size[0] // shared))),
        "scatter_channels": block,
    }
