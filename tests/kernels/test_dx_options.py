"""dx on MT7004 under every policy of the tiling, every number of cores, and every way of watching a run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernels.conv_backward import conv_backward
from kernels.dsp.dx.tiling import DxTiling
from kernels.errors import OperandError, TilingError
from kernels.reference.checking import random_operands
from kernels.shape.shapes import ConvShape
from simulator.errors import CapacityError
from simulator.machine import Checks
from simulator.results.run import Run
from simulator.values.numerics import dtype
from targets.loader import load_target
from tests.kernels.sweep import check_integers
from tests.shape_strategies import conv_shapes

PLAIN = ConvShape(n=3, cin=20, size=(9, 11), cout=12, kernel=(3, 3), padding=1)
UNEVEN = ConvShape(
    n=2,
    cin=34,
    size=(13, 7),
    cout=18,
    kernel=(3, 2),
    stride=(2, 1),
    padding=((1, 0), (2, 1)),
    dilation=(1, 2),
)
GROUPED = ConvShape(
    n=2, cin=24, size=(8, 9), cout=36, kernel=(3, 3), padding=((1, -1), (1, 1)), groups=6, stride=2
)
DEEP = ConvShape(n=2, cin=6, size=(4, 5, 6), cout=8, kernel=(2, 3, 2), stride=(2, 1, 1), padding=(1, 1, 0))
SHAPES = {"plain": PLAIN, "uneven": UNEVEN, "grouped": GROUPED, "three axes": DEEP}
Values = Literal["tiles", "instructions"]
VALUES: tuple[Values, ...] = ("tiles", "instructions")
GSM = {"am": ("dy", "none"), "stream": ("dy", "none"), "gsm": ("both", "w")}


def made(shape: ConvShape, kind: str = "fp32", seed: int = 1) -> dict[str, NDArray[Any]]:
    """Integer operands of a shape."""
    terms = shape.taps * shape.cout // shape.groups
    return random_operands({"dy": shape.dy_shape, "w": shape.w_shape}, dtype(kind), seed, True, terms)


def dx_of(shape: ConvShape, dy: NDArray[Any], w: NDArray[Any], **options: Any) -> NDArray[Any]:
    """Dx of a functional run."""
    dx = conv_backward(dy, w, shape=shape, grads=("dx",), **options).dx
    assert dx is not None
    return dx


def timed(shape: ConvShape, **options: object) -> Run:
    """A timing-only run."""
    return conv_backward(shape=shape, dtype="fp32", grads=("dx",), numerics=False, **options)  # type: ignore[arg-type]  # options of the call


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("split", ["batch", "rows", "channels", "auto"])
@pytest.mark.parametrize("cores", [1, 2, 3, 4])
def test_cores_and_splits_agree(shape: ConvShape, split: str, cores: int) -> None:
    """Every number of cores and every split gives the reference's bits on integer data."""
    check_integers(shape, "fp32", cores=cores, tiling={"split": split})
    check_integers(shape, "fp16", cores=cores, tiling={"split": split})


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(
    ("weights", "holds", "column", "place"),
    [
        (weights, holds, column, place)
        for weights, places in GSM.items()
        for holds, column, place in product(places, ("rows", "blocks", "none"), ("am", "workspace"))
        if (column, place) != ("none", "workspace")
    ],
)
@pytest.mark.parametrize("values", VALUES)
def test_policies_agree(
    shape: ConvShape, weights: str, holds: str, column: str, place: str, values: Values
) -> None:
    """Wherever operands and columns lie, and in whatever steps values are made, the bits are the reference's."""
    tiling = {"weights": weights, "gsm_holds": holds, "column": column, "column_place": place}
    check_integers(shape, "fp32", tiling=tiling, checks=Checks(values=values))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("split", ["batch", "rows", "channels"])
def test_no_races_and_dma_may_land_any_time(shape: ConvShape, split: str) -> None:
    """The race check finds nothing, and a DMA that lands early or late changes no bit."""
    for weights, holds in (("stream", "dy"), ("gsm", "both")):
        tiling = {
            "split": split,
            "weights": weights,
            "gsm_holds": holds,
            "dy_buffers": 1 if split == "channels" else 2,
        }
        check_integers(shape, "fp32", tiling=tiling, checks=Checks(races=True))
        check_integers(shape, "fp32", tiling=tiling, checks=Checks(dma="early"))
        check_integers(shape, "fp32", tiling=tiling, checks=Checks(dma="late"))


@pytest.mark.parametrize(("memory", "kind"), [("sm", "raw"), ("am", "war")])
def test_a_dropped_hazard_is_noticed(memory: str, kind: str) -> None:
    """Rows of dy that are read before they came, or a panel of dx that is zeroed before it left, change the result."""
    shape = ConvShape(n=2, cin=16, size=(12, 12), cout=64, kernel=(3, 3), padding=1)
    operands, tiling = made(shape), {"positions": 12, "rows": 3, "dx_buffers": 1}
    results = []
    for dropped in (frozenset(), frozenset({(memory, kind)})):
        checks = Checks(values="instructions", dropped=dropped)
        results.append(dx_of(shape, operands["dy"], operands["w"], tiling=tiling, checks=checks))
    assert not np.array_equal(results[0], results[1])


@pytest.mark.parametrize("field", [{"split": "channels"}, {"channels": 16}])
def test_a_whole_column_row_has_all_channels(field: dict[str, object]) -> None:
    """What cuts the channels of a group contradicts column=rows."""
    shape = ConvShape(n=2, cin=64, size=(12, 12), cout=64, kernel=(3, 3), padding=1)
    with pytest.raises(TilingError, match="all 64 channels"):
        timed(shape, tiling={"column": "rows", **field})


def test_fp16_accumulation_sets_cost_peak_and_numbers() -> None:
    """An fp16 accumulator doubles the peak, costs fewer cycles, and rounds at each step."""
    shape = ConvShape(n=1, cin=64, size=(8, 8), cout=128, kernel=(3, 3), padding=1)
    rng = np.random.default_rng(0)
    dy, w = (rng.standard_normal(s).astype(np.float16) for s in (shape.dy_shape, shape.w_shape))
    mixed = conv_backward(dy, w, shape=shape, grads=("dx",), cores=1)
    half = conv_backward(dy, w, shape=shape, grads=("dx",), cores=1, tiling={"fp16_accumulate": "fp16"})
    assert half.peak_flops_per_cycle == 2 * mixed.peak_flops_per_cycle
    assert half.cycles < mixed.cycles
    assert half.dx is not None
    assert mixed.dx is not None
    assert not np.array_equal(half.dx, mixed.dx)
    np.testing.assert_allclose(half.dx, mixed.dx, atol=0.5)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shape=conv_shapes(largest=9), data=st.data())
def test_any_tiling_of_any_shape(shape: ConvShape, data: st.DataObject) -> None:
    """Random geometries under random legal tilings: integers exactly."""
    if shape.transposed:
        shape = ConvShape(**(shape.to_dict() | {"transposed": False, "output_padding": 0}))  # type: ignore[arg-type]
    draw = data.draw
    tiling: dict[str, object] = {
        "split": draw(st.sampled_from(["batch", "rows", "channels"])),
        "rows": draw(st.integers(1, 9)),
        "cols": draw(st.integers(1, 9)),
        "images": 1,
        "channels": draw(st.integers(1, 20)),
        "k": draw(st.integers(1, 9)),
        "positions": draw(st.integers(1, 40)),
        "block_channels": draw(st.integers(1, 9)),
        "block_taps": draw(st.integers(1, 3)),
        "column": draw(st.sampled_from(["rows", "blocks", "none"])),
        "dx_buffers": draw(st.integers(1, 2)),
        "ahead": draw(st.integers(0, 2)),
    }
    if tiling["column"] == "rows":
        tiling = {k: v for k, v in tiling.items() if k != "channels" and (k, v) != ("split", "channels")}
    values = draw(st.sampled_from(VALUES))
    check_integers(shape, "fp32", tiling=tiling, cores=draw(st.integers(1, 4)), checks=Checks(values=values))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("split", ["batch", "rows", "channels"])
def test_equal_cores_may_stand_for_each_other(shape: ConvShape, split: str) -> None:
    """The trace of cores that are simulated as one is the trace of each by itself."""
    folded = timed(shape, tiling={"split": split}, checks=Checks(fold=True))
    plain = timed(shape, tiling={"split": split}, checks=Checks(fold=False))
    assert folded.trace == plain.trace
    assert folded.cycles == plain.cycles


def test_the_trace_is_the_same_every_time() -> None:
    """Ten runs, numerics on or off, and another process with another hash seed give one trace."""
    operands = made(PLAIN)
    hashes = {timed(PLAIN).trace.hash() for _ in range(10)}
    hashes.add(conv_backward(operands["dy"], operands["w"], shape=PLAIN, grads=("dx",)).trace.hash())
    program = (
        "from kernels.conv_backward import conv_backward; from kernels.shape.shapes import ConvShape;"
        f"print(conv_backward(shape=ConvShape(**{PLAIN.to_dict()!r}), dtype='fp32', grads=('dx',), numerics=False)"
        ".trace.hash())"
    )
    for seed in ("1", "77"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        hashes.add(done.stdout.strip())
    assert len(hashes) == 1


def test_batch_one_leaves_cores_idle() -> None:
    """One image split by batch keeps one core busy; the others have no rows in the trace of the products."""
    run = timed(ConvShape(n=1, cin=16, size=(8, 8), cout=16, kernel=(1, 1)), tiling={"split": "batch"})
    assert run.trace.cores() == [0]


def test_empty_batches_and_outputs() -> None:
    """No images give an empty dx; outputs that do not exist give zeros, even where memory held NaN."""
    empty = ConvShape(n=0, cin=3, size=(10, 5), cout=16, kernel=(3, 3))
    zeros = dx_of(empty, np.zeros(empty.dy_shape, np.float32), np.zeros(empty.w_shape, np.float32))
    assert zeros.shape == (0, 3, 10, 5)
    none = ConvShape(n=1, cin=1, size=(34, 1), cout=1, kernel=(3, 3), stride=2)
    dx = conv_backward(np.zeros(none.dy_shape, np.float32), np.zeros(none.w_shape, np.float32), shape=none).dx
    assert dx is not None
    assert not dx.any()


def test_nan_reaches_only_what_its_taps_reach() -> None:
    """A NaN in dy reaches the dx that its taps read; padding is absent, not zero times NaN."""
    shape = ConvShape(n=1, cin=2, size=(6, 6), cout=2, kernel=(3, 3), padding=1)
    dy, w = np.ones(shape.dy_shape, np.float32), np.ones(shape.w_shape, np.float32)
    dy[0, 0, 0, 0] = np.nan
    dx = conv_backward(dy, w, shape=shape).dx
    assert dx is not None
    expected = np.zeros((6, 6), bool)
    expected[:2, :2] = True
    np.testing.assert_array_equal(np.isnan(dx[0, 0]), expected)


def test_layouts_agree() -> None:
    """Channel-last operands give the channel-last gradient."""
    operands = made(PLAIN)
    first = conv_backward(operands["dy"], operands["w"], shape=PLAIN).dx
    last = conv_backward(np.moveaxis(operands["dy"], 1, -1), operands["w"], shape=PLAIN, layout="NHWC").dx
    assert first is not None
    assert last is not None
    np.testing.assert_array_equal(np.moveaxis(first, 1, -1), last)


def test_a_tiling_is_obeyed_and_shown() -> None:
    """Given fields stand in run.tiling, and the others are chosen around them."""
    run = timed(PLAIN, tiling={"rows": 2, "split": "batch", "budget_bytes": 4096})
    assert run.tiling["rows"] == 2
    assert run.tiling["budget_bytes"] == 4096
    assert set(run.tiling) == set(DxTiling.model_fields)


@pytest.mark.parametrize(
    ("tiling", "field"),
    [
        ({"rows": 0}, "rows"),
        ({"height": 2}, "height"),
        ({"weights": "gsm", "gsm_holds": "dy"}, "gsm_holds"),
        ({"split": "diagonal"}, "split"),
        ({"budget_bytes": 8, "block_channels": 20}, "block_channels"),
    ],
)
def test_a_bad_tiling_names_its_field(tiling: dict[str, object], field: str) -> None:
    """A field that cannot be is refused by name."""
    with pytest.raises(TilingError) as caught:
        timed(PLAIN, tiling=tiling)
    assert caught.value.field == field


def test_refusals_name_their_argument() -> None:
    """Operands that are missing, of another shape or type, cores and gradients that are not there."""
    operands = made(PLAIN)
    dy, w = operands["dy"], operands["w"]
    calls: list[tuple[str, Callable[[], object]]] = [
        ("dy", lambda: conv_backward(None, w)),
        ("w", lambda: conv_backward(dy, None, shape=PLAIN, grads=("dx",))),
        ("x", lambda: conv_backward(dy, w, shape=PLAIN, grads=("dw",))),
        ("dy", lambda: conv_backward(dy[:, :3], w, shape=PLAIN)),
        ("dy and w", lambda: conv_backward(dy, w.astype(np.float16), shape=PLAIN)),
        ("cores", lambda: conv_backward(dy, w, shape=PLAIN, cores=5)),
        ("cores", lambda: conv_backward(dy, w, shape=PLAIN, cores=[0, 0])),
        ("dtype", lambda: conv_backward(dy, w, shape=PLAIN, dtype="fp64")),
        ("dtype", lambda: conv_backward(dy, w, shape=PLAIN, dtype="fp64", target="ft_m7032")),
        ("grads", lambda: conv_backward(dy, w, shape=PLAIN, grads=("dq",))),
        ("layout", lambda: conv_backward(dy, w, shape=PLAIN, layout="HWCN")),
        ("dy", lambda: conv_backward(dy.astype(np.int32), w, shape=PLAIN)),
    ]
    for argument, call in calls:
        with pytest.raises(OperandError) as caught:
            call()
        assert caught.value.argument == argument


def test_a_small_memory_is_named_with_the_field_to_lower() -> None:
    """A target whose AM is too small for given panels says which memory, how much, and what to lower."""
    small = load_target("mt7004", {"memory.am.size_bytes": 131072})
    tiling = {
        "split": "batch",
        "rows": 9,
        "cols": 11,
        "images": 1,
        "channels": 20,
        "groups": 1,
        "weights": "stream",
        "gsm_holds": "dy",
        "block_channels": 20,
        "block_taps": 3,
        "k": 12,
        "positions": 99,
        "dx_buffers": 2,
        "budget_bytes": 120000,
    }
    with pytest.raises((CapacityError, TilingError)) as caught:
        timed(PLAIN, target=small, tiling=tiling)
    assert "lower" in str(caught.value)
