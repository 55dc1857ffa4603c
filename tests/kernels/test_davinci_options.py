"""Gradients on Da Vinci chips under every option: tilings, cores, layouts, watching, values that are no numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.conv_backward import conv_backward
from kernels.conv_forward import conv_forward
from kernels.errors import OperandError, TilingError
from kernels.families import stored_in
from kernels.reference.checking import check_conv_forward
from kernels.reference.references import conv_backward_reference, conv_forward_reference
from kernels.shape.shapes import ConvShape
from simulator.machine import Checks
from tests.kernels.davinci_rows import CHIPS, check_integers, operands

PLAIN = ConvShape(3, 20, (9, 11), 40, (3, 3), stride=(2, 1), padding=((1, 2), (0, 1)))
GROUPS = ConvShape(2, 12, (4, 6, 7), 24, (2, 3, 3), groups=4, padding=1, dilation=(1, 2, 1))
TRANSPOSED = ConvShape(2, 6, (5, 7), 10, (3, 2), stride=2, padding=1, transposed=True, output_padding=1)
SHAPES = (PLAIN, GROUPS, TRANSPOSED)
MOST_INSTRUCTIONS = 400_000


@pytest.mark.parametrize("shape", SHAPES, ids=["plain", "groups", "transposed"])
@pytest.mark.parametrize("chip", CHIPS, ids="-".join)
def test_layout_conversions(chip: tuple[str, str], shape: ConvShape) -> None:
    """The gradients are the same with the conversions of layouts, which take time where the chip has them."""
    plain = check_integers(shape, *chip)
    converted = check_integers(shape, *chip, include_layout=True)
    names = [launch.name for launch in converted.launches]
    there = not (chip[0] == "ascend950pr" and shape.ndim == 2)
    assert ("trans_data" in names) == there
    assert (converted.cycles > plain.cycles) == there


TILINGS: tuple[dict[str, Any], ...] = (
    {"walk": "flat", "m": 32, "n": 16},
    {"walk": "rows", "m": 16, "k": 16},
    {"m": 5, "channels": 16, "taps": 2},
    {"l1_a": 1, "l1_b": 1, "split": "axes"},
    {"l1_a": 1, "m": 64, "taps": 1},
    {"dw.m": 16, "dw.n": 32, "dw.k": 48},
    {"dw.rows": 1, "dw.columns": 3, "dw.window": "tile"},
    {"dw.l1_a": 1, "dw.l1_b": 1, "dw.flush": "tile", "dw.batch": 3, "dw.n_parts": 2},
    {"dw.l1_a": 1, "dw.l1_b": 2, "dw.rows": 2},
    {"db.k": 7},
)


@pytest.mark.parametrize("tiling", TILINGS, ids=lambda t: ",".join(f"{k}={v}" for k, v in t.items()))
@pytest.mark.parametrize("shape", [PLAIN, GROUPS], ids=["plain", "groups"])
def test_any_tiling_gives_the_reference(shape: ConvShape, tiling: dict[str, Any]) -> None:
    """Fields that are given are kept and change no integer result."""
    run = check_integers(shape, "ascend910b1", "fp16", tiling=tiling)
    assert {name: run.tiling[name] for name in tiling} == tiling


@pytest.mark.parametrize("weights", ["chunk", "step", "l0b"])
@pytest.mark.parametrize("l1", [1, 2])
@pytest.mark.parametrize("shape", SHAPES, ids=["plain", "groups", "transposed"])
def test_forward(shape: ConvShape, weights: str, l1: int) -> None:
    """The output, whichever way the weights take."""
    made = operands(shape, "fp16", True)
    tiling: dict[str, Any] = {"weights": weights, "l1_a": l1, "l1_b": l1}
    if shape.transposed and weights != "chunk":
        with pytest.raises(TilingError, match="come in chunks"):
            conv_forward(made["x"], made["w"], shape=shape, target="ascend910b1", tiling=tiling)
        return
    run = conv_forward(made["x"], made["w"], shape=shape, target="ascend910b1", cores=5, tiling=tiling)
    wanted = conv_forward_reference(shape, made["x"], made["w"]).astype(np.float16)
    np.testing.assert_array_equal(run.outputs["y"], wanted)


@pytest.mark.parametrize("shape", SHAPES, ids=["plain", "groups", "transposed"])
@pytest.mark.parametrize("chip", CHIPS, ids="-".join)
def test_forward_on_every_chip(chip: tuple[str, str], shape: ConvShape) -> None:
    """Random data are within the bound, with the conversions of layouts and without."""
    target, computed = chip
    made = operands(shape, computed, False)
    for include in (False, True):
        run = conv_forward(
            made["x"], made["w"], shape=shape, target=target, dtype=computed, include_layout=include
        )
        assert check_conv_forward(run, shape, made["x"], made["w"])["y"].ok


@pytest.mark.parametrize("shape", SHAPES, ids=["plain", "groups", "transposed"])
@pytest.mark.parametrize("chip", CHIPS, ids="-".join)
def test_forward_with_a_bias(chip: tuple[str, str], shape: ConvShape) -> None:
    """It is added before the only rounding: integers are exact, random data within the bound."""
    target, computed = chip
    rng = np.random.default_rng(5)
    for integers in (True, False):
        made = operands(shape, computed, integers)
        drawn = rng.integers(-9, 10, shape.cout) if integers else 100 * rng.standard_normal(shape.cout)
        bias = drawn.astype(made["x"].dtype)
        given = (made["x"], made["w"], bias)
        run = conv_forward(*given, shape=shape, target=target, dtype=computed, cores=3)
        if integers:
            wanted = conv_forward_reference(shape, *given).astype(made["x"].dtype)
            np.testing.assert_array_equal(run.outputs["y"], wanted)
        assert check_conv_forward(run, shape, *given)["y"].ok


def test_how_a_bias_arrives() -> None:
    """By the table of the cube, once for tiles of the same channels; by the vector unit where there is no table."""
    calls = {
        target: conv_forward(
            shape=PLAIN, with_bias=True, target=target, dtype="fp16", numerics=False, cores=1
        ).trace.to_pandas()["name"]
        for target in ("ascend910b1", "ascend910a")
    }
    table, vector = calls["ascend910b1"], calls["ascend910a"]
    assert (table == "bias_table").sum() == (table == "load_bias").sum() < (table == "fixpipe").sum()
    assert not (table == "add").any()
    assert (vector == "add").sum() == (vector == "cast").sum() == (vector == "fixpipe").sum()


def test_a_bias_makes_no_launch_and_little_time() -> None:
    """The cube adds it on the way: what it costs is the issue of its load, and a wait for it before the first tile."""
    shape = ConvShape(n=2, cin=64, size=(56, 56), cout=64, kernel=(3, 3), padding=1)
    plain, biased = (
        conv_forward(shape=shape, with_bias=given, target="ascend910b1", dtype="fp16", numerics=False)
        for given in (False, True)
    )
    assert [launch.name for launch in plain.launches] == [launch.name for launch in biased.launches]
    assert plain.cycles <= biased.cycles < plain.cycles + 1000


def test_a_bias_without_channels_is_refused() -> None:
    """Where no channels are summed there is no tile that could begin at it."""
    with pytest.raises(OperandError, match="no channels are summed"):
        conv_forward(
            shape=ConvShape(n=1, cin=0, size=(4, 4), cout=8, kernel=(1, 1)),
            with_bias=True,
            target="ascend910b1",
            dtype="fp16",
            numerics=False,
        )


@pytest.mark.parametrize(("cores", "count"), [(1, 1), (7, 7), ([3, 5], 2)])
def test_any_cores_give_the_reference(cores: int | list[int], count: int) -> None:
    """Any number of cores, and any of them."""
    assert check_integers(PLAIN, "ascend910b1", "fp16", cores=cores).cores == count


@pytest.mark.parametrize("chip", ["ascend910b1", "ascend910a"])
@pytest.mark.parametrize(
    "checks",
    [
        Checks(dma="early"),
        Checks(dma="late"),
        Checks(values="instructions"),
        Checks(races=True),
        Checks(fold=False),
    ],
    ids=["early", "late", "instructions", "races", "unfolded"],
)
def test_however_it_is_watched(chip: str, checks: Checks) -> None:
    """When copies land, and who watches, changes nothing."""
    plain = check_integers(PLAIN, chip, "fp16", cores=3)
    watched = check_integers(PLAIN, chip, "fp16", cores=3, checks=checks)
    assert watched.cycles == plain.cycles


@pytest.mark.parametrize("shape", SHAPES, ids=["plain", "groups", "transposed"])
def test_numbers_do_not_change_the_trace(shape: ConvShape) -> None:
    """A run without numbers has the same trace."""
    timed = conv_backward(shape=shape, target="ascend910b1", dtype="fp16", numerics=False)
    assert check_integers(shape, "ascend910b1", "fp16").trace == timed.trace


@pytest.mark.parametrize("name", ["dy", "w", "x"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("shape", SHAPES, ids=["plain", "groups", "transposed"])
def test_what_is_no_number_reaches_only_its_sums(shape: ConvShape, name: str, value: float) -> None:
    """A NaN or an infinity in one operand is where the reference has it: padding and other groups never meet it."""
    made = operands(shape, "fp16", True)
    place = tuple(size // 2 for size in made[name].shape)
    made[name][place] = value
    run = conv_backward(**made, shape=shape, target="ascend910b1")
    reference = conv_backward_reference(shape, **made)
    for grad, found in run.outputs.items():
        np.testing.assert_array_equal(np.isnan(found), np.isnan(reference[grad]), err_msg=grad)
        finite = np.isfinite(reference[grad])
        np.testing.assert_array_equal(found[finite], reference[grad][finite].astype(np.float16), err_msg=grad)


def test_hf32_drops_bits() -> None:
    """2077 survives and 4099 becomes 4100; the bias' gradient does not go through the cube."""
    shape = ConvShape(1, 1, (2,), 1, (1,))
    dy = np.array([[[2077, 4099]]], np.float32)
    run = conv_backward(
        dy,
        np.ones((1, 1, 1), np.float32),
        shape=shape,
        grads=("dx", "db"),
        target="ascend910b1",
        dtype="hf32",
    )
    assert run.outputs["dx"].tolist() == [[[2077, 4100]]]
    assert run.outputs["db"].tolist() == [2077 + 4099]


def test_native_and_refused_types() -> None:
    """The chip's best type; types that its cube lacks are refused, with those that it has."""
    assert conv_backward(shape=PLAIN, target="ascend950pr", dtype="native", numerics=False).dtype == "fp16"
    for target, wrong in (("ascend910a", "bf16"), ("ascend310p3", "fp32"), ("ascend310b1", "hf32")):
        with pytest.raises(OperandError, match="does not compute") as caught:
            conv_backward(shape=PLAIN, target=target, dtype=wrong, numerics=False)
        assert "fp16" in str(caught.value)
    with pytest.raises(OperandError, match="no layout to convert"):
        conv_backward(shape=PLAIN, target="mt7004", dtype="fp16", include_layout=True, numerics=False)


@pytest.mark.parametrize(
    ("field", "prefix", "remedy"), [("nn", "", "did you mean n?"), ("dw.row", "dw.", "did you mean dw.rows?")]
)
def test_unknown_fields_are_named(field: str, prefix: str, remedy: str) -> None:
    """With their prefix, as the fields that there are."""
    with pytest.raises(TilingError, match="unknown field") as caught:
        conv_backward(shape=PLAIN, target="ascend910b1", dtype="fp16", tiling={field: 1}, numerics=False)
    assert caught.value.field == field
    assert f"{prefix}m, {prefix}n, {prefix}k" in str(caught.value)
    assert remedy in str(caught.value)


def test_tilings_that_cannot_be() -> None:
    """A field of a gradient that is not asked for, and one that the memories cannot hold."""
    with pytest.raises(TilingError, match="not asked for"):
        conv_backward(
            shape=PLAIN, target="ascend910b1", dtype="fp16", grads=("dw",), tiling={"m": 16}, numerics=False
        )
    big = ConvShape(1, 512, (64, 64), 512, (3, 3))
    fields = {"n": 512, "m": 4096}
    with pytest.raises(TilingError, match="no tiling fits"):
        conv_backward(
            shape=big, target="ascend910b1", dtype="fp16", grads="dx", tiling=fields, numerics=False
        )


@pytest.mark.parametrize("chip", CHIPS, ids="-".join)
@pytest.mark.parametrize("shape", [ConvShape(0, 3, (5, 5), 3, (3, 3)), ConvShape(2, 3, (2, 2), 3, (5, 5))])
def test_nothing_to_sum(chip: tuple[str, str], shape: ConvShape) -> None:
    """No images, or no outputs: gradients are zeros of their shapes."""
    run = check_integers(shape, *chip)
    assert run.outputs["dw"].dtype == stored_in(chip[1]).storage
    assert not run.outputs["dw"].any()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("shape", "grads"),
    [
        (ConvShape(32, 3, (224, 224), 64, (7, 7), stride=2, padding=3), ("dw",)),
        (ConvShape(32, 64, (56, 56), 64, (3, 3), padding=1), ("dx", "dw")),
        (ConvShape(32, 512, (7, 7), 2048, (1, 1)), ("dx", "dw")),
    ],
    ids=["first", "3x3", "1x1"],
)
def test_a_layer_of_resnet_is_few_instructions(shape: ConvShape, grads: tuple[str, ...]) -> None:
    """Layers of ResNet-50 with 32 images stay below a few 100,000 instructions."""
    run = conv_backward(shape=shape, target="ascend910b1", dtype="bf16", grads=grads, numerics=False)
    assert len(run.trace) < MOST_INSTRUCTIONS
