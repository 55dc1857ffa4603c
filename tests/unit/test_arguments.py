"""What the calls from Python take: targets and shapes by name and text, and the refusal of what is neither."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilesim as ts

SIZES = {"m": 64, "n": 32, "k": 16}
CONV = "n=1,cin=4,h=6,w=6,cout=4,kh=3,kw=3,pad=1"
GEOMETRY = ts.ConvShape(n=1, cin=4, size=(6, 6), cout=4, kernel=(3, 3), padding=1)


def run(shape: Any, target: Any = "mt7004", operator: str = "gemm", **more: Any) -> ts.Run:
    """A run, timed only."""
    return ts.run_operator(operator, shape=shape, target=target, numerics=False, check=False, **more)


def sweep(**changed: Any) -> ts.SweepTable:
    """A sweep of a small product over cores."""
    return ts.sweep("gemm", **({"target": "mt7004", "shape": SIZES, "vary": {"cores": [1, 2]}} | changed))


@pytest.mark.parametrize("shape", [SIZES, (64, 32, 16), [64, 32, 16], "m=64,n=32,k=16"])
def test_sizes_of_a_product_and_a_target_by_name(shape: Any) -> None:
    """All forms of a problem and a target are the same call."""
    assert run(shape).cycles == run((64, 32, 16), ts.load_target("mt7004")).cycles
    found = ts.search_tiling("gemm", shape=shape, target="mt7004", budget=2)
    assert found.parts[0].default_cycles == run(shape).cycles


def test_text_of_a_convolution() -> None:
    """It is the geometry that it describes, for operators and for the neutral calls."""
    options: dict[str, Any] = {"target": "mt7004", "dtype": "fp32", "numerics": False}
    assert run(CONV, operator="conv_backward", grads="dx").shape == GEOMETRY.to_dict()
    for call in (ts.conv_backward, ts.conv_forward):
        assert call(shape=CONV, **options).cycles == call(shape=GEOMETRY, **options).cycles
    deformed = ts.deform_conv_backward(shape=CONV, **options).cycles
    assert deformed == ts.deform_conv_backward(shape=ts.DeformShape(GEOMETRY), **options).cycles


@pytest.mark.parametrize(
    ("operator", "shape"),
    [
        ("gemm", 5),
        ("gemm", (1, 2, 3, 4)),
        ("gemm", {"m": 1}),
        ("conv_backward", (1, 2, 3)),
        ("conv_backward", "n=1"),
    ],
)
def test_what_is_no_problem_is_refused(operator: str, shape: Any) -> None:
    """By a ShapeError, for a run, a search and a sweep."""
    with pytest.raises(ts.ShapeError):
        run(shape, operator=operator)
    with pytest.raises(ts.ShapeError):
        ts.search_tiling(operator, shape=shape, target="mt7004")


def test_other_refusals_of_calls() -> None:
    """A target that is none, a text that lacks keys, and a bias that is promised but not given."""
    with pytest.raises(ts.TargetError, match="not a target"):
        run(SIZES, 3)
    with pytest.raises(ts.ShapeError):
        ts.conv_backward(shape="n=1", numerics=False)
    x, w = np.ones(GEOMETRY.x_shape, np.float32), np.ones(GEOMETRY.w_shape, np.float32)
    with pytest.raises(ts.OperandError) as caught:
        ts.conv_forward(x, w, with_bias=True)
    assert caught.value.argument == "bias"


def test_a_search_without_a_tiling_is_refused() -> None:
    """The call of a host has none, and nobody gave a field."""
    with pytest.raises(ts.OperandError, match="no tiling"):
        run(CONV, "nx_host", "conv2d_backward_fast", tiling="auto")


def test_a_search_of_the_vendor_call() -> None:
    """The tiling that it finds can be given to the call."""
    asked: dict[str, Any] = {"shape": CONV, "target": "mt7004"}
    found = ts.search_tiling("conv2d_backprop_input", **asked, budget=3)
    assert run(CONV, operator="conv2d_backprop_input", tiling=found.tiling).cycles == found.parts[0].cycles
    with pytest.raises(ts.TilingError, match="two budgets"):
        run(CONV, operator="conv2d_backprop_input", tiling={"buffer_size_": 4096, "buffer_bytes": 8192})
    with pytest.raises(ts.TilingError, match="path"):
        run(CONV, operator="conv2d_backprop_input", tiling={"path": "1x1"})


@pytest.mark.parametrize("name", ["mt7004", "ascend910b1", "nx_host"])
def test_a_sweep_of_a_target_is_that_of_its_name(name: str) -> None:
    """Its values take overrides as its file does."""
    from targets.loader import target_source  # noqa: PLC0415 - the only test that looks behind the calls

    changed = target_source(ts.load_target(name))({"clock_mhz": 1234})
    assert changed == ts.load_target(name, {"clock_mhz": 1234})


def test_forms_of_a_sweep(tmp_path: Path) -> None:
    """A Target, a mapping as shape, one value alone, a file of points, one gradient as a text."""
    file = tmp_path / "points.csv"
    file.write_text("cores\n1\n2\n")
    times = [row["cycles"] for row in sweep().rows]
    assert [row["cycles"] for row in sweep(target=ts.load_target("mt7004")).rows] == times
    assert [row["cycles"] for row in sweep(vary=None, points=str(file)).rows] == times
    assert [row["cycles"] for row in sweep(vary={"cores": 1}).rows] == times[:1]
    assert [row["cycles"] for row in sweep(vary={"cores": np.array([1, 2])}).rows] == times
    assert len(sweep(vary={"shape.m": [8, 16]}).done) == 2
    one: Callable[..., ts.SweepTable] = ts.sweep
    table = one("conv_backward", target="mt7004", shape=CONV, vary={"cores": [1]}, grads="dx")
    assert table.call["grads"] == ["dx"]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"vary": 3}, "vary"),
        ({"vary": {"cores": None}}, "vary cores"),
        ({"points": "missing.csv"}, "missing.csv"),
        ({"points": [3]}, "points"),
        ({"points": 3}, "points"),
        ({"points": [{"cores": [1]}], "vary": None}, "cores"),
        ({"shape": 5}, "problem"),
        ({"target": 5}, "target"),
        ({"out": ""}, "out"),
    ],
)
def test_what_a_sweep_refuses(changed: dict[str, Any], named: str) -> None:
    """One line that names the argument."""
    with pytest.raises(ts.TilesimError, match=named):
        sweep(**changed)
