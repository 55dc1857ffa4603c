"""Deformable convolution backward on Da Vinci targets: gradients against the reference, order, traffic, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.conv_backward import conv_backward
from kernels.davinci.deform.backward import joined_planes, split_planes
from kernels.davinci.deform.scatter import tiles_of
from kernels.deform_backward import deform_conv_backward
from kernels.deform_points import Points
from kernels.errors import OperandError, ShapeError, TilingError
from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from tests.deform_runs import NAMES, TINY, check, ran, rounded
from tests.deform_table import (
    SMALL,
    DeformCase,
    deform_cases,
    integers,
    operands,
    part,
    placed,
    reported_cases,
)

CASES = {case.id: case for case in (*deform_cases(), *reported_cases())}
EDGE = CASES["D_044"].shape


def _slow(case: DeformCase) -> Any:
    marks = [pytest.mark.slow] if case.work > SMALL else []
    return pytest.param(case, id=case.id, marks=marks)


@pytest.mark.parametrize("case", [_slow(case) for case in CASES.values() if case.work <= 2**24])
def test_every_row(case: DeformCase) -> None:
    """Gradients of the rows of the tables, in the row's type, or in fp32 where that is fp64."""
    kind = "fp16" if case.dtype == "fp16" else "fp32"
    given = rounded(operands(case.shape), kind)
    run = ran(case.shape, given)
    check(run, case.shape, given)
    assert run.dtype == kind


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("case", [c for c in CASES.values() if c.work <= 2**18], ids=lambda case: case.id)
def test_every_small_row_in_every_type(case: DeformCase, kind: str) -> None:
    """Whatever the row's own type is."""
    given = rounded(operands(case.shape), kind)
    check(ran(case.shape, given, cores=4), case.shape, given)


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in CASES.values() if c.work > 2**24], ids=lambda case: case.id)
def test_every_large_row_in_part(case: DeformCase) -> None:
    """The numbers of a corner of the image, with all of the row's channels, taps and groups."""
    shape = part(case.shape)
    given = rounded(operands(shape, spread=2.0))
    check(ran(shape, given), shape, given)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [case for case in CASES.values() if case.work > 2**24], ids=lambda case: case.id
)
def test_every_large_row_is_timed(case: DeformCase) -> None:
    """Large rows run without numbers; more images cost more."""
    conv = case.shape.conv
    one = DeformShape(
        ConvShape(
            1,
            conv.cin,
            conv.size,
            conv.cout,
            conv.kernel,
            conv.stride,
            conv.padding,
            conv.dilation,
            conv.groups,
        ),
        case.shape.deform_groups,
        case.shape.masked,
    )
    run = deform_conv_backward(shape=one, numerics=False)
    assert run.time_us > run.useful_macs / run.peak_gflops / 1e3 / 2


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        *(("ascend950pr", kind) for kind in ("fp32", "fp16", "bf16")),
        ("ascend950dt", "fp16"),
        ("ascend910b1", "fp32"),
        ("ascend910b1", "bf16"),
        ("ascend310p3", "fp16"),
        ("ascend910a", "fp16"),
    ],
)
def test_types_and_targets(target: str, kind: str) -> None:
    """Types that a chip computes; sums of dx are fp32 until they are complete."""
    given = rounded(operands(TINY), kind)
    check(ran(TINY, given, target=target, cores=1), TINY, given)


def test_version_one() -> None:
    """Without a mask there are two planes and no gradient of it."""
    shape = DeformShape(TINY.conv, 2)
    given = rounded(operands(shape))
    run = ran(shape, given)
    assert set(run.outputs) == set(NAMES) - {"dmask"}
    check(run, shape, given)


@pytest.mark.parametrize(
    "shape",
    [
        EDGE,
        DeformShape(EDGE.conv),
        DeformShape(ConvShape(2, 6, (9, 8), 4, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)), 3),
        DeformShape(ConvShape(1, 16, (7, 7), 16, (1, 1)), 1, True),
    ],
)
def test_offsets_of_zero_are_the_plain_convolution(shape: DeformShape) -> None:
    """Bit for bit in fp32 on whole numbers."""
    given = integers(shape)
    run = ran(shape, given)
    plain = conv_backward(
        given["dy"], given["w"], x=given["x"], shape=shape.conv, target="ascend950pr", cores=2
    )
    for name in ("dx", "dw", "db"):
        assert np.array_equal(run.outputs[name], plain.outputs[name])


@pytest.mark.parametrize("row", [-1.0, 7.0, 1e6, -1e6, np.nan, np.inf, -np.inf])
def test_absent_taps(row: float) -> None:
    """At the border, a million pixels away and at no number: nothing but the bias has a gradient."""
    given = rounded({**operands(EDGE), "offset": placed(EDGE, row)})
    run = ran(EDGE, given)
    assert not any(run.outputs[name].any() for name in ("dx", "dw", "doffset", "dmask"))
    assert run.outputs["db"].any()
    assert "gather_pixels" not in run.trace.names


@pytest.mark.parametrize("row", [-1 + 2.0**-20, 0.0, 5.5, 6.0, 7 - 2.0**-20])
def test_taps_at_the_border(row: float) -> None:
    """On whole rows and just inside: one pixel or two of them count."""
    given = rounded({**operands(EDGE), "offset": placed(EDGE, row)})
    run = ran(EDGE, given)
    check(run, EDGE, given)
    assert run.outputs["doffset"][:, ::2].any()


def test_one_offset_of_no_number() -> None:
    """A NaN takes its own tap away and nothing else."""
    given = rounded(operands(EDGE))
    given["offset"][0, 3, 2, 2] = np.nan
    run = ran(EDGE, given)
    assert all(np.isfinite(grad).all() for grad in run.outputs.values())
    assert not run.outputs["doffset"][0, 2:4, 2, 2].any()
    check(run, EDGE, given)


def test_coordinates_are_fp32() -> None:
    """An fp16 offset of 300.25 moves a tap by that, where fp16 coordinates have steps of a quarter."""
    shape = DeformShape(ConvShape(1, 4, (3, 320), 4, (1, 3), padding=(0, 1)), 1, True)
    given = rounded(operands(shape), "fp16")
    given["offset"][...] = 0
    given["offset"][:, 1::2] = np.float16(300.25)
    given["offset"][:, ::2] = np.float16(0.125)
    run = ran(shape, given)
    check(run, shape, given)
    assert run.outputs["dx"][..., 299:].any()
    assert not run.outputs["dx"][..., :299].any()


def test_numbers_change_nothing_of_the_trace() -> None:
    """With given offsets, a timing run has the trace of the run with numbers."""
    given = rounded(operands(EDGE))
    timed = deform_conv_backward(shape=EDGE, offset=given["offset"], numerics=False, cores=3)
    assert timed.trace == ran(EDGE, given, cores=3).trace
    assert not timed.outputs


def test_places_are_in_the_trace() -> None:
    """Spread offsets touch more bursts than offsets of zero; far ones none; a model is the same in every run."""
    shape = DeformShape(ConvShape(1, 16, (6, 6), 16, (3, 3), padding=1))
    runs = [
        deform_conv_backward(shape=shape, numerics=False, offsets=words, dtype="fp32", cores=4)
        for words in ("zero", "uniform:0.4", "uniform:8", "uniform:8")
    ]
    adds = [_bytes_of(run, "add_dx") for run in runs]
    assert adds[1] > adds[0]
    assert runs[2].trace == runs[3].trace
    far = np.full(shape.offset_shape, 1e6, np.float32)
    run = deform_conv_backward(shape=shape, numerics=False, offset=far, dtype="fp32", cores=4)
    assert _bytes_of(run, "add_dx") == 0 < adds[0]
    assert run.cycles < runs[0].cycles


def _bytes_of(run: Run, name: str) -> int:
    table = run.trace.to_pandas()
    return int(table[table["name"] == name]["bytes"].sum())


@pytest.mark.parametrize("grads", [("dw",), ("db",), ("dmask",), ("dx", "db"), ("doffset", "dw")])
def test_some_of_the_gradients(grads: tuple[str, ...]) -> None:
    """Only what is asked for comes back, and the scatter runs only where it is needed."""
    given = rounded(operands(TINY))
    run, whole = ran(TINY, given, grads=grads), ran(TINY, given)
    assert set(run.outputs) == set(grads)
    assert all(np.array_equal(run.outputs[name], whole.outputs[name]) for name in grads)
    needs = bool({"dx", "doffset", "dmask"}.intersection(grads))
    assert ("deform_scatter" in {launch.name for launch in run.launches}) is needs


def test_features_of_the_forward_pass() -> None:
    """Given features are what dw is the product of."""
    given = rounded(operands(TINY))
    features = np.zeros(TINY.features.x_shape, np.float32)
    assert not ran(TINY, given, features=features, grads=("dw",)).outputs["dw"].any()


def test_planes() -> None:
    """(dy, dx) a tap, then deformable group, become planes x, y and mask, and back."""
    given = operands(TINY)
    planes = joined_planes(TINY, given["offset"], given["mask"]).reshape(2, 3, 2, 9, 5, 6)
    n, group, tap, i, j = 1, 1, 5, 2, 3
    pair = 2 * (group * 9 + tap)
    assert planes[n, 0, group, tap, i, j] == given["offset"][n, pair + 1, i, j]
    assert planes[n, 1, group, tap, i, j] == given["offset"][n, pair, i, j]
    assert planes[n, 2, group, tap, i, j] == given["mask"][n, group * 9 + tap, i, j]
    offset, mask = split_planes(TINY, planes)
    assert np.array_equal(offset, given["offset"])
    assert mask is not None
    assert np.array_equal(mask, given["mask"])


@pytest.mark.parametrize(("positions", "points", "most"), [(10, 9, 40), (10, 9, 4), (3, 1, 512), (1, 50, 50)])
def test_tiles_are_all_points_once(positions: int, points: int, most: int) -> None:
    """In their order."""
    listed = [
        (p, q)
        for tile in tiles_of(positions, points, most)
        for p in range(tile.position, tile.position + tile.positions)
        for q in range(tile.point, tile.point + tile.points)
    ]
    assert listed == [(p, q) for p in range(positions) for q in range(points)]
    assert all(tile.positions * tile.points <= most for tile in tiles_of(positions, points, most))


def test_places_lie_in_their_tensors() -> None:
    """Whatever the offsets are, no place is outside."""
    for seed, spread in enumerate((0.5, 5, 1e3, 1e30)):
        offset = np.float32(spread) * np.random.default_rng(seed).standard_normal(
            EDGE.offset_shape, np.float32
        )
        points = Points.of(EDGE, offset)
        cell = points.cell(0, points.positions, 0, EDGE.points)
        for places, size in ((cell.pixels, EDGE.conv.x_shape), (cell.features, EDGE.features.x_shape)):
            assert ((places >= 0) & (places + EDGE.channels <= np.prod(size))).all()
            assert not (places % EDGE.channels).any()


@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"offset": np.zeros((2, 18, 5, 6), np.float32)}, "offset"),
        ({"mask": np.zeros((2, 2, 5, 6), np.float32)}, "mask"),
        ({"features": np.zeros((2, 4, 5, 6), np.float32)}, "features"),
        ({"w": np.zeros(TINY.conv.w_shape, np.float16)}, "dy and w and x and offset and mask"),
        ({"offset": None}, "offset"),
        ({"mask": None}, "mask"),
        ({"grads": ("dz",)}, "grads"),
        ({"grads": ("dx", "dx")}, "grads"),
        ({"grads": ()}, "grads"),
        ({"target": "nx_host"}, "target"),
        ({"offset": np.zeros(TINY.offset_shape, np.int32)}, "offset"),
    ],
)
def test_refusals(changed: dict[str, Any], argument: str) -> None:
    """The argument is named."""
    with pytest.raises(OperandError) as caught:
        ran(TINY, {**rounded(operands(TINY)), **changed})
    assert caught.value.argument == argument


def test_an_offset_of_the_input_size() -> None:
    """A stride of 2 wants offsets of the output's size: both sizes are told."""
    shape = DeformShape(ConvShape(1, 8, (16, 16), 8, (3, 3), stride=2, padding=1))
    given = rounded(operands(shape))
    given["offset"] = np.zeros((1, 18, 16, 16), np.float32)
    with pytest.raises(OperandError, match=r"offset.*16, 16\).*8, 8\)|16, 16.*8, 8"):
        ran(shape, given)


@pytest.mark.parametrize(
    "words", ["uniform", "uniform:-1", "uniform:nan", "uniform:inf", "normal:1", "", "zero:1"]
)
def test_models_of_offsets(words: str) -> None:
    """Others than zero and uniform:r are refused."""
    with pytest.raises(OperandError, match="model"):
        deform_conv_backward(shape=TINY, numerics=False, offsets=words)


def test_tilings_that_cannot_be() -> None:
    """Fields of the scatter are checked, and two geometries are one too many."""
    for name in ("scatter.elements", "scatter.rows"):
        with pytest.raises(TilingError) as caught:
            ran(TINY, rounded(operands(TINY)), tiling={name: 0})
        assert caught.value.field == name
    with pytest.raises(ShapeError, match="two geometries"):
        deform_conv_backward(shape=TINY, numerics=False, stride=2)
