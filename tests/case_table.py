"""Case tables as geometries: layers of networks, edge cases of other libraries' tests, public bug reports.

Each row of `tests/cases/*.csv` becomes a `Case`, or a refusal where its geometry cannot be.
"""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernels.errors import ShapeError
from kernels.shape.checks import PadPairs
from kernels.shape.shapes import ConvShape, transposed_padding

FOLDER = Path(__file__).parent / "cases"
LAYER_TABLES = ("networks", "edge_shapes", "edge_regressions", "conv3d", "pytorch_samples", "torch_npu_cases")
TABLES = (*LAYER_TABLES, "bugs_open")
SIDES = (("pad_front", "pad_back"), ("pad_top", "pad_bottom"), ("pad_left", "pad_right"))
DTYPES = {"f32": "fp32", "f16": "fp16", "bf16": "bf16"}


@dataclass(frozen=True)
class Case:
    """One row: `out` and `pads` are what the table says of the three axes D, H, W (empty in `bugs_open`).

    `layer` is its name in a network.
    """

    id: str
    table: str
    op: str
    dtype: str
    shape: ConvShape
    out: tuple[int, ...]
    pads: PadPairs
    note: str
    layer: str = ""


def load_cases(table: str) -> list[Case]:
    """Return the rows of a table whose geometry is legal."""
    return list(_load(table)[0])


def load_refusals(table: str) -> dict[str, ShapeError]:
    """Return the refusal of each row whose geometry is not legal, by id."""
    return dict(_load(table)[1])


@cache
def _load(table: str) -> tuple[tuple[Case, ...], Mapping[str, ShapeError]]:
    case_of = _bug_case if table == "bugs_open" else _layer_case
    cases, refusals = [], {}
    with (FOLDER / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            try:
                cases.append(case_of(table, row))
            except ShapeError as error:
                refusals[row["id"]] = error
    return tuple(cases), refusals


def _layer_case(table: str, row: Mapping[str, str]) -> Case:
    pads = tuple((int(row[low]), int(row[high])) for low, high in SIDES)
    dtype = re.search(r"\b(?:dt|dtype) (\w+)", row["note"])
    return Case(
        id=row["id"],
        table=table,
        op="all",
        dtype=DTYPES.get(dtype[1], dtype[1]) if dtype else "fp32",
        shape=_layer_shape(row, pads),
        out=_numbers(row, "Do", "Ho", "Wo"),
        pads=pads,
        note=row["note"],
        layer=row["layer"],
    )


def _layer_shape(row: Mapping[str, str], pads: PadPairs) -> ConvShape:
    used = slice(3 - int(row["ndim"]), 3)
    stride = _numbers(row, "stride_d", "stride_h", "stride_w")[used]
    dilation = _numbers(row, "dil_d", "dil_h", "dil_w")[used]
    padding, extra = pads[used], (0,) * int(row["ndim"])
    if row["transposed"] == "1":
        lows, highs = zip(*padding, strict=True)
        padding, extra = transposed_padding(lows, highs, stride, dilation)
    return ConvShape(
        n=int(row["N"]),
        cin=int(row["Cin"]),
        size=_numbers(row, "D", "H", "W")[used],
        cout=int(row["Cout"]),
        kernel=_numbers(row, "Kd", "Kh", "Kw")[used],
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=int(row["groups"]),
        transposed=row["transposed"] == "1",
        output_padding=extra,
    )


def _bug_case(table: str, row: Mapping[str, str]) -> Case:
    used = [axis for axis in "DHW" if row[axis]]
    shape = ConvShape(
        n=int(row["N"]),
        cin=int(row["Cin"]),
        size=[int(row[axis]) for axis in used],
        cout=int(row["Cout"]),
        kernel=[int(row["K" + axis.lower()]) for axis in used],
        stride=[int(word) for word in row["stride"].split(",")],
        padding=[pad_pair(word) for word in row["pad"].split(",")],
        dilation=[int(word) for word in row["dilation"].split(",")],
        groups=int(row["groups"]),
        transposed=row["transposed"] == "1",
        output_padding=[int(word) for word in row["output_padding"].split(",")]
        if row["output_padding"]
        else 0,
    )
    return Case(row["id"], table, row["op"], row["dtype"], shape, (), (), row["what_must_hold"])


def pad_pair(word: str) -> tuple[int, int]:
    """Return the pads of one axis: `9+4` is low 9, high 4, `1` is 1 on both sides."""
    low, plus, high = word.partition("+")
    return int(low), int(high if plus else low)


def _numbers(row: Mapping[str, str], *columns: str) -> tuple[int, ...]:
    return tuple(int(row[column]) for column in columns)
