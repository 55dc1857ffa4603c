"""The two checks of an output: integers exactly, random data within the bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.conv_forward import conv_forward
from kernels.reference.checking import check_conv_forward, longest_sum, random_operands
from kernels.reference.references import conv_forward_reference
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from simulator.values.numerics import dtype as named


def forward_operands(shape: ConvShape, dtype: str, integers: bool) -> dict[str, Any]:
    """x, w and bias by name."""
    sizes = {"x": shape.x_shape, "w": shape.w_shape, "bias": (shape.cout,)}
    terms = longest_sum(shape, ("y",)) + 1 if integers else 1
    return dict(random_operands(sizes, named(dtype), 1 if integers else 2, integers, terms))


def check_forward_integers(shape: ConvShape, dtype: str, **options: Any) -> Run:
    """The output of integer data is the reference's, rounded once where it does not fit the type."""
    made = forward_operands(shape, dtype, True)
    run = conv_forward(**made, **{"shape": shape, "target": "mt7004", **options})
    with np.errstate(over="ignore"):
        expected = conv_forward_reference(shape, **made).astype(named(dtype).storage)
    assert run.y is not None
    np.testing.assert_array_equal(run.y, expected)
    return run


def check_forward_random(shape: ConvShape, dtype: str, **options: Any) -> Run:
    """The output of random data is within the bound of rounding."""
    made = forward_operands(shape, dtype, False)
    run = conv_forward(**made, **{"shape": shape, "target": "mt7004", **options})
    found = check_conv_forward(run, shape, **made)["y"]
    assert found.ok, f"error {found.max_error} at {found.index}, allowed {found.tolerance}"
    return run
