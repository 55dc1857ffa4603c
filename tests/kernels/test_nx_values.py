"""What the nx calls compute: fast beside serial, beside the reference, beside loops written from the page."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernels.nx import (
    NX_CVBF_OK,
    backward_batch,
    from_elements,
    nx_f32_conv2d_backward,
    nx_f32_conv2d_backward_fast,
    to_elements,
)
from kernels.nx.geometry import checked
from kernels.nx.trial import note_errors
from kernels.reference.references import conv_backward_reference
from kernels.shape.shapes import ConvShape
from simulator.device.device import Device
from simulator.machine import Checks
from tests.kernels.nx_calls import Array, Problem

OUTPUTS = ("dinput", "dweight", "dbias")


def random_problem(seed: int, *, real: bool = False) -> Problem:
    """A small problem that the checks let through: strides 1 to 4, pads 0 to 5."""
    rng = np.random.default_rng(seed)
    while True:
        c_in, c_out, kh, kw = (int(n) for n in rng.integers(1, 5, 4))
        h, w = (int(n) for n in rng.integers(1, 11, 2))
        sizes = (c_in, h, w, c_out, kh, kw, int(rng.integers(1, 5)), int(rng.integers(0, 6)))
        if checked(1, *sizes) is not None:
            return Problem(*sizes, seed=seed, real=real)


def reached(p: Problem) -> tuple[int, int, dict[tuple[int, int], int]]:
    """M, K, and the place in the input of each pair of output and tap that lies inside, in the page's order."""
    g = checked(1, *p.sizes)
    assert g is not None
    places = {}
    taps = list(itertools.product(range(g.c_in), range(g.kh), range(g.kw)))
    for pos, (oh, ow) in enumerate(itertools.product(range(g.oh), range(g.ow))):
        for k, (ci, kh, kw) in enumerate(taps):
            ih, iw = oh * g.stride + kh - g.pad, ow * g.stride + kw - g.pad
            if 0 <= ih < g.h and 0 <= iw < g.w:
                places[pos, k] = (ci * g.h + ih) * g.w + iw
    return g.m, g.k, places


def page_loops(p: Problem) -> dict[str, Array]:
    """The page's loops, an element at a time, in fp32."""
    m, length, places = reached(p)
    x, w, dout = (p.numbers(name) for name in ("input", "weight", "dout"))
    columns, dcol = np.zeros((length, m), np.float32), np.zeros((m, length), np.float32)
    made = {name: np.zeros(p.operands[name].size, np.float32) for name in OUTPUTS}
    for (pos, k), place in places.items():
        columns[k, pos] = x[place]
    for co, k, pos in itertools.product(range(p.c_out), range(length), range(m)):
        made["dweight"][co * length + k] += dout[co * m + pos] * columns[k, pos]
    for co, k, pos in itertools.product(range(p.c_out), range(length), range(m)):
        dcol[pos, k] += dout[co * m + pos] * w[co * length + k]
    for co, pos in itertools.product(range(p.c_out), range(m)):
        made["dbias"][co] += dout[co * m + pos]
    for (pos, k), place in places.items():
        made["dinput"][place] += dcol[pos, k]
    return made


def test_fast_equals_serial_on_integers_over_200_shapes() -> None:
    """The page's promise, to the bit, over strides 1 to 4 and pads 0 to 5."""
    strides, pads = set(), set()
    for seed in range(200):
        fast, serial = random_problem(seed), random_problem(seed)
        strides.add(fast.stride)
        pads.add(fast.pad)
        assert fast.call(nx_f32_conv2d_backward_fast, workers=1 + seed % 16)[0] == NX_CVBF_OK
        assert serial.call(nx_f32_conv2d_backward)[0] == NX_CVBF_OK
        for name in OUTPUTS:
            assert (fast.operands[name] == serial.operands[name]).all(), (seed, name)
    assert (strides, pads) == ({1, 2, 3, 4}, {0, 1, 2, 3, 4, 5})


@pytest.mark.parametrize("seed", range(6))
def test_fast_is_the_loops_of_the_page_to_the_bit(seed: int) -> None:
    """Numbers that round: the order of every sum is the page's."""
    problem = random_problem(1000 + seed, real=True)
    problem.call(nx_f32_conv2d_backward_fast, workers=3)
    for name, wanted in page_loops(problem).items():
        assert (problem.operands[name] == to_elements(wanted)).all(), name


@pytest.mark.parametrize("function", [nx_f32_conv2d_backward_fast, nx_f32_conv2d_backward])
def test_gradients_stay_within_the_bound_of_the_reference(function: object) -> None:
    """Normal numbers, against the float64 reference; one layer and a strided one."""
    assert callable(function)
    for sizes in ((8, 14, 14, 16, 3, 3, 1, 1), (3, 20, 18, 8, 7, 5, 2, 3), (16, 9, 9, 4, 1, 1, 1, 0)):
        problem = Problem(*sizes, real=True)
        c_in, h, w, c_out, kh, kw, stride, pad = sizes
        shape = ConvShape(1, c_in, (h, w), c_out, (kh, kw), stride, pad)
        operands = [
            problem.numbers(name).reshape(dims)
            for name, dims in (("dout", shape.dy_shape), ("weight", shape.w_shape), ("input", shape.x_shape))
        ]
        (run,) = problem.call(function)[1]
        note_errors(run, shape, operands[0], operands[1], operands[2])
        assert run.max_error is not None
        assert run.tolerance is not None
        assert set(run.max_error) == {"dx", "dw", "db"}
        assert all(run.max_error[name] <= run.tolerance[name] for name in run.max_error)
        assert max(run.max_error.values()) > 0


def test_outputs_are_assigned_and_not_added_to() -> None:
    """A second call over the results of the first gives them again."""
    problem = random_problem(3)
    problem.call(nx_f32_conv2d_backward_fast)
    first = {name: problem.operands[name].copy() for name in OUTPUTS}
    problem.call(nx_f32_conv2d_backward_fast)
    assert all((problem.operands[name] == first[name]).all() for name in OUTPUTS)


def test_numbers_lie_in_the_low_half_of_an_element() -> None:
    """The high half is not looked at, and is 0 in what is written."""
    plain, dirty = random_problem(5), random_problem(5)
    for name in ("input", "weight", "dout"):
        dirty.operands[name] |= np.int64(-1) << 32
    plain.call(nx_f32_conv2d_backward_fast)
    dirty.call(nx_f32_conv2d_backward_fast)
    for name in OUTPUTS:
        assert (plain.operands[name] == dirty.operands[name]).all()
        assert (plain.operands[name] >> 32 == 0).all()
    assert from_elements(to_elements([1.5, -0.0])).tolist() == [1.5, -0.0]
    assert to_elements(1.0).tolist() == [0x3F800000]


def test_padding_is_multiplied_by_the_fast_call_and_skipped_by_the_serial_one() -> None:
    """im2col writes zeros where a tap lies in the padding: times an infinite dout that is NaN."""
    fast, serial = (Problem(1, 2, 2, 1, 3, 3, 1, 1) for _ in range(2))
    for problem in (fast, serial):
        problem.operands["dout"][:] = to_elements(np.inf)
        problem.operands["input"][:] = to_elements(1.0)
    fast.call(nx_f32_conv2d_backward_fast)
    serial.call(nx_f32_conv2d_backward)
    assert np.isnan(fast.numbers("dweight")[[0, 2, 6, 8]]).all()
    assert np.isposinf(serial.numbers("dweight")).all()


@pytest.mark.parametrize("serial", [False, True])
def test_a_batch_is_a_call_an_image_and_sums(serial: bool) -> None:
    """Gradients of four images against the reference; three of them are followed by their sums."""
    shape = ConvShape(4, 3, (6, 5), 5, (3, 2), 2, 1)
    rng = np.random.default_rng(1)
    x, w, dy = (
        rng.integers(-4, 5, dims).astype(np.float32)
        for dims in (shape.x_shape, shape.w_shape, shape.dy_shape)
    )
    wanted = conv_backward_reference(shape, dy, w, x)
    with Device("nx_host") as device:
        arrays = [device.array("ddr", a.shape, "fp32_i64", data=a) for a in (x, w, dy)]
        outs = [device.array("ddr", wanted[name].shape, "fp32_i64") for name in ("dx", "dw", "db")]
        code = backward_batch(
            arrays[0], 4, 3, 6, 5, arrays[1], 5, 3, 2, 2, 1, arrays[2], *outs, serial=serial
        )
        assert len(device.arrays) == 6
    assert code == NX_CVBF_OK
    for name, out in zip(("dx", "dw", "db"), outs, strict=True):
        assert (out.data == wanted[name]).all()
    kinds = [run.operator for run in device.runs]
    assert kinds.count("accumulate") == 3
    assert len(kinds) == 7
    assert device.cycles == sum(run.cycles for run in device.runs)


def test_a_batch_takes_numpy_arrays_and_refuses_none() -> None:
    """Images of one array lie one after another in it; no image is 4."""
    shape = ConvShape(2, 2, (4, 4), 3, (3, 3), 1, 1)
    rng = np.random.default_rng(2)
    x, w, dy = (rng.integers(-4, 5, dims) for dims in (shape.x_shape, shape.w_shape, shape.dy_shape))
    wanted = conv_backward_reference(shape, dy, w, x)
    outs = [to_elements(np.full(wanted[name].shape, 7.0)) for name in ("dx", "dw", "db")]
    given = [to_elements(a) for a in (x, w, dy)]
    with Device("nx_host"):
        sizes = (3, 3, 3, 1, 1)
        assert backward_batch(given[0], 0, 2, 4, 4, given[1], *sizes, given[2], *outs) == 4
        assert (from_elements(outs[0]) == 7).all()
        assert backward_batch(given[0], 2, 2, 4, 4, given[1], *sizes, given[2], *outs) == 0
    for name, out in zip(("dx", "dw", "db"), outs, strict=True):
        assert (from_elements(out) == wanted[name]).all()


@pytest.mark.parametrize("checks", [Checks(races=True), Checks(dma="early"), Checks(dma="late")])
def test_workers_do_not_race(checks: Checks) -> None:
    """Rows of different workers share no byte, and nothing hangs on when a loop's bytes arrive."""
    watched, plain = random_problem(11), random_problem(11)
    watched.call(nx_f32_conv2d_backward_fast, checks=checks, workers=4)
    plain.call(nx_f32_conv2d_backward_fast, workers=4)
    assert all((watched.operands[name] == plain.operands[name]).all() for name in OUTPUTS)


def test_dinput_may_be_the_input_of_the_fast_call() -> None:
    """The page reads input before it writes dinput."""
    apart, same = random_problem(17), random_problem(17)
    apart.call(nx_f32_conv2d_backward_fast)
    same.operands["dinput"] = same.operands["input"]
    same.call(nx_f32_conv2d_backward_fast)
    assert all((same.operands[name] == apart.operands[name]).all() for name in OUTPUTS)
