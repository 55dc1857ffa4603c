"""The nx calls of a host that computes fp32 in software, under their own names, on arrays of a Device.

with Device("nx_host") as dev:
    dout = dev.array("ddr", (64, 56, 56), "fp32_i64", data=...)
    ...
    code = nx_f32_conv2d_backward_fast(input, 1, 64, 56, 56, weight, 64, 3, 3, 1, 1, dout, dinput, dweight, dbias)
    run = dev.runs[-1]
"""

from kernels.nx.batch import backward_batch
from kernels.nx.call import nx_f32_conv2d_backward, nx_f32_conv2d_backward_fast
from kernels.nx.elements import from_elements, to_elements
from kernels.nx.geometry import ERR_ARGS as NX_CVBF_ERR_ARGS
from kernels.nx.geometry import OK as NX_CVBF_OK

__all__ = [
    "NX_CVBF_ERR_ARGS",
    "NX_CVBF_OK",
    "backward_batch",
    "from_elements",
    "nx_f32_conv2d_backward",
    "nx_f32_conv2d_backward_fast",
    "to_elements",
]
