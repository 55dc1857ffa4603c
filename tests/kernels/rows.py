"""One row of a case table in both data types, from one pair of references."""

from __future__ import annotations

import numpy as np

from kernels.conv_backward import conv_backward
from kernels.reference.checking import longest_chain, random_operands
from kernels.reference.comparison import compare, error_bound
from kernels.reference.references import conv_backward_magnitude, conv_backward_reference
from kernels.shape.shapes import ConvShape
from simulator.values.numerics import Array, dtype

DTYPES = ("fp16", "fp32")


def check_row(shape: ConvShape) -> None:
    """Dx of integer data exactly, of random data within the bound, in fp16 and fp32.

    The operands are numbers of fp16, so that both types see the same and one reference serves both.
    """
    terms = shape.taps * shape.cout // shape.groups
    sizes = {"dy": shape.dy_shape, "w": shape.w_shape}
    whole = random_operands(sizes, dtype("fp16"), 1, True, terms)
    reference = conv_backward_reference(shape, whole["dy"], whole["w"], grads=("dx",))["dx"]
    for kind in DTYPES:
        dx = dx_of(shape, whole, kind)[0]
        np.testing.assert_array_equal(dx, reference.astype(dtype(kind).storage))
    broken = random_operands(sizes, dtype("fp16"), 2, False, 1)
    reference = conv_backward_reference(shape, broken["dy"], broken["w"], grads=("dx",))["dx"]
    magnitude = conv_backward_magnitude(shape, broken["dy"], broken["w"], grads=("dx",))["dx"]
    for kind in DTYPES:
        dx, chain = dx_of(shape, broken, kind)
        found = compare(dx, reference, error_bound(magnitude, reference, kind, chain))
        assert found.ok, f"{kind}: error {found.max_error} at {found.index}, allowed {found.tolerance}"


def dx_of(shape: ConvShape, operands: dict[str, Array], kind: str) -> tuple[Array, int]:
    """Dx in a data type, and the longest chain of additions in it."""
    dy, w = (operands[name].astype(dtype(kind).storage) for name in ("dy", "w"))
    run = conv_backward(dy, w, shape=shape, target="mt7004")
    assert run.dx is not None
    return run.dx, longest_chain("dx", run, shape)
