"""pypto: the tile-level convolution of the Ascend Python front end, by the vendor's names.

    from kernels.pypto import pypto, pypto_impl

    grad_output = pypto.tensor((1, 16, 5, 32), pypto.DT_FP16, "grad_output")
    weight = pypto.tensor((16, 16, 3, 3), pypto.DT_FP16, "weight")
    pypto.set_convbp_input_tile_shapes(
        pypto_impl.ConvBpTileL1Info(tileML1=16, tileKL1=144, tileNL1=16),
        pypto_impl.ConvBpTileL0Info(tileML0=16, tileKL0=16, tileNL0=16),
    )
    pypto.set_vec_tile_shapes(16, 16, 16, 16)
    out = pypto.conv_backward_input(
        grad_output, (1, 16, 5, 32), weight, pypto.DT_FP16,
        strides=[1, 1], paddings=[1, 1, 1, 1], dilations=[1, 1],
    )
    out.run.summary()

Tensors without `data=` are only timed. `set_device` says on which target; the default is an Atlas A2, ascend910b1.
"""

import sys

from kernels.pypto import pypto_impl
from kernels.pypto.operators import conv_backward_input
from kernels.pypto.settings import reset, set_convbp_input_tile_shapes, set_device, set_vec_tile_shapes
from kernels.pypto.tensors import DT_BF16, DT_FP16, DT_FP32, DataType, Tensor, tensor

pypto = sys.modules[__name__]
"""This package, so that one import line gives both names of the vendor's examples."""

__all__ = [
    "DT_BF16",
    "DT_FP16",
    "DT_FP32",
    "DataType",
    "Tensor",
    "conv_backward_input",
    "pypto",
    "pypto_impl",
    "reset",
    "set_convbp_input_tile_shapes",
    "set_device",
    "set_vec_tile_shapes",
    "tensor",
]
