"""A tiling that is no mapping of fields, and an operand that is missing, are refused by what they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilesim as ts
from kernels.errors import OperandError, TilingError

SHAPE = "n=1,cin=8,h=8,w=8,cout=8,kh=3,kw=3,pad=1"
CALLS: dict[str, Callable[..., Any]] = {
    "conv_backward": lambda **o: ts.conv_backward(shape=SHAPE, target="mt7004", **o),
    "conv_backward on cubes": lambda **o: ts.conv_backward(shape=SHAPE, target="ascend910b1", **o),
    "conv_forward": lambda **o: ts.conv_forward(shape=SHAPE, target="mt7004", **o),
    "deform": lambda **o: ts.deform_conv_backward(shape=SHAPE, target="mt7004", **o),
    "gemm": lambda **o: ts.gemm(shape=(8, 8, 8), target="mt7004", **o),
    "run_operator": lambda **o: ts.run_operator("gemm", shape="m=8,n=8,k=8", target="ascend910b1", **o),
}


@pytest.mark.parametrize("tiling", ["best", [1], 7])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_tiling_that_is_no_mapping(call: Callable[..., Any], tiling: object) -> None:
    """Whatever the call."""
    with pytest.raises(TilingError, match="no mapping: where tiling"):
        call(tiling=tiling, numerics=False)


def test_an_operand_is_named() -> None:
    """In the message, too."""
    dy, w = np.ones((1, 8, 8, 8), np.float32), np.ones((8, 8, 3, 3), np.float32)
    with pytest.raises(OperandError, match="an operand is missing: where x"):
        ts.conv_backward(dy, w, padding=1, grads=("dw",), target="mt7004")
    with pytest.raises(OperandError, match="floating type: where w, got int64"):
        ts.conv_backward(dy, w.astype(np.int64), padding=1, grads=("dx",), target="mt7004")
