"""Layers as SCALE-Sim's topology files have them: a convolution of two axes a row, padding counted in the input.

The format is that of SCALE-Sim v2 and v3 (scalesim/topology_utils.py): a name; height and width of input and filter;
channels; filters; one stride, or one an axis. A row whose name has «DP» in it is depthwise: so many filters for each
channel. The last column of v3 says how many of a block's weights are not zero; sparse weights are not modelled.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kernels.shape.shapes import ConvShape
from tilesim.networks.layers import NetworkError
from tilesim.networks.tables import Row, check_columns, rows, shapes

REQUIRED = (
    *("layer name", "ifmap height", "ifmap width", "filter height", "filter width"),
    *("channels", "num filter"),
)
COLUMNS = (*REQUIRED, "stride", "stride height", "stride width", "sparsity")
DEPTHWISE = "DP"


def is_topology(header: Sequence[str]) -> bool:
    """Whether a header is SCALE-Sim's: of convolutions or of matrix products."""
    columns = [_column(cell) for cell in header]
    return (
        "ifmap height" in columns
        or columns[:4] == ["layer name", "m", "n", "k"]
        or columns[:3] == ["m", "n", "k"]
    )


def read_topology(
    path: Path, header: tuple[int, list[str]], lines: Sequence[tuple[int, list[str]]], batch: int | None
) -> list[tuple[str, ConvShape]]:
    """Names and geometries of the rows; the format has no batch, so that it is 1 where none is given.

    Raises:
        NetworkError: a column, a cell or a geometry is not usable.
    """
    where = f"{path.name}:{header[0]}"
    columns = [_column(cell) for cell in header[1]]
    if "m" in columns:
        remedy = "tilesim run gemm --shape m=..,n=..,k=.. takes one of them"
        raise NetworkError("a topology of matrix products, not of convolutions", where=where, remedy=remedy)
    check_columns(where, columns, COLUMNS, REQUIRED)
    if "stride" not in columns and not {"stride height", "stride width"} <= set(columns):
        raise NetworkError("no column Strides", where=where, got=", ".join(filter(None, header[1])))
    texts = () if any(DEPTHWISE in name for _, (name, *_) in lines) else ("layer name",)
    found = shapes(rows(path, columns, lines), texts, lambda row: _shape(row, batch or 1))
    return [(row.text("layer name") or row.where, shape) for row, shape in found]


def _column(cell: str) -> str:
    """A heading in small letters, single spaces, and one spelling."""
    text = re.sub(r"[\s_]+", " ", cell).strip().lower()
    text = re.sub(r"\bstrides\b", "stride", text).replace("num filters", "num filter")
    return {"layer": "layer name", "sparsity support": "sparsity"}.get(text, text)


def _shape(row: Row, batch: int) -> ConvShape:
    _require_dense(row)
    channels, filters = row.number("channels"), row.number("num filter")
    depthwise = DEPTHWISE in row.text("layer name")
    both = row.number("stride") if row.text("stride") else None
    shape = ConvShape(
        n=batch,
        cin=channels,
        size=(row.number("ifmap height"), row.number("ifmap width")),
        cout=channels * filters if depthwise else filters,
        kernel=(row.number("filter height"), row.number("filter width")),
        stride=(row.number("stride height", both), row.number("stride width", both)),
        groups=channels if depthwise else 1,
    )
    if 0 in shape.out:
        raise NetworkError("a filter that is larger than its input", where=row.where)
    return shape


def _require_dense(row: Row) -> None:
    """Refuse a row with sparse weights: so many of every so many."""
    text = row.text("sparsity")
    kept, colon, of = (part.strip() for part in text.partition(":"))
    if text and not (colon and kept.isdigit() and kept == of):
        remedy = "leave the column out to time the dense layer"
        raise NetworkError("sparse weights are not modelled", where=row.where, got=text, remedy=remedy)
