"""A call of conv_backward_input that can be changed argument by argument, with tiles that fit it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kernels import pypto
from kernels.pypto import pypto_impl

SIZES = (16, 16, 16, 16)


def tiles(
    l1: tuple[int, int, int] = (16, 144, 16),
    l0: tuple[int, int, int] = (16, 16, 16),
    vector: tuple[int, ...] = SIZES,
) -> None:
    """Set tile sizes: (M, K, N) in L1 and in L0."""
    pypto.set_convbp_input_tile_shapes(pypto_impl.ConvBpTileL1Info(*l1), pypto_impl.ConvBpTileL0Info(*l0))
    pypto.set_vec_tile_shapes(*vector)


@dataclass
class Call:
    """The page's example; `change` replaces arguments by name."""

    arguments: dict[str, Any] = field(
        default_factory=lambda: {
            "grad_output": pypto.tensor((1, 16, 5, 32), pypto.DT_FP16, "grad_output"),
            "input_size": (1, 16, 5, 32),
            "weight": pypto.tensor((16, 16, 3, 3), pypto.DT_FP16, "weight"),
            "out_dtype": pypto.DT_FP16,
            "strides": [1, 1],
            "paddings": [1, 1, 1, 1],
            "dilations": [1, 1],
        }
    )

    def change(self, **changed: object) -> Call:
        """The call with other arguments."""
        return Call({**self.arguments, **changed})

    def run(self) -> pypto.Tensor:
        """Call it."""
        return pypto.conv_backward_input(**self.arguments)
