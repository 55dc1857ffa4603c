"""What the tests of the vendor's calls share: a device with the arrays of a geometry, and its structure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels import ft
from kernels.reference.comparison import Comparison, compare, error_bound
from kernels.reference.references import conv_backward_magnitude, conv_backward_reference
from kernels.shape.shapes import ConvShape
from simulator.device.arrays import DeviceArray
from simulator.device.device import Device
from simulator.results.run import Run
from simulator.values.numerics import dtype

OWN = {"mt7004": "am", "ft78ne": "l2"}
"""The memory of the private calls."""

SHAPES = {
    "1x1": ConvShape(2, 16, (4, 5), 24, (1, 1)),
    "3x3": ConvShape(2, 8, (9, 7), 12, (3, 3), padding=1),
    "strided, dilated, uneven": ConvShape(
        2, 8, (9, 7), 12, (3, 2), stride=(2, 1), padding=((1, 0), (0, 2)), dilation=(1, 2)
    ),
    "groups": ConvShape(2, 8, (9, 7), 12, (3, 3), padding=1, groups=4),
    "depthwise": ConvShape(2, 12, (9, 7), 12, (3, 3), padding=1, groups=12, stride=(2, 1)),
    "depthwise 1x1": ConvShape(1, 5, (6, 7), 5, (1, 1), groups=5),
    "depthwise, dilated": ConvShape(1, 6, (9, 8), 6, (3, 3), groups=6, dilation=2),
    "one channel": ConvShape(1, 1, (6, 7), 3, (3, 3)),
    "1x1 with stride": ConvShape(1, 16, (7, 8), 16, (1, 1), stride=2),
    "input that no tap reads": ConvShape(1, 4, (9, 9), 4, (2, 2), stride=5),
}

PATHS = {"1x1": "1x1", "depthwise": "depthwise", "depthwise 1x1": "depthwise"}
"""The path of each shape that is not general."""


def least_budget(shape: ConvShape, kind: str) -> int:
    """The page's usual budget: max(2048, 2 x Kh x Kw x (Cin / G) x sizeof)."""
    return max(2048, 2 * shape.taps * (shape.cin // shape.groups) * dtype(kind).size_bytes)


def structure(shape: ConvShape, kind: str, **more: object) -> ft.ConvParameter:
    """The structure of a geometry, without a workspace."""
    (up, down), (left, right) = shape.padding
    fields: dict[str, object] = {
        "output_batch_": shape.n,
        "input_batch_": shape.n,
        "input_h_": shape.size[0],
        "input_w_": shape.size[1],
        "output_h_": shape.out[0],
        "output_w_": shape.out[1],
        "input_channel_": shape.cin,
        "output_channel_": shape.cout,
        "kernel_h_": shape.kernel[0],
        "kernel_w_": shape.kernel[1],
        "group_": shape.groups,
        "pad_l_": left,
        "pad_u_": up,
        "dilation_h_": shape.dilation[0],
        "dilation_w_": shape.dilation[1],
        "stride_h_": shape.stride[0],
        "stride_w_": shape.stride[1],
        "buffer_size_": least_budget(shape, kind),
        "pad_d_": down,
        "pad_r_": right,
        "nweights_": prod(shape.w_shape),
    }
    return ft.ConvParameter(**{**fields, **more})  # type: ignore[arg-type]  # the only other argument is an address


@dataclass
class Case:
    """The arrays of a call on a device, and what it was given."""

    device: Device
    shape: ConvShape
    kind: str
    private: bool
    dy: DeviceArray
    w: DeviceArray
    dx: DeviceArray
    param: ft.ConvParameter
    begun: NDArray[Any]

    @classmethod
    def on(
        cls,
        device: Device,
        shape: ConvShape,
        kind: str = "fp32",
        *,
        private: bool = False,
        memory: str = "",
        integers: bool = True,
        **fields: object,
    ) -> Case:
        """Random operands; small integers keep every sum exact."""
        rng = np.random.default_rng(0)
        where = memory or (OWN[device.target.name] if private else "ddr")

        def array(dims: tuple[int, ...], name: str) -> DeviceArray:
            values = rng.integers(-3, 4, dims) if integers else rng.standard_normal(dims)
            return device.array(where, dims, kind, data=values, name=name)

        dy = array(nhwc(shape.dy_shape), "dy")
        w = array(shape.w_shape, "w")
        dx = array(nhwc(shape.x_shape), "dx")
        param = structure(shape, kind, **fields)
        param.workspace_ = device.array(where, param.buffer_size_, "fp32", name="workspace")
        return cls(device, shape, kind, private, dy, w, dx, param, dx.data.copy())

    def call(self, core_mask: int = 0b1, tiling: Mapping[str, object] | None = None) -> Run:
        """Make the call with arrays."""
        return self.with_(self.dy, self.w, self.dx, core_mask, tiling)

    def with_(
        self, dy: Any, w: Any, dx: Any, mask: int = 0b1, tiling: Mapping[str, object] | None = None
    ) -> Run:
        """Make the call with other operands."""
        half = self.kind == "fp16"
        if self.private:
            private = ft.hp_conv2d_backprop_input_p if half else ft.fp_conv2d_backprop_input_p
            return private(dy, w, dx, self.param, tiling=tiling)
        shared = ft.hp_conv2d_backprop_input_s if half else ft.fp_conv2d_backprop_input_s
        return shared(dy, w, dx, self.param, mask, tiling=tiling)

    def compared(self, times: int = 1) -> Comparison:
        """Dx beside what it held and `times` gradients in float64, within the bound of rounding."""
        dy = np.moveaxis(self.dy.data, -1, 1)
        reference = times * conv_backward_reference(self.shape, dy, self.w.data, grads=("dx",))["dx"]
        magnitude = times * conv_backward_magnitude(self.shape, dy, self.w.data, grads=("dx",))["dx"]
        begun = np.moveaxis(self.begun, -1, 1).astype(np.float64)
        terms = self.shape.taps * self.shape.cout // self.shape.groups + self.shape.taps + 2
        bound = error_bound(magnitude + abs(begun), reference + begun, self.kind, terms)
        return compare(np.moveaxis(self.dx.data, -1, 1), reference + begun, bound)

    def exact(self, times: int = 1) -> bool:
        """Whether dx is the reference, bit for bit."""
        dy = np.moveaxis(self.dy.data, -1, 1)
        reference = times * conv_backward_reference(self.shape, dy, self.w.data, grads=("dx",))["dx"]
        return bool(np.array_equal(np.moveaxis(self.dx.data - self.begun, -1, 1), reference))


def nhwc(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with its channels last."""
    return (shape[0], *shape[2:], shape[1])
