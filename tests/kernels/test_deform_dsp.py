"""Deformable convolution backward on DSP targets: gradients against the reference, owners, traffic, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.conv_backward import conv_backward
from kernels.deform_backward import deform_conv_backward
from kernels.errors import OperandError, TilingError
from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape
from simulator.errors import CapacityError
from simulator.machine import Checks
from simulator.results.run import Run
from targets.loader import load_target
from tests.deform_runs import NAMES, SUMMED, TINY, check, rounded, same
from tests.deform_runs import ran as ran_on
from tests.deform_table import DeformCase, deform_cases, integers, operands, part, placed, reported_cases

CASES = {case.id: case for case in (*deform_cases(), *reported_cases())}
EDGE = CASES["D_044"].shape
WIDE = DeformShape(ConvShape(1, 40, (4, 5), 3, (3, 2), stride=(1, 2), padding=1), 1, True)
"""A group whose channels are more than a block of dx."""

QUICK = 2**12
"""Sampling points times channels of a row that quick tests run."""


def ran(shape: DeformShape, given: dict[str, Any], **more: Any) -> Run:
    """A run on MT7004, unless another target is asked for."""
    return ran_on(shape, given, **{"target": "mt7004", **more})


def _case(case: DeformCase) -> Any:
    return pytest.param(case, id=case.id, marks=[pytest.mark.slow] if case.work > QUICK else [])


@pytest.mark.parametrize("case", [_case(case) for case in CASES.values() if case.work <= 2**22])
def test_every_row(case: DeformCase) -> None:
    """Gradients of the rows of the tables; those whose type is fp16 in it."""
    kind = "fp16" if case.dtype == "fp16" else "fp32"
    given = rounded(operands(case.shape), kind)
    run = ran(case.shape, given)
    check(run, case.shape, given)
    assert run.dtype == kind


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in CASES.values() if c.work > 2**22], ids=lambda case: case.id)
def test_every_large_row_in_part(case: DeformCase) -> None:
    """The numbers of a corner of the image, with all of the row's channels, taps and groups."""
    shape = part(case.shape)
    given = rounded(operands(shape, spread=2.0))
    check(ran(shape, given), shape, given)


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in CASES.values() if c.work > 2**22], ids=lambda case: case.id)
def test_every_large_row_is_timed(case: DeformCase) -> None:
    """One image, without numbers: never faster than the peak, and no multiplication for nothing."""
    c = case.shape.conv
    conv = ConvShape(1, c.cin, c.size, c.cout, c.kernel, c.stride, c.padding, c.dilation, c.groups)
    one = DeformShape(conv, case.shape.deform_groups, case.shape.masked)
    run = deform_conv_backward(shape=one, numerics=False, target="mt7004", dtype="fp32")
    assert run.time_us > 2 * run.useful_macs / run.peak_gflops / 1e3
    assert run.macs == run.useful_macs


@pytest.mark.parametrize(("target", "kind"), [("mt7004", "fp16"), ("ft78ne", "fp32"), ("ft_m7032", "fp32")])
@pytest.mark.parametrize("shape", [TINY, DeformShape(TINY.conv, 2), WIDE])
def test_types_and_targets(target: str, kind: str, shape: DeformShape) -> None:
    """Both versions, and blocks of channels, on every DSP; fp16 sums of dx are fp32 until they are complete."""
    given = rounded(operands(shape), kind)
    check(ran(shape, given, target=target), shape, given)


@pytest.mark.parametrize("shape", [EDGE, DeformShape(EDGE.conv), WIDE])
def test_offsets_of_zero_are_the_plain_convolution(shape: DeformShape) -> None:
    """Bit for bit in fp32 on whole numbers."""
    given = integers(shape)
    run = ran(shape, given)
    plain = conv_backward(given["dy"], given["w"], x=given["x"], shape=shape.conv, target="mt7004")
    assert same(run, plain, ("dx", "dw", "db"))


@pytest.mark.parametrize("row", [-1.0, 7.0, 1e6, np.nan, -np.inf])
def test_absent_taps(row: float) -> None:
    """At the border, a million pixels away and at no number: nothing but the bias has a gradient."""
    given = rounded({**operands(EDGE), "offset": placed(EDGE, row)})
    run = ran(EDGE, given)
    assert not any(run.outputs[name].any() for name in ("dw", *SUMMED))
    assert run.outputs["db"].any()
    assert not {"load_window", "gather_pixels", "add_points"}.intersection(run.trace.names)


@pytest.mark.parametrize("row", [-1 + 2.0**-20, 5.5, 6.0])
def test_taps_at_the_border(row: float) -> None:
    """On whole rows and just inside."""
    given = rounded({**operands(EDGE), "offset": placed(EDGE, row)})
    run = ran(EDGE, given)
    check(run, EDGE, given)
    assert run.outputs["doffset"][:, ::2].any()


@pytest.mark.parametrize(("target", "shape"), [("mt7004", WIDE), ("ft78ne", TINY)])
def test_any_number_of_cores(target: str, shape: DeformShape) -> None:
    """The same bits of dx, doffset and dmask on real data, of every gradient on whole numbers."""
    whole = load_target(target).groups
    for given, names in ((rounded(operands(shape, spread=2.0)), SUMMED), (integers(shape), NAMES)):
        first = ran(shape, given, target=target, cores=1, grads=names)
        for cores in (whole - 1, whole):
            assert same(ran(shape, given, target=target, cores=cores, grads=names), first, names)


@pytest.mark.slow
def test_any_number_of_cores_with_long_sums() -> None:
    """The same where the channels need several steps, and bands and tiles are many."""
    shape = DeformShape(ConvShape(3, 96, (19, 21), 200, (3, 3), padding=1), 2, True)
    given = rounded(operands(shape, spread=2.0))
    first = ran(shape, given, target="ft78ne", cores=1, grads=SUMMED)
    for cores in range(2, 9):
        assert same(ran(shape, given, target="ft78ne", cores=cores, grads=SUMMED), first, SUMMED)


@pytest.mark.parametrize(
    "tiling",
    [
        {"sample_positions": 1, "scatter_positions": 2},
        {"scatter_rows": 1, "scatter_channels": 3},
        {"scatter_rows": 4, "scatter_positions": 1, "sample_channels": 7},
    ],
)
def test_tiles_of_any_size(tiling: dict[str, object]) -> None:
    """Bands, tiles and pieces of channels change no bit of dx; the others are sums by pieces, within the bound."""
    given = rounded(operands(WIDE, spread=2.0))
    run = ran(WIDE, given, tiling=tiling)
    assert same(run, ran(WIDE, given), ("dx", "dw"))
    check(run, WIDE, given)


def test_races_and_landings() -> None:
    """No two cores touch one place, and copies may land early or late."""
    given, asked = integers(WIDE), ("dx", "doffset", "dmask", "dw")
    plain = ran(WIDE, given, grads=asked)
    for checks in (Checks(races=True), Checks(dma="early"), Checks(dma="late")):
        assert same(ran(WIDE, given, grads=asked, checks=checks), plain, asked)


def test_owners_of_dx() -> None:
    """Each pixel of a block of channels is stored once, whoever the cores are."""
    given = rounded(operands(WIDE, spread=2.0))
    run = ran(WIDE, given, tiling={"scatter_rows": 2}, grads=("dx",))
    table = run.trace.to_pandas()
    launch = [each.name for each in run.launches].index("deform_scatter")
    stored = table[(table["name"] == "store_dx") & (table["launch"] == launch)]
    assert len(stored) == 2 * 2
    assert stored["bytes"].sum() == run.outputs["dx"].nbytes
    assert stored["core"].nunique() > 1


def test_numbers_change_nothing_of_the_trace() -> None:
    """With given offsets, a timing run has the trace of the run with numbers; order is fixed, and costs nothing."""
    given = rounded(operands(EDGE))
    whole = ran(EDGE, given)
    for fixed in (False, True):
        timed = deform_conv_backward(
            shape=EDGE, offset=given["offset"], numerics=False, target="mt7004", deterministic=fixed
        )
        assert timed.trace == whole.trace
    assert not timed.outputs


def _bytes_of(run: Run, *names: str) -> int:
    table = run.trace.to_pandas()
    return int(table[table["name"].isin(names)]["bytes"].sum())


def test_places_are_in_the_trace() -> None:
    """Windows grow with the offsets until corners come one by one; far points read nothing, nor are they added."""
    shape = DeformShape(ConvShape(1, 32, (24, 24), 32, (3, 3), padding=1))
    zero, near, spread = (
        deform_conv_backward(shape=shape, numerics=False, offsets=words, dtype="fp32", target="mt7004")
        for words in ("zero", "uniform:2", "uniform:40")
    )
    assert 0 < _bytes_of(zero, "load_window") < _bytes_of(near, "load_window")
    assert _bytes_of(near, "gather_pixels") == 0 < _bytes_of(spread, "gather_pixels")
    far = np.full(shape.offset_shape, 1e6, np.float32)
    gone = deform_conv_backward(shape=shape, numerics=False, offset=far, dtype="fp32", target="mt7004")
    assert _bytes_of(gone, "load_window", "gather_pixels") == 0
    assert gone.cycles < zero.cycles < near.cycles


def test_a_point_between_two_bands_is_read_for_both() -> None:
    """Lower bands read more of the features' gradient."""
    shape = DeformShape(ConvShape(1, 32, (24, 24), 32, (3, 3), padding=1))
    high, low = (
        deform_conv_backward(
            shape=shape,
            numerics=False,
            dtype="fp32",
            target="mt7004",
            tiling={"scatter_rows": rows},
            grads="dx",
        )
        for rows in (24, 3)
    )
    assert _bytes_of(low, "load_upstream") > 1.5 * _bytes_of(high, "load_upstream")


@pytest.mark.parametrize("grads", [("dw",), ("db",), ("dmask",), ("dx", "db"), ("doffset", "dw")])
def test_some_of_the_gradients(grads: tuple[str, ...]) -> None:
    """Only what is asked for comes back, and only launches that it needs run."""
    given = rounded(operands(TINY))
    run, whole = ran(TINY, given, grads=grads), ran(TINY, given)
    assert set(run.outputs) == set(grads)
    assert same(run, whole, grads)
    launches = {launch.name for launch in run.launches}
    assert ("deform_scatter" in launches) is ("dx" in grads)
    assert ("deform_sample" in launches) is bool({"dw", "doffset", "dmask"}.intersection(grads))


def test_features_of_the_forward_pass() -> None:
    """Given features are what dw is the product of, and are not sampled."""
    given = rounded(operands(TINY))
    features = np.zeros(TINY.features.x_shape, np.float32)
    run = ran(TINY, given, features=features, grads=("dw",))
    assert not run.outputs["dw"].any()
    assert "deform_sample" not in {launch.name for launch in run.launches}


def test_refusals() -> None:
    """A host, tilings that cannot be, and bands that AM does not hold."""
    given = rounded(operands(TINY))
    with pytest.raises(OperandError, match="dsp, davinci"):
        ran(TINY, given, target="nx_host")
    for field in ("scatter_rows", "sample_channels"):
        with pytest.raises(TilingError) as caught:
            ran(TINY, given, tiling={field: 0})
        assert caught.value.field == field
    large = DeformShape(ConvShape(1, 32, (128, 64), 4, (1, 1)))
    with pytest.raises(CapacityError, match="scatter_rows"):
        deform_conv_backward(
            shape=large, numerics=False, dtype="fp32", target="mt7004", tiling={"scatter_rows": 128}
        )
