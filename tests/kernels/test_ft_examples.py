"""The two C examples of the operator page, line by line, with their addresses and values; and in fp16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernels.ft import (
    ConvParameter,
    GetCoreNum,
    GetLogicCoreId,
    fp_conv2d_backprop_input_p,
    fp_conv2d_backprop_input_s,
    get_core_id,
    hp_conv2d_backprop_input_p,
    hp_conv2d_backprop_input_s,
    sys_bar,
)
from kernels.reference.references import conv_backward_reference
from kernels.shape.shapes import ConvShape
from simulator.device.device import Device
from simulator.results.run import Run

SHAPE = ConvShape(1, 16, (4, 4), 16, (1, 1))

SHARED = {"fp32": fp_conv2d_backprop_input_s, "fp16": hp_conv2d_backprop_input_s}
PRIVATE = {"fp32": fp_conv2d_backprop_input_p, "fp16": hp_conv2d_backprop_input_p}


def set_fields(param: ConvParameter, workspace: int) -> None:
    """The fields, in the order of the page."""
    param.workspace_ = workspace
    param.buffer_size_ = 0x10000
    param.input_batch_ = 1
    param.output_batch_ = 1
    param.input_h_ = 4
    param.input_w_ = 4
    param.input_channel_ = 16
    param.output_h_ = 4
    param.output_w_ = 4
    param.output_channel_ = 16
    param.kernel_h_ = 1
    param.kernel_w_ = 1
    param.group_ = 1
    param.pad_l_ = 0
    param.pad_u_ = 0
    param.pad_d_ = 0
    param.pad_r_ = 0
    param.dilation_h_ = 1
    param.dilation_w_ = 1
    param.stride_h_ = 1
    param.stride_w_ = 1
    param.nweights_ = 16 * 16 * 1 * 1


def shared_example(call: Callable[..., Run]) -> Callable[[int], Run]:
    """TestConvBackpropInputSMCFp32 of the page."""

    def test_conv_backprop_input_smc(core_mask: int) -> Run:
        core_id = get_core_id()
        logic_core_id = GetLogicCoreId(core_mask, core_id)
        core_num = GetCoreNum(core_mask)
        dy = 0x86000000
        w = 0x87000000  # OIHW: [16, 16, 1, 1]
        dx = 0x88000000
        param = ConvParameter(0x89000000)
        workspace = 0x8A000000
        if logic_core_id == 0:
            set_fields(param, workspace)
        sys_bar(0, core_num)
        return call(dy, w, dx, param, core_mask)

    return test_conv_backprop_input_smc


def private_example(call: Callable[..., Run]) -> Run:
    """TestConvBackpropInputAMFp32 of the page."""
    dy = 0x10000000
    w = 0x10010000  # OIHW: [16, 16, 1, 1]
    dx = 0x10020000
    param = ConvParameter(0x10030000)
    workspace = 0x10040000
    set_fields(param, workspace)
    return call(dy, w, dx, param)


def filled(device: Device, memory: str, addresses: tuple[int, int, int], kind: str) -> None:
    """The example's arrays; dx is set to zero before, as the page says."""
    random = np.random.default_rng(7)
    device.array(memory, (1, 4, 4, 16), kind, addresses[0], random.integers(-4, 5, (1, 4, 4, 16)))
    device.array(memory, (16, 16, 1, 1), kind, addresses[1], random.integers(-4, 5, (16, 16, 1, 1)))
    device.array(memory, (1, 4, 4, 16), kind, addresses[2], 0)


def reference(device: Device) -> NDArray[Any]:
    """The gradient of the example's arrays, in float64, channels last."""
    dy, w = (device.arrays[i].data for i in range(2))
    return np.moveaxis(conv_backward_reference(SHAPE, np.moveaxis(dy, -1, 1), w, grads=("dx",))["dx"], 1, -1)


@pytest.mark.parametrize("kind", ["fp32", "fp16"])
def test_the_shared_example(kind: str) -> None:
    """Four cores, operands in DDR; one of them sets the structure, all meet, all call."""
    with Device("mt7004") as device:
        filled(device, "ddr", (0x86000000, 0x87000000, 0x88000000), kind)
        runs = device.spmd(shared_example(SHARED[kind]), 0b1111)
        found = device.at(0x88000000)
        assert np.array_equal(found.data, reference(device))
        run = runs[0]
        assert isinstance(run, Run)
        assert run.tiling["path"] == "1x1"
        assert set(run.trace.cores()) == {0, 1, 2, 3}
        assert device.cycles == run.cycles + 107


@pytest.mark.parametrize("kind", ["fp32", "fp16"])
@pytest.mark.parametrize("in_team", [False, True])
def test_the_private_example(kind: str, in_team: bool) -> None:
    """One core, operands in AM."""
    with Device("mt7004") as device:
        filled(device, "am", (0x10000000, 0x10010000, 0x10020000), kind)
        if in_team:
            device.spmd(lambda: private_example(PRIVATE[kind]), 0b1)
        else:
            private_example(PRIVATE[kind])
        assert np.array_equal(device.at(0x10020000).data, reference(device))
        assert device.runs[0].tiling["path"] == "1x1"
        assert set(device.runs[0].trace.cores()) == {0}


def test_the_private_example_by_hand() -> None:
    """16 x 16 x 16: three calls of a kernel of 6 rows, one width of 16 columns, 1.5 cycles a step of k.

    fp32: the launch, the issue of one product, 3 x (27 + 24 + 30).
    """
    with Device("mt7004") as device:
        filled(device, "am", (0x10000000, 0x10010000, 0x10020000), "fp32")
        assert private_example(fp_conv2d_backprop_input_p).cycles == 12_000 + 7 + 3 * (27 + 24 + 30)


def test_the_shared_example_on_ft78ne() -> None:
    """The same addresses are in its DDR; fp32."""
    with Device("ft78ne") as device:
        filled(device, "ddr", (0x86000000, 0x87000000, 0x88000000), "fp32")
        device.spmd(shared_example(fp_conv2d_backprop_input_s), 0xFF)
        assert np.array_equal(device.at(0x88000000).data, reference(device))
