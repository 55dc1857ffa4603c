"""`tilesim.sweep` of a small product and a small layer: tables, refusals, who runs the points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilesim as ts
from kernels.shape.shapes import ConvShape
from reports.sweeps.table import SweepTable
from tilesim.sweeps.costs import onchip_bytes
from tilesim.sweeps.errors import SweepError

GEMM: dict[str, Any] = {"target": "mt7004", "shape": "m=64,n=64,k=64"}
LAYER: dict[str, Any] = {
    "target": "mt7004",
    "shape": "n=1,cin=16,h=6,w=6,cout=16,kh=3,kw=3,pad=1",
    "grads": ("dx",),
}
DDR = "link.ddr.gigabytes_per_second"


def test_a_row_has_the_figures_of_a_run() -> None:
    """Those of the same call, made by itself."""
    table = ts.sweep("conv_backward", **LAYER, vary={"cores": [1, 2], DDR: [12.8], "tile.k": [8, 16]})
    assert len(table) == 4
    for row in table.done:
        chip = ts.load_target("mt7004", {DDR: row[DDR]})
        shape = ConvShape(n=1, cin=16, size=(6, 6), cout=16, kernel=(3, 3), padding=1)
        run = ts.conv_backward(
            shape=shape,
            grads=("dx",),
            target=chip,
            cores=row["cores"],
            tiling={"k": row["tile.k"]},
            numerics=False,
        )
        assert (row["cycles"], row["time_ms"], row["gflops"]) == (
            run.cycles,
            run.time_us / 1e3,
            run.achieved_gflops,
        )
        assert row["share_of_peak"] == run.achieved_gflops / run.peak_gflops
        assert row["bound_text"].startswith(f"{row['bound']} is busy")
        moved = run.metrics.traffic_bytes["ddr"]
        assert row["bytes.ddr"] == moved["read"] + moved["write"]
        assert row["cost.mac_lanes"] == run.peak_flops_per_cycle / 2
        assert row["cost.ddr_gbs"] == pytest.approx(12.8 * 0.94)


def test_memory_is_counted_once_for_each_core_that_has_it() -> None:
    """SM and AM of each core, GSM once, DDR not; on split chips by kind, with the cache."""
    chip = ts.load_target("mt7004")
    size = {name: spec.size_bytes for name, spec in chip.memory.items()}
    assert onchip_bytes(chip, 3) == 3 * (size["sm"] + size["am"]) + size["gsm"]
    split = ts.load_target("ascend910b1")
    per_group = sum(
        spec.size_bytes * sum(spec.of_kind(unit.kind) for unit in split.units([0]))
        for spec in split.memory.values()
        if spec.scope == "core"
    )
    assert onchip_bytes(split, 2) == 2 * per_group + split.cache["gm"].size_bytes


def test_shapes_types_and_groups_are_varied() -> None:
    """More work takes longer, more cores than the chip has by making it larger."""
    table = ts.sweep("gemm", **GEMM, vary={"shape.m": [64, 128], "groups": [4, 8], "dtype": ["fp16", "fp32"]})
    cycles = {(row["shape.m"], row["groups"], row["dtype"]): row["cycles"] for row in table.done}
    assert len(cycles) == 8
    assert cycles[128, 4, "fp32"] > cycles[64, 4, "fp32"]
    assert {row["cost.mac_lanes"] / row["groups"] for row in table.done if row["dtype"] == "fp32"} == {96}


def test_a_value_that_is_refused_is_a_failed_point() -> None:
    """Its row says why, and the others are run."""
    table = ts.sweep(
        "gemm", **GEMM, vary={"cores": [1, 5], "memory.am.size_bytes": [786432, -1], "dtype": ["fp32", "fp9"]}
    )
    assert [(row["cores"], row["memory.am.size_bytes"], row["dtype"]) for row in table.done] == [
        (1, 786432, "fp32")
    ]
    assert {row["status"] for row in table.failed} == {"refused"}
    assert "got 5, limit 1 to 4" in table.failed[3]["error"]
    assert "got -1" in table.failed[-1]["error"]
    assert "time_ms" not in table.failed[0]


def test_a_fault_of_ours_is_a_failed_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that is no refusal does not end the sweep either."""

    def fail(*_: object, **given: Any) -> None:
        raise ZeroDivisionError(f"cores {given['cores']}")

    monkeypatch.setattr("tilesim.sweeps.work.run_operator", fail)
    table = ts.sweep("gemm", **GEMM, vary={"cores": [1, 2]})
    assert [(row["status"], row["error"]) for row in table.rows] == [
        ("fault", "ZeroDivisionError: cores 1"),
        ("fault", "ZeroDivisionError: cores 2"),
    ]


@pytest.mark.parametrize(
    ("field", "remedy"),
    [
        ("corse", "did you mean cores?"),
        ("memory.am.size", "memory.am.size_bytes"),
        ("link.ddr.rate_gbs", "link.ddr.gigabytes_per_second"),
        ("shape.cinn", "shape.cin"),
        ("tile.rowz", "did you mean tile.rows"),
        ("tile.dw.kk", "did you mean tile.dw.k"),
        ("qqqqqqqq", "shape.KEY, tile.KEY"),
    ],
)
def test_an_unknown_field_is_refused_with_the_nearest(field: str, remedy: str) -> None:
    """Before anything runs."""
    layer = {name: value for name, value in LAYER.items() if name != "grads"}
    with pytest.raises(SweepError, match="unknown field") as refusal:
        ts.sweep("conv_backward", **layer, vary={field: [1, 2]})
    assert field in str(refusal.value)
    assert remedy in str(refusal.value)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"operator": "gem"}, "unknown operator.*gemm"),
        ({"operator": "conv2d_backward_fast"}, "does not run on this family"),
        ({"target": "mt704"}, "unknown target.*mt7004"),
        ({"cores": 2}, "both fixed and varied.*cores"),
        ({"overrides": {"groups": 3}, "vary": {"groups": [4]}}, "both fixed and varied.*groups"),
        ({"tiling": {"k": 3}, "vary": {"tile.k": [4]}}, "both fixed and varied.*tile.k"),
        ({"shape": (8, 8, 8), "vary": {"shape.m": [4]}}, "a shape without keys"),
        ({"workers": 0}, "no workers"),
    ],
)
def test_an_argument_that_cannot_be_is_refused(given: dict[str, Any], match: str) -> None:
    """Before anything runs."""
    operator, arguments = given.get("operator", "gemm"), {"vary": {"cores": [1]}, **GEMM, **given}
    arguments.pop("operator", None)
    with pytest.raises(ts.TilesimError, match=match):
        ts.sweep(operator, **arguments)


def test_a_table_survives_its_file(tmp_path: Path) -> None:
    """Rows, varied fields and the call; a resumed sweep runs nothing and returns the same."""
    path = tmp_path / "deep" / "a.parquet"
    vary: dict[str, Any] = {"cores": [1, 2, 5], DDR: "10:20:3", "dtype": ["fp16", "fp32"]}
    table = ts.sweep("gemm", **GEMM, vary=vary, out=path)
    read = SweepTable.read(path)
    assert (read.rows, read.varied, read.call) == (table.rows, table.varied, table.call)
    told: list[int] = []
    again = ts.sweep("gemm", **GEMM, vary=vary, out=path, on_row=lambda done, *_: told.append(done))
    assert not told
    assert again.rows == table.rows
    frame = table.to_pandas()
    assert list(frame.columns)[:5] == ["point", "key", "cores", DDR, "dtype"]
    assert frame["cores"].dtype == "int64"
    assert list(frame.columns)[-1] == "seconds"
