"""The gradient of the resampled features as a matrix product, where the vendor makes it one.

The features' stride is their kernel, so that their gradient is dy^T [positions, Cout] x w [Cout, Cin x taps]: nothing
is added up between taps. The vendor's backward convolution is a BatchMatMul and a permutation there, for one group, no
pads and no dilation (ops-nn, conv/convolution_backward/op_api/aclnn_convolution_backward.cpp: "stride equals kernel").
Kernels of 2 x 2 it splits into four of one tap, which are the same multiplications without the permutation: they are
taken as the product too. The images' products are one here, over all positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from kernels.davinci.deform.transpose import Transpose
from kernels.davinci.gemm import DavinciGemm
from kernels.davinci.product_rules import Matrices
from kernels.shape.deform import DeformShape
from simulator.machine import Machine
from simulator.memory.memories import Buffer
from simulator.values.numerics import Array, DType


def is_product(shape: DeformShape) -> bool:
    """Whether there are one group and several taps, and something to multiply."""
    return shape.conv.groups == 1 and shape.conv.taps > 1 and not shape.empty and shape.conv.cout > 0


@dataclass(frozen=True)
class FeatureProduct:
    """The product of one call, and its result in the order of the features."""

    shape: DeformShape
    gemm: DavinciGemm
    permuted: Buffer

    @classmethod
    def of(
        cls, shape: DeformShape, operand: DType, machine: Machine, rate: str, given: Mapping[str, object]
    ) -> FeatureProduct:
        """Choose a tiling, as on all cores of the chip, so that sums are the same on any number, and addresses.

        Raises:
            TilingError: a field is not usable, or nothing fits with it.
            CapacityError: main memory is too small.
        """
        conv, target = shape.conv, machine.target
        m, n, k = conv.n * prod(conv.out), conv.cin * conv.taps, conv.cout
        matrices = Matrices(m, n, k, True, False, operand, rate, target, target.groups)
        gemm = DavinciGemm.of(matrices, machine, given)
        permuted = machine.tensor("features_permuted", (conv.n, n, prod(conv.out)), operand)
        return cls(shape, gemm, permuted)

    @property
    def host_bytes(self) -> int:
        """Bytes of this computer's memory."""
        return self.gemm.host_bytes + self.permuted.bytes

    def put(self, dy: Array, w: Array) -> None:
        """Place dy [N, Cout, *out] and w [Cout, Cin, Kh, Kw]."""
        cout = self.shape.conv.cout
        self.gemm.put({"a": np.moveaxis(dy, 1, 0).reshape(cout, -1), "b": w.reshape(cout, -1)})

    def run(self) -> None:
        """Multiply, then permute."""
        conv, machine = self.shape.conv, self.gemm.machine
        first = len(machine.launches)
        self.gemm.run()
        for launch in machine.launches[first:]:
            if launch.name == "gemm":
                launch.useful_macs = conv.useful_macs
        self.gemm.c.constant = True
        frame = (conv.n, prod(conv.out), conv.cin * conv.taps)
        machine.launch(Transpose("permute_features", machine.target, self.permuted, self.gemm.c, frame))

    def take(self) -> Array:
        """The gradient of the features, [N, Cin, Ho x Kh, Wo x Kw]."""
        conv = self.shape.conv
        found = self.gemm.take().reshape(conv.n, *conv.out, conv.cin, *conv.kernel)
        return np.ascontiguousarray(found.transpose(0, 3, 1, 4, 2, 5)).reshape(self.shape.features.x_shape)
