"""What the sweeps over the case tables share: which rows, at which size, and the two checks of a gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from kernels.conv_backward import NEEDS, conv_backward
from kernels.reference.checking import check_conv_backward, longest_sum, random_operands
from kernels.reference.references import conv_backward_reference
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from simulator.values.numerics import dtype as named
from tests.case_table import Case, load_cases

LARGEST_EDGE_MACS = 10_000_000
"""Rows of edge_shapes above this are left out."""


def smaller(shape: ConvShape, **sizes: int) -> ConvShape:
    """The shape with a smaller batch, or another height."""
    fields = shape.to_dict() | sizes
    return ConvShape(**fields)  # type: ignore[arg-type]  # to_dict gives the constructor's own arguments


@cache
def plain_cases() -> tuple[Case, ...]:
    """Every 2-D row, not transposed, that asks for an input gradient, at the size at which it is run."""
    found = []
    for table in ("networks", "edge_shapes", "edge_regressions", "bugs_open"):
        for case in load_cases(table):
            shape = case.shape
            if (
                shape.ndim != 2
                or shape.transposed
                or (table == "bugs_open" and case.op not in ("dgrad", "all"))
            ):
                continue
            if table == "edge_shapes" and shape.useful_macs >= LARGEST_EDGE_MACS:
                continue
            if table == "networks":
                shape = smaller(shape, n=min(2, shape.n))
            if case.id == "R_057":
                shape = ConvShape(**(shape.to_dict() | {"size": (448, shape.size[1])}))  # type: ignore[arg-type]  # as above
            found.append(replace(case, shape=shape))
    return tuple(found)


def sample(count: int, most_macs: float) -> list[Case]:
    """`count` rows that are cheap enough, spread evenly over the tables."""
    cheap = [case for case in plain_cases() if case.shape.useful_macs <= most_macs]
    step = len(cheap) / count
    return [cheap[int(index * step)] for index in range(count)]


def operands(shape: ConvShape, dtype: str, grads: Sequence[str], integers: bool) -> dict[str, Any]:
    """Dy, w and x by name; None for what the gradients do not need."""
    sizes = {"dy": shape.dy_shape, "w": shape.w_shape, "x": shape.x_shape}
    needed = {name: size for name, size in sizes.items() if any(name in NEEDS[grad] for grad in grads)}
    terms = longest_sum(shape, grads) if integers else 1
    made = random_operands(needed, named(dtype), 1 if integers else 2, integers, terms)
    return {name: made.get(name) for name in sizes}


def check_integers(shape: ConvShape, dtype: str, grads: Sequence[str] = ("dx",), **options: Any) -> Run:
    """Gradients of integer data are the reference's, rounded once where they do not fit the type."""
    made = operands(shape, dtype, grads, True)
    run = conv_backward(**made, shape=shape, grads=grads, **{"target": "mt7004"} | options)
    reference = conv_backward_reference(shape, **made, grads=grads)
    assert list(run.outputs) == list(grads)
    for grad, found in run.outputs.items():
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(found, reference[grad].astype(named(dtype).storage), err_msg=grad)
    return run


def check_random(shape: ConvShape, dtype: str, grads: Sequence[str] = ("dx",), **options: Any) -> Run:
    """Gradients of random data are within the bound of rounding."""
    made = operands(shape, dtype, grads, False)
    run = conv_backward(**made, shape=shape, grads=grads, **{"target": "mt7004"} | options)
    for grad, found in check_conv_backward(run, shape, **made).items():
        assert found.ok, f"{grad}: error {found.max_error} at {found.index}, allowed {found.tolerance}"
    return run
