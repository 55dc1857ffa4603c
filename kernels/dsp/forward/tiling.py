"""The tiling of the forward convolution on a DSP: plain, printable, overridable data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, ValidationError

from kernels.dsp.dx.tiling import DxTiling, PanelTiling
from kernels.errors import TilingError, unusable_tiling

RENAMED = {"y_buffers": "dx_buffers", "x_buffers": "dy_buffers"}
"""Fields of the forward convolution, and what the panels that it shares with the input gradient call them."""

HELD = {"x": "dy", "w": "w", "both": "both", "none": "none"}
"""The same of the values of gsm_holds."""


class ForwardTiling(PanelTiling):
    """How conv_forward walks y.

    Attributes:
        split: what the cores divide: images, strips of rows of y, or output channels.
        weights: resident in AM, read from GSM, or streamed from DDR, block by block.
        gsm_holds: what the shared memory keeps: x panels, the weights, both or none.
        images, rows, cols, groups, channels: the panel of y that is complete on the chip before it leaves.
        block_channels, block_taps: output channels of one product, and kernel columns whose x stands side by side.
        k: input channels of one product, for each tap; longer sums are added onto y piece by piece.
        positions: outputs (rows) of one product at most.
        y_buffers, x_buffers: panels of y in AM and of x in GSM at a time.
        ahead: steps by which loads run ahead.
        fp16_accumulate: what fp16 products are summed in.
    """

    gsm_holds: Literal["x", "w", "both", "none"]
    y_buffers: int = Field(2, ge=1, le=2)
    x_buffers: int = Field(2, ge=1, le=2)


def as_panels(given: Mapping[str, object]) -> dict[str, object]:
    """Fields of the forward convolution as those of the panels.

    Raises:
        TilingError: a field is unknown, of the wrong type or out of range.
    """
    filler: dict[str, object] = {
        name: 1 for name, field in ForwardTiling.model_fields.items() if field.is_required()
    }
    filler |= {"split": "batch", "weights": "stream", "gsm_holds": "x"}
    try:
        ForwardTiling.model_validate(
            {**filler, **{k: v for k, v in given.items() if (k, v) != ("split", "auto")}}
        )
    except ValidationError as error:
        raise unusable_tiling(error, ForwardTiling.model_fields) from None
    fields = {RENAMED.get(name, name): value for name, value in given.items()}
    if "gsm_holds" in fields:
        fields["gsm_holds"] = HELD[str(fields["gsm_holds"])]
    return {**fields, "column": "none"}


def renamed(error: TilingError, given: Mapping[str, object]) -> TilingError:
    """A refusal of the panels, in the terms of what was given."""
    names = {theirs: ours for ours, theirs in RENAMED.items()}
    field = names.get(error.field, error.field)
    return TilingError(
        error.what,
        field=field if field in ForwardTiling.model_fields and field in given else next(iter(given), "rows"),
        where=error.where,
        got=dict(given) or "the default",
        limit=error.limit.replace("dy", "x"),
        remedy=error.remedy.replace(" or budget_bytes", ""),
    )


def of_panels(panels: DxTiling) -> ForwardTiling:
    """The tiling of the panels as that of the forward convolution."""
    values: dict[str, object] = panels.model_dump(exclude={"column", "column_place", "budget_bytes"})
    for ours, theirs in RENAMED.items():
        values[ours] = values.pop(theirs)
    values["gsm_holds"] = next(ours for ours, theirs in HELD.items() if theirs == values["gsm_holds"])
    return ForwardTiling.model_validate(values)
