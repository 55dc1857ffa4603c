"""The tilings of the Da Vinci kernels: plain, printable, overridable data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernels.errors import TilingError, unusable_tiling


class Tiling(BaseModel):
    """What every tiling is: frozen, and without fields that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ImageTiling(Tiling):
    """How an image side is computed from the other one: dx, and forward.

    Attributes:
        rule: which rules chose it.
        walk: tiles of whole image rows, each padded to fractals of 16 (rows), or of consecutive positions (flat).
        m: positions of a tile at most; a row that is longer is cut.
        n: channels of a tile.
        k: length of a K step, in channels x taps; a multiple of C0.
        channels, taps: source channels (a multiple of C0) and plane taps of an L1 chunk.
        split: cores divide all tiles in a row (tiles), or images first, then positions, then channels (axes).
        l1_a, l1_b: buffers of the image and of the weights in L1.
        l0c: buffers of sums.
        weights: they come to L1 chunk by chunk (chunk), or K step by K step: to L1 (step) or straight to L0B (l0b).
    """

    rule: str
    walk: Literal["rows", "flat"]
    m: int = Field(ge=1)
    n: int = Field(ge=1)
    k: int = Field(ge=1)
    channels: int = Field(ge=1)
    taps: int = Field(ge=1)
    split: Literal["tiles", "axes"]
    l1_a: int = Field(ge=1, le=2)
    l1_b: int = Field(ge=1, le=2)
    l0c: int = Field(ge=1, le=2)
    weights: Literal["chunk", "step", "l0b"]


class WeightTiling(Tiling):
    """How the weights' gradient is computed.

    Attributes:
        rule: which rules chose it.
        m: channels of the strided side of a tile.
        n: length of the other side of a tile, in channels x taps; a multiple of C0.
        k: positions of a K step.
        rows: rows of the strided side in an L1 chunk; a row that is too long is cut into `columns`.
        columns: positions of a row in an L1 chunk.
        batch, m_parts, n_parts: parts that the cores divide the chunks of positions, and both sides of dw, into.
        window: whether L1 holds what all plane taps read, or what the taps of the tile do.
        flush: sums leave the core after each chunk of positions, or when all of a tile is summed.
        l1_a, l1_b: buffers of the strided side and of the other in L1.
        l0c: buffers of sums.
    """

    rule: str
    m: int = Field(ge=1)
    n: int = Field(ge=1)
    k: int = Field(ge=1)
    rows: int = Field(ge=1)
    columns: int = Field(ge=1)
    batch: int = Field(ge=1)
    m_parts: int = Field(ge=1)
    n_parts: int = Field(ge=1)
    window: Literal["kernel", "tile"]
    flush: Literal["chunk", "tile"]
    l1_a: int = Field(ge=1, le=2)
    l1_b: int = Field(ge=1, le=2)
    l0c: int = Field(ge=1, le=2)


class BiasTiling(Tiling):
    """How the bias' gradient is summed.

    Attributes:
        k: positions that are summed at a time.
    """

    k: int = Field(ge=1)


class ProductTiling(Tiling):
    """How a matrix product is computed.

    Attributes:
        m, n, k: an L0 tile.
        chunk: length of K in an L1 chunk, a multiple of k.
        split_k: cores along K, whose sums are added in main memory.
        walk: a core has a run of tiles, row of tiles by row (run); or a block, whose operands stay in L1 (block);
            or each round covers a window of the product, and the tiles of a last round that has fewer than cores are
            divided among all (window).
        l1: buffers of each operand in L1.
        l0c: buffers of sums.
    """

    m: int = Field(ge=1)
    n: int = Field(ge=1)
    k: int = Field(ge=1)
    chunk: int = Field(ge=1)
    split_k: int = Field(ge=1)
    walk: Literal["run", "block", "window"]
    l1: int = Field(ge=1, le=2)
    l0c: int = Field(ge=1, le=2)


T = TypeVar("T", bound=Tiling)


def checked(kind: type[T], values: Mapping[str, object], prefix: str = "") -> T:
    """A tiling from plain values.

    Raises:
        TilingError: a field is unknown, of the wrong type or out of range.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise unusable_tiling(error, kind.model_fields, prefix) from None


def require_multiple(field: str, value: int, of: int) -> None:
    """Refuse a size that the fractals of the chip do not divide.

    Raises:
        TilingError: it is no multiple.
    """
    if value % of:
        raise TilingError(
            "a field of the tiling is not usable", field=field, got=value, limit=f"a multiple of {of}"
        )
