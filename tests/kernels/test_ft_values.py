"""The vendor's calls compute the gradient: every path, data type, memory and chip, against the float64 reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.shape.shapes import ConvShape
from simulator.device.device import Device
from simulator.machine import Checks
from targets.errors import TilesimError
from tests.kernels.ft_calls import PATHS, SHAPES, Case, least_budget

CHIPS = [("mt7004", "fp32"), ("mt7004", "fp16"), ("ft78ne", "fp32")]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("chip", "kind"), CHIPS)
@pytest.mark.parametrize("private", [False, True], ids=["s", "p"])
def test_integers_give_exactly_the_reference(chip: str, kind: str, private: bool, name: str) -> None:
    """At the page's least budget, on top of what dx holds; the path is the one that the page's conditions name."""
    with Device(chip) as device:
        case = Case.on(device, SHAPES[name], kind, private=private)
        run = case.call(0b1011)
        path = PATHS.get(name, "general")
        suffix = {"general": "", "depthwise": "_depthwise", "1x1": "_1x1"}[path]
        assert case.exact()
        assert run.tiling["path"] == path
        assert run.launches[-1].name == "conv_dx" + suffix + ("_private" if private else "")
        assert run.dx is not None
        assert np.array_equal(run.dx, case.dx.data)


@pytest.mark.parametrize("name", ["1x1", "3x3", "groups", "depthwise"])
@pytest.mark.parametrize(("chip", "kind"), CHIPS)
@pytest.mark.parametrize("private", [False, True], ids=["s", "p"])
def test_real_numbers_stay_within_the_bound(chip: str, kind: str, private: bool, name: str) -> None:
    """Sums are fp32 and rounded once, also where dx is fp16."""
    with Device(chip) as device:
        case = Case.on(device, SHAPES[name], kind, private=private, integers=False)
        case.call(0b11)
        assert case.compared().ok


@pytest.mark.parametrize("name", ["1x1", "3x3", "depthwise"])
@pytest.mark.parametrize("private", [False, True], ids=["s", "p"])
def test_a_second_call_adds_the_gradient_again(private: bool, name: str) -> None:
    """Dx is added to."""
    with Device("mt7004") as device:
        case = Case.on(device, SHAPES[name], private=private)
        first, second = case.call(), case.call()
        assert case.exact(times=2)
        assert not case.exact(times=1)
        assert first.cycles == second.cycles
        assert device.cycles == first.cycles + second.cycles
        assert device.runs == [first, second]


@pytest.mark.parametrize(("chip", "memory"), [("mt7004", "gsm"), ("ft78ne", "smc")])
@pytest.mark.parametrize("name", ["1x1", "3x3", "groups", "depthwise"])
def test_operands_in_the_shared_memory(chip: str, memory: str, name: str) -> None:
    """What lies in GSM or SMC already is loaded from there."""
    with Device(chip) as device:
        case = Case.on(device, SHAPES[name], memory=memory)
        run = case.call(0b11)
        assert case.exact()
        traffic = run.to_dict()["traffic_bytes"]
        weights = case.w.bytes if name in ("3x3", "groups") else 0  # put in another order, by way of DDR
        assert traffic.get("ddr", {"write": 0})["write"] == weights
        assert traffic[memory]["read"] >= case.dy.bytes + case.dx.bytes + case.w.bytes


@pytest.mark.parametrize("name", ["1x1", "3x3", "depthwise"])
def test_memory_that_other_arrays_take_is_left_alone(name: str) -> None:
    """A kernel finds its buffers beside arrays in AM and GSM, and takes smaller tiles."""
    with Device("mt7004") as device:
        held = [
            device.array("am", 170_000, "fp32", data=7),
            device.array("gsm", 1_500_000, "fp32", address=0x70000000 + 6291456 - 6_000_000, data=7),
        ]
        case = Case.on(device, SHAPES[name])
        case.call(0b1)
        assert case.exact()
        assert all((array.data == 7).all() for array in held)


@pytest.mark.parametrize("name", ["3x3", "depthwise", "groups"])
@pytest.mark.parametrize("kind", ["fp32", "fp16"])
def test_a_private_call_cuts_what_its_workspace_cannot_hold(kind: str, name: str) -> None:
    """A least budget and a large layer: products of few outputs, fp16 sums strip by strip."""
    small = SHAPES[name]
    shape = ConvShape(**(small.to_dict() | {"n": 1, "size": (40, 37)}))  # type: ignore[arg-type]  # to_dict gives the constructor's own arguments
    with Device("mt7004") as device:
        case = Case.on(device, shape, kind, private=True, buffer_size_=least_budget(shape, kind) // 2 + 700)
        run = case.call()
        assert case.exact()
        if kind == "fp16":
            assert int(str(run.tiling["rows"])) < 40


@pytest.mark.parametrize("checks", [Checks(dma="early"), Checks(dma="late"), Checks(races=True)])
@pytest.mark.parametrize("name", ["1x1", "3x3", "groups", "depthwise"])
@pytest.mark.parametrize("kind", ["fp32", "fp16"])
def test_outputs_do_not_depend_on_when_dma_lands(checks: Checks, kind: str, name: str) -> None:
    """Hazards of dx that is read and written back hold, and no core touches another's."""
    with Device("mt7004", checks=checks) as device:
        case = Case.on(device, SHAPES[name], kind)
        case.call(0b11, {"rows": 2})
        assert case.exact()


@pytest.mark.parametrize("name", ["1x1", "3x3", "depthwise"])
@pytest.mark.parametrize("private", [False, True], ids=["s", "p"])
def test_values_do_not_change_the_trace(private: bool, name: str) -> None:
    """A device that only times takes the same cycles, row for row."""
    hashes = []
    for numerics in (True, False):
        with Device("mt7004", numerics=numerics) as device:
            run = Case.on(device, SHAPES[name], "fp16", private=private).call(0b111)
            hashes.append(run.trace.hash())
            assert (run.dx is not None) is numerics
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize("private", [False, True], ids=["s", "p"])
@pytest.mark.parametrize("path", ["general", "depthwise"])
def test_a_tap_in_the_padding_multiplies_nothing(private: bool, path: str) -> None:
    """col2im drops taps outside dx: an infinite weight there reaches only the inputs that the tap reads, and no NaN."""
    channels = 4
    groups = channels if path == "depthwise" else 1
    shape = ConvShape(1, channels, (5, 5), channels, (3, 3), padding=1, groups=groups)
    with Device("mt7004") as device:
        case = Case.on(device, shape, private=private)
        case.dy.data[...] = 1
        case.w.data[...] = 1
        case.w.data[0, 0, 0, 0] = np.inf
        case.call(0b11)
        infinite = np.isinf(case.dx.data[0, ..., 0])
        assert not np.isnan(case.dx.data).any()
        assert infinite[:4, :4].all()  # input (h, w) is read by tap (0, 0) of output (h + 1, w + 1)
        assert not infinite[4].any()
        assert not infinite[:, 4].any()


def test_zeros_times_infinity_are_nan_where_the_tap_reads() -> None:
    """A zero in dy is a number that is multiplied, as on the chip."""
    with Device("mt7004") as device:
        case = Case.on(device, SHAPES["3x3"])
        case.dy.data[...] = 0
        case.w.data[...] = np.inf
        case.call()
        assert np.isnan(case.dx.data).all()


def _more(**tiling: Any) -> dict[str, Any]:
    return tiling


@pytest.mark.parametrize(
    ("name", "tiling"),
    [
        ("3x3", _more(column="blocks", split="channels")),
        ("3x3", _more(column="none", split="rows")),
        ("3x3", _more(column_place="workspace")),
        ("3x3", _more(positions=1, rows=1, cols=3)),
        ("3x3", _more(dx_buffers=1, rows=2)),
        ("3x3", _more(fp16_accumulate="fp16")),
        ("depthwise", _more(split="channels", rows=1, cols=2, channels=5)),
        ("depthwise", _more(split="rows", ahead=0)),
        ("1x1", _more(split="channels", k=5)),
    ],
)
def test_fields_of_the_tiling_can_be_given(name: str, tiling: dict[str, Any]) -> None:
    """They are kept, printed, and do not change the result."""
    with Device("mt7004") as device:
        case = Case.on(device, SHAPES[name], "fp16")
        run = case.call(0b111, tiling)
        assert case.exact()
        assert {field: run.tiling[field] for field in tiling} == tiling


@pytest.mark.parametrize(
    ("name", "tiling"),
    [
        ("3x3", _more(positions=2)),
        ("depthwise", _more(rows=2, cols=3, channels=5)),
        ("1x1", _more(positions=3, rows=2)),
    ],
)
def test_fields_of_a_private_tiling_can_be_given(name: str, tiling: dict[str, Any]) -> None:
    """As those of a shared one."""
    with Device("mt7004") as device:
        case = Case.on(device, SHAPES[name], "fp16", private=True)
        run = case.call(tiling=tiling)
        assert case.exact()
        assert {field: run.tiling[field] for field in tiling} == tiling


def test_whole_column_rows_are_the_default() -> None:
    """The budget holds two halves of whole column rows; in fp16 their sums take twice the bytes."""
    with Device("mt7004") as device:
        shape = SHAPES["3x3"]
        runs = [Case.on(device, shape, kind, buffer_size_=0x10000).call() for kind in ("fp32", "fp16")]
    assert [run.tiling["column"] for run in runs] == ["rows", "rows"]
    assert [run.tiling["budget_bytes"] for run in runs] == [0x10000, 0x20000]
    assert [run.tiling["buffer_bytes"] for run in runs] == [0x10000, 0x10000]


def test_columns_are_cut_where_whole_rows_fit_no_memory() -> None:
    """A column row of 400 KB: half of AM cannot hold two of them; asked for, they are refused."""
    shape = ConvShape(1, 4096, (2, 2), 3, (5, 5), padding=2)
    with Device("mt7004") as device:
        case = Case.on(device, shape)
        run = case.call(0b1111)
        assert case.exact()
        assert run.tiling["column"] == "blocks"
        with pytest.raises(TilesimError, match="no tiling fits the memories"):
            case.call(0b1111, {"column": "rows"})
        assert case.exact()


def test_the_depthwise_path_multiplies_no_matrices() -> None:
    """It is made of vector instructions, and counts every product that it makes."""
    shape = SHAPES["depthwise"]
    with Device("mt7004") as device:
        run = Case.on(device, shape).call(0b11)
        names = set(run.trace.to_pandas()["name"])
        assert "multiply_add" in names
        assert "matmul" not in names
    rows = sum(1 for oh in range(shape.out[0]) for kh in range(3) if 0 <= 2 * oh - 1 + kh < 9)
    cols = sum(1 for ow in range(shape.out[1]) for kw in range(3) if 0 <= ow - 1 + kw < 7)
    assert run.macs == shape.n * shape.cin * rows * cols


def test_the_1x1_path_makes_no_columns() -> None:
    """Products are added onto dx where it lies, and weights need no other order."""
    with Device("mt7004") as device:
        for private in (False, True):
            run = Case.on(device, SHAPES["1x1"], private=private).call()
            names = set(run.trace.to_pandas()["name"])
            assert "matmul_into" in names
            assert not names & {"matmul", "accumulate", "permute"}


def test_a_private_call_moves_no_operand() -> None:
    """Only the vector unit works, and one launch is made."""
    with Device("mt7004") as device:
        for name in SHAPES:
            run = Case.on(device, SHAPES[name], "fp16", private=True).call()
            assert len(run.launches) == 1
            assert run.cores == 1
            assert set(run.trace.to_pandas()["engine"]) <= {"VPU", "SCALAR"}
            for array in device.arrays:
                device.free(array)


def test_a_private_depthwise_call_by_hand() -> None:
    """32 channels fill a register; 3 x 3 taps of a 4 x 4 image, padded by one.

    Weights are turned: 9 registers, loaded and stored at 4 moves a cycle, 20 for the run and 7 for the call. Each axis
    has 10 pairs of an output and a tap that stays inside: 3 x 10 runs, 100 positions of 3 moves, a register of weights
    a run.
    """
    shape = ConvShape(1, 32, (4, 4), 32, (3, 3), padding=1, groups=32)
    with Device("mt7004") as device:
        run = Case.on(device, shape, private=True).call()
        turn = 7 + (-(-2 * 9 // 4) + 20 + 7)
        add = 7 + (-(-(3 * 100 + 30) // 4) + 30 * 20 + 7)
        assert run.cycles == 12_000 + turn + add
        assert run.macs == 100 * 32
