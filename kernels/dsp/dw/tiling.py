"""The tilings of the weights' and the bias' gradients on a DSP: plain, printable, overridable data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernels.errors import unusable_tiling

PREFIX = "dw."
"""How the fields of dw begin in a call's tiling; those of dx stand alone, those of db have a prefix of their own."""

PREFIX_DB = "db."


class DwTiling(BaseModel):
    """How conv_backward walks dw.

    Attributes:
        split: what the cores divide: images, strips of output rows (both with a reduction after), or blocks of dw.
        groups, out_channels, taps, channels: the block of dw that stays on the chip until it is complete.
        k: outputs of one chunk: the length of a product's sum.
        rows: output channels (rows) of one product.
        ahead: whether loads run ahead of the products.
        fp16_accumulate: what fp16 products are summed in.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    split: Literal["batch", "rows", "channels"]
    groups: int = Field(ge=1)
    out_channels: int = Field(ge=1)
    taps: int = Field(ge=1)
    channels: int = Field(ge=1)
    k: int = Field(ge=1)
    rows: int = Field(ge=1)
    ahead: int = Field(1, ge=0, le=1)
    fp16_accumulate: Literal["fp32", "fp16"] = "fp32"


class DbTiling(BaseModel):
    """How conv_backward walks dy for db.

    Attributes:
        k: outputs that are summed at a time.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    k: int = Field(ge=1)


T = TypeVar("T", bound=BaseModel)


def checked(values: Mapping[str, object]) -> DwTiling:
    """A tiling of dw from plain values.

    Raises:
        TilingError: a field is unknown, of the wrong type or out of range.
    """
    return _checked(DwTiling, PREFIX, values)


def checked_db(values: Mapping[str, object]) -> DbTiling:
    """A tiling of db from plain values.

    Raises:
        TilingError: a field is unknown, of the wrong type or out of range.
    """
    return _checked(DbTiling, PREFIX_DB, values)


def _checked(kind: type[T], prefix: str, values: Mapping[str, object]) -> T:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise unusable_tiling(error, kind.model_fields, prefix) from None
