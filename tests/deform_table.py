"""Rows of `tests/cases/deform.csv` (and those of bug reports) as geometries and operands."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape
from tests.case_table import load_cases

Array = NDArray[np.float64]
SMALL = 2**12
"""Sampling points times channels of a row that quick tests run."""


FILTERS = np.array(
    [
        [0.1, 0.4, 0.6, 0.1], [0.3, 0.2, 0.1, 0.3], [0.5, 0.5, 0.2, 0.8], [0.8, 0.3, 0.9, 0.1],
        [0.3, 0.1, 0.2, 0.5], [0.3, 0.7, 0.5, 0.3], [0.6, 0.2, 0.5, 0.3], [0.4, 0.1, 0.8, 0.4],
    ]
).reshape(8, 1, 2, 2)  # fmt: skip
BIASES = np.array([0.7, 0.1, 0.8, 0.5, 0.6, 0.5, 0.4, 0.7])
"""Of the convolution that makes the offsets of D_008 and D_009."""


@dataclass(frozen=True)
class DeformCase:
    """One row: `offsets` and `expected` are its words."""

    id: str
    dtype: str
    shape: DeformShape
    out: tuple[int, int]
    offsets: str
    expected: str

    @property
    def work(self) -> int:
        """Sampling points times channels."""
        conv = self.shape.conv
        return conv.n * conv.out[0] * conv.out[1] * conv.taps * conv.cin


def deform_cases() -> list[DeformCase]:
    """Return every row; the one that asks for a refusal has a legal geometry with another offset."""
    with (Path(__file__).parent / "cases" / "deform.csv").open(newline="", encoding="utf-8") as file:
        return [_case(row) for row in csv.DictReader(file)]


def reported_cases() -> list[DeformCase]:
    """Return the deformable rows of the bug reports."""
    found = []
    for case in load_cases("bugs_open"):
        if case.op.startswith("deform_"):
            version, _, groups = case.op.partition("(dg=")
            shape = DeformShape(case.shape, int(groups.rstrip(")")), version.endswith("v2"))
            rows, columns = case.shape.out
            found.append(DeformCase(case.id, case.dtype, shape, (rows, columns), "normal(0,1)", case.note))
    return found


def _case(row: dict[str, str]) -> DeformCase:
    number = {name: int(row[name]) for name in row if row[name].lstrip("-").isdigit()}
    conv = ConvShape(
        n=number["N"],
        cin=number["Cin"],
        size=(number["H"], number["W"]),
        cout=number["Cout"],
        kernel=(number["Kh"], number["Kw"]),
        stride=(number["stride_h"], number["stride_w"]),
        padding=((number["pad_top"], number["pad_bottom"]), (number["pad_left"], number["pad_right"])),
        dilation=(number["dil_h"], number["dil_w"]),
        groups=number["groups"],
    )
    shape = DeformShape(conv, number["deform_groups"], row["has_mask"] == "1")
    out = (number["Ho"], number["Wo"])
    return DeformCase(row["id"], row["dtype"].split("/")[0], shape, out, row["offsets"], row["expected"])


def operands(shape: DeformShape, seed: int = 0, *, spread: float = 1.0) -> dict[str, Any]:
    """Normal operands; offsets in steps of 2^-10, so that points are exact in fp32; the mask lies in (0, 1)."""
    rng = np.random.default_rng(seed)
    conv = shape.conv
    made = {
        "dy": rng.standard_normal(conv.dy_shape),
        "w": rng.standard_normal(conv.w_shape),
        "x": rng.standard_normal(conv.x_shape),
        "offset": np.round(spread * rng.standard_normal(shape.offset_shape) * 1024) / 1024,
    }
    return {**made, "mask": rng.uniform(0, 1, shape.mask_shape)} if shape.masked else made


def placed(shape: DeformShape, row: float, column: float = 0.0) -> Array:
    """Offsets that put every tap at one row, and `column` beside where it is."""
    conv, found = shape.conv, np.zeros(shape.offset_shape)
    top = conv.padding[0][0]
    i = np.arange(conv.out[0])[:, None] * conv.stride[0] - top
    for point in range(shape.points):
        a = point % conv.taps // conv.kernel[1]
        found[:, 2 * point] = row - (i + a * conv.dilation[0])
        found[:, 2 * point + 1] = column
    return found


def integers(shape: DeformShape, seed: int = 3) -> dict[str, Any]:
    """Return small whole operands, offsets of zero, a mask of ones."""
    rng = np.random.default_rng(seed)
    sizes = {"dy": shape.conv.dy_shape, "w": shape.conv.w_shape, "x": shape.conv.x_shape}
    made: dict[str, Any] = {n: rng.integers(-4, 5, size).astype(np.float32) for n, size in sizes.items()}
    made["offset"] = np.zeros(shape.offset_shape, np.float32)
    return {**made, "mask": np.ones(shape.mask_shape, np.float32)} if shape.masked else made


def part(shape: DeformShape, most: int = 8) -> DeformShape:
    """Return one image of a geometry with at most so many rows and columns: all channels, taps and groups of it."""
    c = shape.conv
    size = [min(extent, most) for extent in c.size]
    conv = ConvShape(1, c.cin, size, c.cout, c.kernel, c.stride, c.padding, c.dilation, c.groups)
    return DeformShape(conv, shape.deform_groups, shape.masked)
