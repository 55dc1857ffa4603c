"""The families that `tilesim operators` names are those that an operator runs on."""

from __future__ import annotations

import pytest

from kernels.operators import OPERATORS, run_operator
from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape
from targets.errors import TilesimError
from targets.loader import load_target

CHIPS = {"dsp": "mt7004", "davinci": "ascend910b1", "host": "nx_host"}
LAYER = ConvShape(1, 4, (5, 5), 4, (3, 3), padding=1)
SHAPES: dict[str, ConvShape | DeformShape | tuple[int, int, int]] = {
    "gemm": (8, 8, 8),
    "deform_conv_backward": DeformShape(LAYER),
}


@pytest.mark.parametrize("family", CHIPS)
@pytest.mark.parametrize("name", OPERATORS)
def test_named_families_run_and_others_refuse(name: str, family: str) -> None:
    """A timing run of a small layer on one chip of each family."""
    shape, target = SHAPES.get(name, LAYER), load_target(CHIPS[family])
    if family in OPERATORS[name].families:
        assert run_operator(name, shape=shape, target=target, numerics=False).cycles > 0
    else:
        with pytest.raises(TilesimError):
            run_operator(name, shape=shape, target=target, numerics=False)
