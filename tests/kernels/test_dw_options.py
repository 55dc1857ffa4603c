"""dw and db on MT7004 under every split, number of cores, and way of watching a run; masks of gradients."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import chain, combinations, product
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernels.conv_backward import conv_backward
from kernels.dsp.dw.tiling import DbTiling, DwTiling
from kernels.dsp.dx.tiling import DxTiling
from kernels.errors import TilingError
from kernels.reference.checking import random_operands
from kernels.reference.references import conv_backward_reference
from kernels.shape.shapes import ConvShape
from simulator.errors import CapacityError
from simulator.machine import Checks
from simulator.results.run import Run
from simulator.values.numerics import dtype
from targets.loader import load_target
from tests.kernels.sweep import check_integers, check_random, operands
from tests.shape_strategies import conv_shapes

PLAIN = ConvShape(n=3, cin=20, size=(9, 11), cout=14, kernel=(3, 3), padding=1)
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
LINE = ConvShape(n=3, cin=5, size=(17,), cout=7, kernel=(4,), stride=3, padding=2)
SHAPES = {"plain": PLAIN, "uneven": UNEVEN, "grouped": GROUPED, "three axes": DEEP, "one axis": LINE}
Values = Literal["tiles", "instructions"]
VALUES: tuple[Values, ...] = ("tiles", "instructions")
GRADS = ("dw", "db")
ALL = ("dx", "dw", "db")
FIELDS = {"dx": DxTiling.model_fields, "dw": DwTiling.model_fields, "db": DbTiling.model_fields}
SMALL_TILES = {"dw.k": 7, "dw.rows": 4, "dw.out_channels": 9, "dw.channels": 11, "dw.taps": 2}


def timed(shape: ConvShape, grads: tuple[str, ...] = GRADS, **options: Any) -> Run:
    """A timing-only run."""
    return conv_backward(shape=shape, dtype="fp32", grads=grads, numerics=False, **options)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("split", ["batch", "rows", "channels", "auto"])
@pytest.mark.parametrize("cores", [1, 2, 3, 4])
def test_cores_and_splits_agree(shape: ConvShape, split: str, cores: int) -> None:
    """Every number of cores and every split gives the reference's bits on integer data."""
    check_integers(shape, "fp32", GRADS, cores=cores, tiling={"dw.split": split})
    check_integers(shape, "fp16", GRADS, cores=cores, tiling={"dw.split": split})


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("ahead", [0, 1])
def test_blocks_agree(shape: ConvShape, groups: int, ahead: int) -> None:
    """Blocks, chunks and strips that divide nothing evenly give the reference's bits."""
    tiling = {**SMALL_TILES, "dw.groups": groups, "dw.ahead": ahead, "db.k": 5}
    for values in VALUES:
        check_integers(shape, "fp32", GRADS, tiling=tiling, checks=Checks(values=values))
        check_random(shape, "fp16", GRADS, tiling=tiling, checks=Checks(values=values))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("split", ["batch", "rows", "channels"])
def test_no_races_and_dma_may_land_any_time(shape: ConvShape, split: str) -> None:
    """The race check finds nothing, and a DMA that lands early or late changes no bit."""
    for checks in (Checks(races=True), Checks(dma="early"), Checks(dma="late")):
        for more in ({}, SMALL_TILES):
            check_integers(shape, "fp32", ALL, tiling={"dw.split": split, **more}, checks=checks)


@pytest.mark.parametrize(("memory", "kind"), [("sm", "raw"), ("am", "raw"), ("am", "war")])
def test_a_dropped_hazard_is_noticed(memory: str, kind: str) -> None:
    """Strips, columns or sums that are used before they came, or overwritten before they left, change the result."""
    shape = ConvShape(n=2, cin=32, size=(12, 12), cout=48, kernel=(3, 3), padding=1)
    tiling = {"dw.k": 24, "dw.rows": 48, "dw.out_channels": 48, "dw.taps": 3}
    made = operands(shape, "fp32", ("dw",), True)
    results: list[Any] = []
    for dropped in (frozenset(), frozenset({(memory, kind)})):
        checks = Checks(dma="late", dropped=dropped)
        run = conv_backward(**made, shape=shape, grads=("dw",), cores=1, tiling=tiling, checks=checks)
        results.append(run.dw)
    assert not np.array_equal(results[0], results[1])


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("split", ["batch", "rows", "channels"])
def test_equal_cores_may_stand_for_each_other(shape: ConvShape, split: str) -> None:
    """The trace of cores that are simulated as one is the trace of each by itself."""
    tiling = {"dw.split": split, "dw.out_channels": 8, "dw.k": 12}
    folded = timed(shape, tiling=tiling, checks=Checks(fold=True))
    plain = timed(shape, tiling=tiling, checks=Checks(fold=False))
    assert folded.trace == plain.trace
    assert folded.cycles == plain.cycles


def test_the_trace_is_the_same_every_time() -> None:
    """Runs with numerics on or off, and another process with another hash seed, give one trace."""
    made = operands(PLAIN, "fp32", ALL, True)
    hashes = {timed(PLAIN, ALL).trace.hash() for _ in range(3)}
    hashes.add(conv_backward(**made, shape=PLAIN, grads=ALL).trace.hash())
    made["dy"][...] = np.nan
    hashes.add(conv_backward(**made, shape=PLAIN, grads=ALL).trace.hash())
    program = (
        "from kernels.conv_backward import conv_backward; from kernels.shape.shapes import ConvShape;"
        f"print(conv_backward(shape=ConvShape(**{PLAIN.to_dict()!r}), dtype='fp32', numerics=False).trace.hash())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    hashes.add(done.stdout.strip())
    assert len(hashes) == 1


@pytest.mark.parametrize("grads", list(chain.from_iterable(combinations(ALL, n) for n in (1, 2, 3))))
def test_outputs_are_what_was_asked_for(grads: tuple[str, ...]) -> None:
    """Every subset: its outputs, its launches and its tiling fields, and no others; bits do not depend on the mask."""
    run = check_integers(PLAIN, "fp32", grads)
    assert tuple(run.outputs) == grads
    names = {launch.name for launch in run.launches}
    assert {name.removeprefix("conv_") for name in names if name.startswith("conv_")} == set(grads)
    prefix = {"dx": "", "dw": "dw.", "db": "db."}
    fields = {grad: [prefix[grad] + name for name in kind] for grad, kind in FIELDS.items()}
    assert list(run.tiling) == [name for grad in grads for name in fields[grad]]
    assert run.useful_macs == PLAIN.useful_macs * len({"dx", "dw"} & set(grads))


def test_the_default_is_what_the_arrays_allow() -> None:
    """Only dy allows db, with w also dx, with x also dw; a shape alone allows all three."""
    made = operands(PLAIN, "fp32", ALL, True)
    dy, w, x = made["dy"], made["w"], made["x"]
    assert tuple(conv_backward(dy, shape=PLAIN).outputs) == ("db",)
    assert tuple(conv_backward(dy, w, shape=PLAIN).outputs) == ("dx", "db")
    assert tuple(conv_backward(dy, x=x, shape=PLAIN).outputs) == ("dw", "db")
    assert tuple(conv_backward(dy, w, x=x, padding=1).outputs) == ALL
    names = [launch.name for launch in conv_backward(shape=PLAIN, dtype="fp32", numerics=False).launches]
    assert [name for name in names if name.startswith("conv_")] == ["conv_dx", "conv_dw", "conv_db"]


def test_weights_are_put_back_only_where_the_order_differs() -> None:
    """One tap, or one channel a group, has the same bytes in both orders; several cores' sums are reduced first."""

    def launches(split: str, **sizes: Any) -> list[str]:
        shape = ConvShape(**{"n": 4, "cin": 8, "size": (6, 6), "cout": 8, "kernel": (3, 3), **sizes})
        return [launch.name for launch in timed(shape, ("dw",), tiling={"dw.split": split}).launches]

    assert launches("channels") == ["conv_dw", "restore_weights"]
    assert launches("batch") == ["conv_dw", "reduce_dw", "restore_weights"]
    assert launches("batch", n=1) == ["conv_dw", "restore_weights"]
    assert launches("channels", kernel=(1, 1)) == ["conv_dw"]
    assert launches("batch", groups=8) == ["conv_dw", "reduce_dw"]


def test_nan_reaches_only_what_its_taps_reach() -> None:
    """A NaN in a corner of dy reaches the taps that lie in x there; padding is absent, not zero times NaN."""
    shape = ConvShape(n=1, cin=2, size=(6, 6), cout=3, kernel=(3, 3), padding=1)
    for kind in ("fp32", "fp16"):
        made = operands(shape, kind, GRADS, True)
        made["dy"][0, 1, 0, 0] = np.nan
        made["dy"][0, 2, 5, 5] = np.inf
        tilings: tuple[dict[str, object], ...] = ({}, {"dw.split": "rows"}, {"dw.fp16_accumulate": "fp16"})
        for tiling, values in product(tilings, VALUES):
            checks = Checks(values=values)
            run = conv_backward(**made, shape=shape, grads=GRADS, tiling=tiling, checks=checks)
            assert run.dw is not None
            assert run.db is not None
            expected = np.zeros((3, 2, 3, 3), bool)
            expected[1, :, 1:, 1:] = True
            np.testing.assert_array_equal(np.isnan(run.dw) & expected, expected)
            np.testing.assert_array_equal(np.isnan(run.dw[:2]), expected[:2])
            assert np.isfinite(run.dw[2, :, 2, :]).all()
            assert np.isfinite(run.dw[2, :, :, 2]).all()
            assert [bool(np.isnan(v)) for v in run.db] == [False, True, False]


def test_nan_of_x_reaches_only_what_reads_it() -> None:
    """A NaN in x reaches the taps that read it, of its channel; input that no tap reads is not there."""
    shape = ConvShape(n=1, cin=2, size=(7, 7), cout=2, kernel=(2, 2), stride=2, padding=((0, -1), (0, -1)))
    made = operands(shape, "fp32", ("dw",), True)
    made["x"][0, :, 6, :] = made["x"][0, :, :, 6] = np.nan
    made["x"][0, 1, 2, 3] = np.nan
    dw = conv_backward(**made, shape=shape, grads=("dw",)).dw
    assert dw is not None
    expected = np.zeros((2, 2, 2, 2), bool)
    expected[:, 1, 0, 1] = True
    np.testing.assert_array_equal(np.isnan(dw), expected)


@pytest.mark.parametrize("cores", [1, 4])
def test_empty_batches_and_outputs_give_zeros(cores: int) -> None:
    """No images, or no outputs: dw and db are zero, even where memory held NaN; no channels: they are empty."""
    empty = ConvShape(n=0, cin=3, size=(10, 5), cout=16, kernel=(3, 3))
    none = ConvShape(n=1, cin=1, size=(34, 1), cout=1, kernel=(3, 3), stride=2)
    for shape in (empty, none):
        for split in ("auto", "batch", "rows", "channels"):
            run = check_integers(shape, "fp32", ALL, cores=cores, tiling={"dw.split": split})
            assert run.dw is not None
            assert not run.dw.any()
    for shape in (
        ConvShape(n=2, cin=0, size=(4, 4), cout=3, kernel=(3, 3)),
        ConvShape(n=2, cin=3, size=(4, 4), cout=0, kernel=(3, 3)),
    ):
        check_integers(shape, "fp16", GRADS, cores=cores)


def test_fp16_accumulation_sets_cost_peak_and_numbers() -> None:
    """An fp16 accumulator doubles the peak, costs fewer cycles, and rounds at each step, within its bound."""
    shape = ConvShape(n=1, cin=64, size=(8, 8), cout=64, kernel=(3, 3), padding=1)
    mixed = check_random(shape, "fp16", ("dw",), cores=1)
    half = check_random(shape, "fp16", ("dw",), cores=1, tiling={"dw.fp16_accumulate": "fp16"})
    assert half.peak_flops_per_cycle == 2 * mixed.peak_flops_per_cycle
    assert half.cycles < mixed.cycles
    assert not np.array_equal(half.dw, mixed.dw)  # type: ignore[arg-type]  # both are there
    check_random(shape, "fp16", ("dw",), tiling={"dw.fp16_accumulate": "fp16", "dw.split": "rows"})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shape=conv_shapes(largest=9), data=st.data())
def test_any_tiling_of_any_shape(shape: ConvShape, data: st.DataObject) -> None:
    """Random geometries under random legal tilings: integers exactly."""
    shape = not_transposed(shape)
    draw = data.draw
    tiling = {
        "dw.split": draw(st.sampled_from(["batch", "rows", "channels"])),
        **{
            f"dw.{name}": draw(st.integers(1, 9))
            for name in ("groups", "out_channels", "taps", "channels", "rows")
        },
        "dw.k": draw(st.integers(1, 40)),
        "dw.ahead": draw(st.integers(0, 1)),
        "db.k": draw(st.integers(1, 40)),
    }
    kind, checks = draw(st.sampled_from(["fp16", "fp32"])), Checks(values=draw(st.sampled_from(VALUES)))
    check_integers(shape, kind, GRADS, tiling=tiling, cores=draw(st.integers(1, 4)), checks=checks)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shape=conv_shapes(largest=7), seed=st.integers(0, 99))
def test_gradients_are_adjoint(shape: ConvShape, seed: int) -> None:
    """<dx, x> = <dw, w> = <dy, conv(x, w)>, and the sum of db is that of dy, exactly on integers."""
    shape = not_transposed(shape)
    sizes = {"dy": shape.dy_shape, "w": shape.w_shape, "x": shape.x_shape}
    made = random_operands(sizes, dtype("fp32"), seed, True, 1 << 18)
    run = conv_backward(made["dy"], made["w"], x=made["x"], shape=shape)
    wide = {name: array.astype(np.float64) for name, array in {**made, **run.outputs}.items()}
    assert (wide["dx"] * wide["x"]).sum() == (wide["dw"] * wide["w"]).sum()
    assert wide["db"].sum() == wide["dy"].sum()


def not_transposed(shape: ConvShape) -> ConvShape:
    """The plain convolution with the same arguments."""
    fields = shape.to_dict() | {"transposed": False, "output_padding": 0}
    return ConvShape(**fields)  # type: ignore[arg-type]  # to_dict gives the constructor's own arguments


def test_layouts_agree() -> None:
    """Channel-last dy and x give the same gradients: weights keep their order."""
    made = operands(PLAIN, "fp32", ALL, True)
    first = conv_backward(**made, shape=PLAIN).outputs
    moved = {name: np.moveaxis(made[name], 1, -1) for name in ("dy", "x")}
    last = conv_backward(**(made | moved), shape=PLAIN, layout="NHWC").outputs
    np.testing.assert_array_equal(np.moveaxis(first["dx"], 1, -1), last["dx"])
    np.testing.assert_array_equal(first["dw"], last["dw"])
    np.testing.assert_array_equal(first["db"], last["db"])


def test_a_tiling_is_obeyed_and_shown() -> None:
    """Given fields stand in run.tiling under their names; plain names are dx's."""
    given_fields = {"rows": 2, "dw.rows": 3, "dw.k": 9, "db.k": 4}
    run = timed(PLAIN, ALL, tiling=given_fields)
    assert {name: run.tiling[name] for name in given_fields} == given_fields


@pytest.mark.parametrize(
    ("grads", "tiling", "field"),
    [
        (("dw",), {"dw.k": 0}, "dw.k"),
        (("dw",), {"dw.height": 2}, "dw.height"),
        (("dw",), {"dw.split": "diagonal"}, "dw.split"),
        (("dw",), {"dw.k": [1]}, "dw.k"),
        (("db",), {"db.k": 0}, "db.k"),
        (("dw",), {"rows": 2}, "rows"),
        (("dx",), {"dw.rows": 2}, "dw.rows"),
        (("dw",), {"dw.k": 100_000, "dw.out_channels": 14, "dw.rows": 14}, "dw.k"),
    ],
)
def test_a_bad_tiling_names_its_field(grads: tuple[str, ...], tiling: dict[str, object], field: str) -> None:
    """A field that cannot be, that nothing fits with, or of a gradient that is not asked for is refused by name."""
    shape = ConvShape(n=8, cin=20, size=(90, 110), cout=14, kernel=(3, 3), padding=1)
    with pytest.raises(TilingError) as caught:
        timed(shape, grads, tiling=tiling)
    assert caught.value.field == field


def test_a_small_memory_is_named_with_the_field_to_lower() -> None:
    """Outputs of db that do not fit AM: the error says which memory, and what to lower."""
    with pytest.raises(CapacityError) as caught:
        timed(
            PLAIN, ("db",), tiling={"db.k": 10}, target=load_target("mt7004", {"memory.am.size_bytes": 256})
        )
    assert caught.value.memory == "am"
    assert "db.k" in caught.value.remedy


@pytest.mark.parametrize(
    "shape",
    [
        ConvShape(n=1, cin=4096, size=(1, 1), cout=4096, kernel=(1, 1)),
        ConvShape(n=1, cin=1, size=(24, 24), cout=1, kernel=(17, 17), padding=8),
        ConvShape(n=2, cin=512, size=(9, 9), cout=1024, kernel=(3, 3), padding=1, groups=256),
        ConvShape(n=2, cin=6, size=(9, 9), cout=4098, kernel=(3, 3), padding=1, groups=3),
        ConvShape(n=1, cin=8193, size=(3, 3), cout=2, kernel=(3, 3), padding=1),
        ConvShape(n=1, cin=64, size=(9, 9, 9), cout=64, kernel=(7, 7, 7), padding=3),
    ],
    ids=lambda shape: f"{shape.cin}-{shape.cout}-{shape.kernel}",
)
@pytest.mark.parametrize("am_bytes", [786432, 300000])
def test_there_is_always_a_tiling(shape: ConvShape, am_bytes: int) -> None:
    """Long sums, many taps, many groups and many channels find a tiling, in a small AM too."""
    run = timed(shape, ("dw",), target=load_target("mt7004", {"memory.am.size_bytes": am_bytes}))
    assert run.macs >= 0.5 * run.useful_macs


def test_wide_layers_use_more_than_half_of_the_peak() -> None:
    """3 x 3 layers of 128 to 512 channels: a tiling that does not waste the chip."""
    for channels, size, kind in ((128, 28, "fp32"), (256, 14, "fp16"), (512, 14, "fp32")):
        shape = ConvShape(n=8, cin=channels, size=(size, size), cout=channels, kernel=(3, 3), padding=1)
        run = conv_backward(shape=shape, dtype=kind, grads=("dw",), numerics=False)
        assert run.achieved_gflops > 0.5 * run.peak_gflops


def test_db_is_summed_in_fp32() -> None:
    """4096 times 1/3 in fp16: sums in fp16 would stop growing."""
    shape = ConvShape(n=4, cin=1, size=(32, 32), cout=2, kernel=(1, 1))
    dy = np.full(shape.dy_shape, 1 / 3, np.float16)
    db = conv_backward(dy, shape=shape).db
    assert db is not None
    reference = conv_backward_reference(shape, dy, grads=("db",))["db"]
    np.testing.assert_array_equal(db, reference.astype(np.float16))
