"""What the page's checks decide, and what they leave open."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from kernels.errors import OperandError
from kernels.nx import (
    NX_CVBF_ERR_ARGS,
    NX_CVBF_OK,
    nx_f32_conv2d_backward,
    nx_f32_conv2d_backward_fast,
    to_elements,
)
from kernels.nx.geometry import checked, quotient, wrapped
from kernels.reference.references import conv_backward_reference
from kernels.shape.shapes import ConvShape
from simulator.device.device import Device
from simulator.errors import BoundsError, CapacityError, ProgramError
from targets.errors import TilesimError
from tests.kernels.nx_calls import UNTOUCHED, Problem

BOTH = pytest.mark.parametrize("function", [nx_f32_conv2d_backward_fast, nx_f32_conv2d_backward])


@BOTH
@pytest.mark.parametrize(
    ("n", "sizes"),
    [
        (1, (1, 4, 4, 1, 2, 2, 0, 0)),
        (1, (1, 4, 4, 1, 2, 2, -1, 0)),
        (0, (1, 4, 4, 1, 2, 2, 1, 0)),
        (2, (1, 4, 4, 1, 2, 2, 1, 0)),
        (-1, (1, 4, 4, 1, 2, 2, 1, 0)),
        (1, (1, 4, 4, 1, 5, 2, 1, 0)),  # OH = 0
        (1, (1, 4, 4, 1, 2, 5, 1, 0)),  # OW = 0
        (1, (1, 4, 4, 1, 6, 2, 2, 0)),  # -2 / 2 + 1 = 0
        (1, (1, 4, 4, 1, 2, 2, 1, -2)),  # OH = (4 - 4 - 2) / 1 + 1 = -1
        (1, (1, -4, 4, 1, 2, 2, 1, 0)),
    ],
)
def test_bad_arguments_give_4_and_write_nothing(
    function: object, n: int, sizes: tuple[int, int, int, int, int, int, int, int]
) -> None:
    """The checks come before anything is looked at, even the pointers."""
    assert callable(function)
    problem = Problem(*sizes, n=n)
    code, runs = problem.call(function)
    assert (code, runs) == (NX_CVBF_ERR_ARGS, [])
    assert problem.untouched
    arguments = [None if isinstance(each, np.ndarray) else each for each in problem.arguments()]
    assert function(*arguments) == NX_CVBF_ERR_ARGS


@BOTH
@pytest.mark.parametrize(("kernel", "stride"), [(5, 2), (5, 3), (6, 3), (7, 4)])
def test_a_kernel_larger_than_the_input_by_less_than_a_stride_has_one_output(
    function: object, kernel: int, stride: int
) -> None:
    """-1 / 2 is 0 in C, so that OH is 1: the taps outside are absent, as below a pad that is higher by so much."""
    assert callable(function)
    problem = Problem(2, 4, 4, 3, kernel, kernel, stride, 0)
    assert problem.call(function)[0] == NX_CVBF_OK
    shape = ConvShape(1, 2, (4, 4), 3, (kernel,) * 2, stride, ((0, kernel - 4),) * 2)
    wanted = conv_backward_reference(
        shape,
        problem.numbers("dout").reshape(shape.dy_shape),
        problem.numbers("weight").reshape(shape.w_shape),
        problem.numbers("input").reshape(shape.x_shape),
    )
    for name, grad in (("dinput", "dx"), ("dweight", "dw"), ("dbias", "db")):
        assert (problem.numbers(name) == wanted[grad].ravel()).all()


def test_a_kernel_larger_by_a_whole_stride_is_refused() -> None:
    """-2 / 2 is -1 however one rounds."""
    assert checked(1, 1, 4, 4, 1, 6, 6, 2, 0) is None
    assert [quotient(a, 2) for a in (-3, -2, -1, 0, 1, 3)] == [-1, -1, 0, 0, 0, 1]


@BOTH
@pytest.mark.parametrize("c_in", [0, -3])
def test_no_input_channels_leave_the_bias(function: object, c_in: int) -> None:
    """0: loops over channels do not run; dbias is still summed."""
    assert callable(function)
    problem = Problem(c_in, 4, 4, 2, 3, 3, 1, 1)
    assert problem.call(function)[0] == NX_CVBF_OK
    assert (problem.numbers("dbias") == problem.numbers("dout").reshape(2, -1).sum(axis=1)).all()
    assert (problem.numbers("dweight") == UNTOUCHED).all()
    assert (problem.numbers("dinput") == UNTOUCHED).all()


@BOTH
@pytest.mark.parametrize("c_out", [0, -2])
def test_no_output_channels_leave_a_zero_dinput(function: object, c_out: int) -> None:
    """0: dcol is a product over nothing, and dinput is set to zero."""
    assert callable(function)
    problem = Problem(2, 4, 4, c_out, 3, 3, 1, 1)
    assert problem.call(function)[0] == NX_CVBF_OK
    assert (problem.numbers("dinput") == 0).all()
    assert (problem.numbers("dbias") == UNTOUCHED).all()


@BOTH
@pytest.mark.parametrize(("kh", "kw"), [(0, 3), (3, 0), (-1, 2), (2, -2)])
def test_a_kernel_without_taps_leaves_bias_and_a_zero_dinput(function: object, kh: int, kw: int) -> None:
    """0: K is 0 or negative, no weight is touched; OH grows as the kernel shrinks."""
    assert callable(function)
    problem = Problem(2, 4, 4, 2, kh, kw, 1, 0)
    assert problem.call(function)[0] == NX_CVBF_OK
    assert (problem.numbers("dinput") == 0).all()
    assert (problem.numbers("dweight") == UNTOUCHED).all()
    assert (problem.numbers("dbias") == problem.numbers("dout").reshape(2, -1).sum(axis=1)).all()


@BOTH
@pytest.mark.parametrize("sizes", [(-1, 4, 4, 2, -3, 3), (1, 4, 4, 2, -2, -3), (-2, 4, 4, 1, 2, -1)])
def test_two_negative_sizes_make_weights_that_no_tap_reaches(
    function: object, sizes: tuple[int, int, int, int, int, int]
) -> None:
    """0: C_in KH KW is positive, its loops do not run; the fresh mapping of colT is zero, and so is dweight."""
    assert callable(function)
    problem = Problem(*sizes, 1, 0)
    assert problem.call(function)[0] == NX_CVBF_OK
    assert problem.numbers("dweight").size == sizes[3] * sizes[0] * sizes[4] * sizes[5]
    assert (problem.numbers("dweight") == 0).all()
    assert (problem.numbers("dinput") == (0 if sizes[0] > 0 else UNTOUCHED)).all()


@BOTH
@pytest.mark.parametrize(("h", "w"), [(0, 3), (0, 0), (-1, 3), (-1, -1)])
def test_an_input_without_places_makes_zero_weights(function: object, h: int, w: int) -> None:
    """0: with a pad there are outputs, and every tap of them lies in it. Two negative sizes: dinput has H x W zeros."""
    assert callable(function)
    problem = Problem(2, h, w, 3, 2, 2, 1, 2)
    assert problem.call(function)[0] == NX_CVBF_OK
    assert (problem.numbers("dweight") == 0).all()
    assert (problem.numbers("dinput") == (0 if h * w > 0 else UNTOUCHED)).all()
    assert (problem.numbers("dbias") == problem.numbers("dout").reshape(3, -1).sum(axis=1)).all()


@BOTH
def test_a_negative_pad_crops_the_input(function: object) -> None:
    """0: what is cut off has a gradient of exactly 0."""
    assert callable(function)
    problem = Problem(2, 7, 8, 3, 3, 3, 1, -1)
    assert problem.call(function)[0] == NX_CVBF_OK
    shape = ConvShape(1, 2, (5, 6), 3, (3, 3))
    x = problem.numbers("input").reshape(1, 2, 7, 8)[:, :, 1:-1, 1:-1]
    dy, w = problem.numbers("dout").reshape(shape.dy_shape), problem.numbers("weight").reshape(shape.w_shape)
    wanted = conv_backward_reference(shape, dy, w, x)
    dx = problem.numbers("dinput").reshape(2, 7, 8)
    assert (dx[:, 1:-1, 1:-1] == wanted["dx"][0]).all()
    assert np.abs(dx).sum() == np.abs(wanted["dx"]).sum()
    assert (problem.numbers("dweight") == wanted["dw"].ravel()).all()


def test_sizes_wrap_as_64_bit_integers_do() -> None:
    """H + 2 pad - KH beyond 2**63 is negative in C; OH is then, too."""
    assert wrapped(1 << 63) == -(1 << 63)
    assert checked(1, 1, (1 << 62), 4, 1, 1, 1, 1, (1 << 61)) is None


@pytest.mark.parametrize("value", [1.0, True, "1", 1 << 63, None])
def test_what_is_no_i64_is_an_error(value: object) -> None:
    """A C caller cannot pass it, so that there is no code for it."""
    problem = Problem(1, 4, 4, 1, 2, 2)
    arguments = list(problem.arguments())
    arguments[1] = value
    with pytest.raises(OperandError, match="an argument that is no i64: got"):
        nx_f32_conv2d_backward_fast(*arguments)


@BOTH
@pytest.mark.parametrize("name", ["input", "weight", "dout", "dinput", "dweight", "dbias"])
def test_an_array_that_is_too_short_is_an_error_and_nothing_is_written(function: object, name: str) -> None:
    """Where C would write past the end."""
    assert callable(function)
    problem = Problem(2, 4, 4, 3, 2, 2)
    problem.operands[name] = problem.operands[name][:-1].copy()
    with pytest.raises(BoundsError, match=f"ends before the call does: where {name}"):
        problem.call(function)
    assert problem.untouched


def test_other_arrays_are_refused() -> None:
    """4-byte elements, arrays that overlap, no pointer at all, no device."""
    problem = Problem(2, 4, 4, 3, 2, 2)
    good = list(problem.arguments())

    def refusal(place: int, value: object, error: type[TilesimError]) -> str:
        arguments = [*good[:place], value, *good[place + 1 :]]
        with Device("nx_host"), pytest.raises(error) as caught:
            nx_f32_conv2d_backward_fast(*arguments)
        return str(caught.value)

    assert "to_elements" in refusal(0, np.zeros(32, np.float32), OperandError)
    assert "Device.array" in refusal(0, None, OperandError)
    assert "no array lies at this address" in refusal(0, 0x20000000, BoundsError)
    whole = to_elements(np.zeros(64))
    good[0] = whole[:40]
    assert "arrays that overlap" in refusal(12, whole[20:], OperandError)
    with pytest.raises(ProgramError, match="no device is in use"):
        nx_f32_conv2d_backward_fast(*problem.arguments())
    with pytest.raises(OperandError, match="does not run on this chip"):
        problem.call(nx_f32_conv2d_backward_fast, target="mt7004")
    with Device("nx_host") as device:
        plain = device.array("ddr", 32, "fp32")
        assert "not 8 bytes" in refusal_of(device, [plain, *good[1:]])


def refusal_of(device: Device, arguments: list[object]) -> str:
    """The refusal of a call on a device."""
    with pytest.raises(OperandError) as caught:
        nx_f32_conv2d_backward_fast(*arguments)  # type: ignore[arg-type]  # whatever is tried
    assert device.runs == []
    return str(caught.value)


@pytest.mark.parametrize("workers", [0, 17, -1, True, 1.0])
def test_workers_that_there_are_no_cores_for_are_an_error(workers: object) -> None:
    """1 to 16 on nx_host."""
    problem = Problem(2, 4, 4, 3, 2, 2)
    with pytest.raises(OperandError, match="limit 1 to 16"):
        problem.call(nx_f32_conv2d_backward_fast, workers=workers)
    assert problem.untouched


def test_a_team_makes_no_call_that_forks() -> None:
    """A function that runs once a core would fork once a core."""
    problem = Problem(2, 4, 4, 3, 2, 2)
    with Device("nx_host") as device, pytest.raises(ProgramError, match="inside a team"):
        device.spmd(lambda: nx_f32_conv2d_backward_fast(*problem.arguments()), 0b11)
    assert problem.untouched


def test_mappings_that_do_not_fit_are_an_error_and_nothing_is_written() -> None:
    """Where mmap fails, the page would write to address -12."""
    with Device("nx_host", numerics=False) as device:
        arrays = [device.array("ddr", 2 * 10**7, "fp32_i64") for _ in range(6)]
        with pytest.raises(CapacityError):
            nx_f32_conv2d_backward_fast(arrays[0], 1, 128, 300, 300, arrays[1], 64, 11, 11, 1, 5, *arrays[2:])
        assert device.runs == []


def test_addresses_and_arrays_of_a_device_are_pointers() -> None:
    """Operands that lie one behind another in one array, by their addresses."""
    problem = Problem(2, 4, 4, 3, 2, 2, 1, 1)
    problem.call(nx_f32_conv2d_backward_fast)
    names = ("input", "weight", "dout", "dinput", "dweight", "dbias")
    sizes = [problem.operands[name].size for name in names]
    with Device("nx_host") as device:
        heap = device.array("ddr", sum(sizes), "fp32_i64", data=-1)
        starts = [sum(sizes[:place]) for place in range(6)]
        for name, start, size in zip(names[:3], starts, sizes, strict=False):
            heap.data[start : start + size] = problem.numbers(name)
        at = [heap.address + 8 * start for start in starts]
        code = nx_f32_conv2d_backward_fast(at[0], 1, 2, 4, 4, at[1], 3, 2, 2, 1, 1, *at[2:])
        assert code == NX_CVBF_OK
        with pytest.raises(BoundsError, match="between two elements"):
            nx_f32_conv2d_backward_fast(at[0] + 4, 1, 2, 4, 4, at[1], 3, 2, 2, 1, 1, *at[2:])
    for name, start, size in zip(names, starts, sizes, strict=True):
        assert (heap.data[start : start + size] == problem.numbers(name)).all()


def test_the_example_of_the_page_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    """The first Python block of docs/vendor-calls-nx.md gives the text block after it."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "vendor-calls-nx.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```\s*```text\n(.*?)```", page, re.DOTALL)
    assert found is not None
    exec(compile(found[1], "example", "exec"), {})  # noqa: S102  # the page's own example
    assert capsys.readouterr().out == found[2]
