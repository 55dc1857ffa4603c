"""Layers as a CSV table of our own: one row a convolution, the columns of its geometry on the axes D, H, W."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernels.shape.shapes import ConvShape, transposed_padding
from tilesim.networks.layers import NetworkError
from tilesim.networks.tables import Row, check_columns, rows, shapes

AXES = "DHW"
SIDES = {"D": ("pad_front", "pad_back"), "H": ("pad_top", "pad_bottom"), "W": ("pad_left", "pad_right")}
TEXTS = ("id", "source", "layer", "note")
REQUIRED = ("Cin", "W", "Cout", "Kw")
COLUMNS = (
    *("id", "source", "layer", "ndim", "N", "Cin", "D", "H", "W", "Cout", "Kd", "Kh", "Kw"),
    *("stride_d", "stride_h", "stride_w", "pad_front", "pad_back", "pad_top", "pad_bottom"),
    *("pad_left", "pad_right", "dil_d", "dil_h", "dil_w", "groups", "transposed", "Do", "Ho", "Wo", "note"),
)


def read_own(
    path: Path, header: tuple[int, list[str]], lines: Sequence[tuple[int, list[str]]], batch: int | None
) -> list[tuple[str, ConvShape]]:
    """Names and geometries of the rows; `batch`, if given, stands for N.

    Raises:
        NetworkError: a column, a cell or a geometry is not usable.
    """
    check_columns(f"{path.name}:{header[0]}", header[1], COLUMNS, REQUIRED)
    found = shapes(rows(path, header[1], lines), TEXTS, lambda row: _shape(row, batch))
    return [
        (row.text("layer") or row.text("id") or f"layer {place}", shape)
        for place, (row, shape) in enumerate(found, 1)
    ]


def _shape(row: Row, batch: int | None) -> ConvShape:
    used = _axes(row)
    stride, dilation = (
        [row.number(f"{word}_{axis.lower()}", 1) for axis in used] for word in ("stride", "dil")
    )
    transposed = row.number("transposed", 0)
    if transposed not in (0, 1):
        raise NetworkError("transposed is 0 or 1", where=row.where, got=transposed)
    lows, highs = zip(*[[row.number(side, 0) for side in SIDES[axis]] for axis in used], strict=True)
    padding, extra = tuple(zip(lows, highs, strict=True)), (0,) * len(used)
    if transposed:
        padding, extra = transposed_padding(lows, highs, stride, dilation)
    shape = ConvShape(
        n=row.number("N", batch) if batch is None else batch,
        cin=row.number("Cin"),
        size=[row.number(axis) for axis in used],
        cout=row.number("Cout"),
        kernel=[row.number(f"K{axis.lower()}") for axis in used],
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=row.number("groups", 1),
        transposed=bool(transposed),
        output_padding=extra,
    )
    _check_output(row, used, shape)
    return shape


def _axes(row: Row) -> str:
    """The spatial axes of a row: the last `ndim`, else W and those before it that have a size or a kernel."""
    there = [axis for axis in AXES[:2] if row.text(axis) or row.text(f"K{axis.lower()}")]
    ndim = row.number("ndim", 3 - AXES.index(there[0]) if there else 1)
    if not 1 <= ndim <= 3:
        raise NetworkError("ndim is 1, 2 or 3", where=row.where, got=ndim)
    used = AXES[3 - ndim :]
    for axis in AXES[: 3 - ndim]:
        for column in (axis, f"K{axis.lower()}"):
            if row.number(column, 1) != 1:
                what = f"column {column} of an axis that ndim leaves out"
                raise NetworkError(what, where=row.where, got=row.text(column), limit="1, or empty")
    return used


def _check_output(row: Row, used: str, shape: ConvShape) -> None:
    """Refuse an output size, where one is given, that is not what the geometry makes."""
    for axis, made in zip(used, shape.out, strict=True):
        column = f"{axis}o"
        if row.number(column, made) != made:
            what = f"{column} is not what the geometry makes"
            raise NetworkError(what, where=row.where, got=row.text(column), limit=made)
