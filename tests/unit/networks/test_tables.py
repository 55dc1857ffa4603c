"""CSV tables of layers: our own columns, SCALE-Sim's topologies, and what is refused with its line."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import tilesim
from kernels.shape.shapes import ConvShape
from tests.case_table import FOLDER, LAYER_TABLES, load_cases, load_refusals
from tilesim.networks.layers import NetworkError
from tilesim.networks.reading import read_network

OWN = "layer,N,Cin,H,W,Cout,Kh,Kw,stride_h,stride_w,pad_top,pad_bottom,pad_left,pad_right\n"
SCALE = "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n"


def shapes(folder: Path, text: str, batch: int | None = None) -> list[ConvShape]:
    """The geometries of a table."""
    path = folder / "layers.csv"
    path.write_text(text, encoding="utf-8")
    return [layer.shape for layer in read_network(path, batch).layers]


def refused(folder: Path, text: str, *words: str, batch: int | None = None) -> None:
    """See that a table is refused with these words, in one line."""
    with pytest.raises(NetworkError) as caught:
        shapes(folder, text, batch)
    said = str(caught.value)
    assert "\n" not in said
    assert not [word for word in words if word not in said], said


@pytest.mark.parametrize("table", LAYER_TABLES)
def test_a_table_of_cases_gives_the_cases(table: str) -> None:
    """Every layer of the case tables, of any rank, transposed or not, has the geometry that the tests take from it."""
    if load_refusals(table):
        with pytest.raises(NetworkError, match=f"{table}.csv:"):
            read_network(FOLDER / f"{table}.csv")
        return
    layers = read_network(FOLDER / f"{table}.csv").layers
    cases = load_cases(table)
    assert [layer.shape for layer in layers] == [case.shape for case in cases]
    assert [layer.name for layer in layers] == [case.layer or case.id for case in cases]


def test_columns_have_defaults(tmp_path: Path) -> None:
    """Sizes of one axis, stride 1, no pads; N is the batch that is asked for."""
    text = "Cin,W,Cout,Kw\n8,32,16,3\n"
    assert shapes(tmp_path, text, batch=4) == [ConvShape(4, 8, (32,), 16, (3,))]


def test_a_batch_stands_for_that_of_the_table(tmp_path: Path) -> None:
    """As with a model that says one."""
    text = OWN + "a,2,3,8,8,4,3,3,2,1,1,0,1,1\n"
    expected = ConvShape(2, 3, (8, 8), 4, (3, 3), (2, 1), ((1, 0), (1, 1)))
    assert shapes(tmp_path, text) == [expected]
    assert [shape.n for shape in shapes(tmp_path, text, batch=7)] == [7]


def test_a_layer_reads_what_the_row_before_makes(tmp_path: Path) -> None:
    """Where the sizes fit; the first one reads the network's input."""
    path = tmp_path / "layers.csv"
    rows = ("a,1,3,8,8,4,3,3", "b,1,4,6,6,8,1,1", "c,1,4,6,6,8,1,1")
    path.write_text("layer,N,Cin,H,W,Cout,Kh,Kw\n" + "\n".join(rows), encoding="utf-8")
    layers = read_network(path).layers
    assert [(each.reads == before.writes) for before, each in pairwise(layers)] == [
        True,
        False,
    ]
    assert [layer.first for layer in layers] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("layer,N,Cin,H,W,Kh,Kw\na,1,3,8,8,3,3\n", ("no column Cout", "layers.csv:1")),
        ("layer,N,Cin,H,W,Cout,Kh,Kw,strides\n", ("without layers",)),
        (
            "layer,N,Cin,H,W,Cout,Kh,Kw,stride_w,stride\na,1,3,8,8,4,3,3,1,1\n",
            ("unknown column", "stride", "did you mean"),
        ),
        ("layer,N,Cin,W,W,Cout,Kw\na,1,3,8,8,4,3\n", ("a column comes twice", "W")),
        (
            OWN + "a,1,3,8,8,4,3,3,1,1,1,1,1,1\nb,1,nan,8,8,4,3,3,1,1,1,1,1,1\n",
            ("layers.csv:3", "Cin", "nan"),
        ),
        (OWN + "a,1,3,8.0,8,4,3,3,1,1,1,1,1,1\n", ("layers.csv:2", "column H", "8.0")),
        (OWN + "a,1,3,8,8,4,3,3,-1,1,1,1,1,1\n", ("layers.csv:2", "stride must be positive", "-1")),
        (OWN + "a,1,3,8,8,4,3,3,1,1,-1,1,1,1\n", ("layers.csv:2", "padding must not be negative")),
        (OWN + "a,1,3,8,8,,3,3,1,1,1,1,1,1\n", ("layers.csv:2", "an empty cell in column Cout")),
        (OWN + "a,1,3,8,8,4,3,3,1,1,1,1,1,1,9\n", ("layers.csv:2", "cell 15", "9")),
        (OWN + "a,1,3,8,8,4,3,3,1,1,1,1,1," + "9" * 5000 + "\n", ("layers.csv:2", "pad_right")),
        ("N,ndim,Cin,H,W,Cout,Kw\n1,2,3,8,8,4,3\n", ("layers.csv:2", "column Kh")),
        (
            "layer,N,ndim,Cin,D,H,W,Cout,Kh,Kw\na,1,2,3,5,8,8,4,3,3\n",
            ("layers.csv:2", "column D", "ndim leaves out"),
        ),
        ("N,Cin,W,Cout,Kw,transposed\n1,3,8,4,3,2\n", ("layers.csv:2", "transposed is 0 or 1")),
        (
            "N,Cin,W,Cout,Kw,Wo\n1,3,8,4,3,7\n",
            ("layers.csv:2", "Wo is not what the geometry makes", "limit 6"),
        ),
        ("N,Cin,W,Cout,Kw,groups\n1,3,8,4,3,2\n", ("layers.csv:2", "groups must divide cin")),
        ("Cin,W,Cout,Kw\n3,8,4,3\n", ("layers.csv:2", "no column N", "--batch")),
        ("", ("without layers",)),
        ('a,b\n"c,d\n', ("not a CSV table",)),
        ("a,b\n\x00,d\n", ("unknown column", "a")),
    ],
)
def test_a_table_that_cannot_be_is_refused(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    """With the file, the line, the column and what is in it."""
    refused(tmp_path, text, *words)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    """As any other file that is no table."""
    (tmp_path / "layers.csv").write_bytes(b"layer,\xff\xfe\n")
    with pytest.raises(NetworkError, match="not a CSV table in UTF-8"):
        read_network(tmp_path / "layers.csv")


def test_a_topology_of_scale_sim(tmp_path: Path) -> None:
    """Trailing commas, empty rows, remarks behind the last column, tabs; padding is in the input already."""
    text = (
        SCALE
        + "\nConv1, 224, 224, 7, 7, 3, 64, 2,\n,,,,,,,,\n\tConv2_dw,14,14,3,3,1,1,1,#dw\nFC,1,1,1,1,1024,1000,1"
    )
    expected = [
        ConvShape(1, 3, (224, 224), 64, (7, 7), 2),
        ConvShape(1, 1, (14, 14), 1, (3, 3)),
        ConvShape(1, 1024, (1, 1), 1000, (1, 1)),
    ]
    assert shapes(tmp_path, text) == expected
    assert [shape.n for shape in shapes(tmp_path, text, batch=16)] == [16] * 3


def test_newer_topologies(tmp_path: Path) -> None:
    """Two strides; a depthwise row (DP) has its filters for each channel; dense weights in the last column."""
    header = SCALE.replace("Strides", "Stride height, Stride width").lower()
    assert shapes(tmp_path, f"{header}c,9,8,3,2,4,8,2,1,\nDP1,9,9,3,3,32,1,1,1,\n") == [
        ConvShape(1, 4, (9, 8), 8, (3, 2), (2, 1)),
        ConvShape(1, 32, (9, 9), 32, (3, 3), groups=32),
    ]
    sparse = SCALE.rstrip().rstrip(",") + ", Sparsity,\n"
    assert shapes(tmp_path, sparse + "c,9,9,3,3,4,8,1,4:4,\n") == [ConvShape(1, 4, (9, 9), 8, (3, 3))]
    refused(tmp_path, sparse + "c,9,9,3,3,4,8,1,2:4,\n", "sparse weights", "2:4", "layers.csv:2")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SCALE.replace(" Channels,", "") + "c,9,9,3,3,8,1,\n", ("no column channels",)),
        (SCALE.replace(" Strides,", "") + "c,9,9,3,3,4,8,\n", ("no column Strides",)),
        (SCALE + "c,9,9,3,3,4,nan,1,\n", ("layers.csv:2", "num filter", "nan")),
        (SCALE + "c,9,9,3,3,4,8,-1,\n", ("layers.csv:2", "stride must be positive")),
        (SCALE + "c,9,9,11,3,4,8,1,\n", ("layers.csv:2", "larger than its input")),
        (SCALE.rstrip() + ",,Eh\nc,9,9,3,3,4,8,1,,,7\n", ("unknown column", "eh")),
        ("Layer, M, N, K,\ng,8,8,8,\n", ("matrix products", "tilesim run gemm")),
    ],
)
def test_a_topology_that_cannot_be_is_refused(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    """As our own tables."""
    refused(tmp_path, text, *words)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hundred_thousand_rows(tmp_path: Path) -> None:
    """Equal rows share one geometry and are simulated once; every row is in the record, and equal ones share a bar."""
    rows = (f"l{i},1,{16 * (i % 3 + 1)},8,8,16,3,3,1,1,1,1,1,1" for i in range(100_000))
    found = shapes(tmp_path, OWN + "\n".join(rows))
    assert len(found) == 100_000
    assert len({id(shape) for shape in found}) == 3
    times = tilesim.network(tmp_path / "layers.csv")
    assert len(times.targets[0].distinct) == 4
    times.save(tmp_path / "out")
    with (tmp_path / "out" / "network.csv").open(encoding="utf-8") as file:
        assert sum(1 for _ in file) == 100_001
