"""The tiling of the input gradient on a DSP: plain, printable, overridable data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernels.errors import TilingError, unusable_tiling

Split = Literal["batch", "rows", "channels"]


class PanelTiling(BaseModel):
    """What every convolution by panels is walked with; the attributes are told by the tilings of dx and of y."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    split: Split
    weights: Literal["am", "gsm", "stream"]
    images: int = Field(ge=1)
    rows: int = Field(ge=1)
    cols: int = Field(ge=1)
    groups: int = Field(ge=1)
    channels: int = Field(ge=1)
    block_channels: int = Field(ge=1)
    block_taps: int = Field(ge=1)
    k: int = Field(ge=1)
    positions: int = Field(ge=1)
    ahead: int = Field(1, ge=0, le=8)
    fp16_accumulate: Literal["fp32", "fp16"] = "fp32"


class DxTiling(PanelTiling):
    """How conv_backward walks dx.

    Attributes:
        split: what the cores divide: images, strips of dx rows, or input channels.
        column: what a half of the column buffer holds: whole column rows (all taps and all channels of a group),
            blocks of columns, or nothing (products are added straight onto dx).
        column_place: where columns wait: in AM, or out and back in a workspace in DDR.
        budget_bytes: the column buffer's two halves together.
        weights: resident in AM, read from GSM, or streamed from DDR, block by block.
        gsm_holds: what the shared memory keeps: dy panels, the weights, both or none.
        images, rows, cols, groups, channels: the panel of dx that is complete on the chip before it leaves.
        block_channels, block_taps: channels and kernel columns of one block of columns.
        k: output channels of one product; longer sums are added onto dx piece by piece.
        positions: outputs (rows) of one product at most.
        dx_buffers, dy_buffers: panels of dx in AM and of dy in GSM at a time.
        ahead: steps by which loads run ahead.
        fp16_accumulate: what fp16 products are summed in.
    """

    column: Literal["rows", "blocks", "none"] = "blocks"
    column_place: Literal["am", "workspace"] = "am"
    budget_bytes: int = Field(0x10000, ge=8)
    gsm_holds: Literal["dy", "w", "both", "none"]
    dx_buffers: int = Field(2, ge=1, le=2)
    dy_buffers: int = Field(2, ge=1, le=2)

    @property
    def dy_in_gsm(self) -> bool:
        """Whether panels of dy are kept in GSM."""
        return self.gsm_holds in ("dy", "both")

    @property
    def w_in_gsm(self) -> bool:
        """Whether the weights are kept in GSM."""
        return self.gsm_holds in ("w", "both")


def checked(values: Mapping[str, object]) -> DxTiling:
    """A tiling from plain values.

    Raises:
        TilingError: a field is unknown, of the wrong type or out of range, or two contradict each other.
    """
    try:
        tiling = DxTiling.model_validate(values)
    except ValidationError as error:
        raise unusable_tiling(error, DxTiling.model_fields) from None
    if (tiling.weights == "gsm") != tiling.w_in_gsm:
        raise TilingError(
            "two fields of the tiling contradict each other",
            field="gsm_holds",
            got=f"weights={tiling.weights}, gsm_holds={tiling.gsm_holds}",
            limit="weights=gsm together with gsm_holds=w or both",
        )
    return tiling
