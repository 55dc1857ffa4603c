"""The vendor's calls of MT7004 and FT78NE, under the vendor's names, on arrays of a Device.

with Device("mt7004") as dev:
    dy = dev.array("ddr", (1, 4, 4, 16), "fp32", address=0x86000000, data=...)
    ...
    run = fp_conv2d_backprop_input_s(dy, w, dx, param, 0b1111)
"""

from kernels.ft.call import (
    fp_conv2d_backprop_input_p,
    fp_conv2d_backprop_input_s,
    hp_conv2d_backprop_input_p,
    hp_conv2d_backprop_input_s,
)
from kernels.ft.cores import GetCoreNum, GetLogicCoreId, get_core_id, sys_bar
from kernels.ft.parameter import ConvParameter

__all__ = [
    "ConvParameter",
    "GetCoreNum",
    "GetLogicCoreId",
    "fp_conv2d_backprop_input_p",
    "fp_conv2d_backprop_input_s",
    "get_core_id",
    "hp_conv2d_backprop_input_p",
    "hp_conv2d_backprop_input_s",
    "sys_bar",
]
