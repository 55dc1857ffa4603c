"""What the sweeps over the case tables share: which rows, at which size, and the two checks of a gradient."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from kernels.conv_backward import conv_backward
from kernels.reference.checking import check_conv_backward, random_operands
from kernels.reference.references import conv_backward_reference
from kernels.shape.shapes import ConvShape
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


def check_integers(shape: ConvShape, dtype: str, **options: object) -> None:
    """Dx of integer data is the reference, rounded once where it does not fit the type."""
    terms = shape.taps * shape.cout // shape.groups
    made = random_operands({"dy": shape.dy_shape, "w": shape.w_shape}, named(dtype), 1, True, terms)
    run = conv_backward(made["dy"], made["w"], shape=shape, target="mt7004", **options)  # type: ignore[arg-type]  # options of the call
    reference = conv_backward_reference(shape, made["dy"], made["w"], grads=("dx",))["dx"]
    assert run.dx is not None
    np.testing.assert_array_equal(run.dx, reference.astype(named(dtype).storage))


def check_random(shape: ConvShape, dtype: str, **options: object) -> None:
    """Dx of random data is within the bound of rounding."""
    made = random_operands({"dy": shape.dy_shape, "w": shape.w_shape}, named(dtype), 2, False, 1)
    run = conv_backward(made["dy"], made["w"], shape=shape, target="mt7004", **options)  # type: ignore[arg-type]  # options of the call
    found = check_conv_backward(run, shape, made["dy"], made["w"])["dx"]
    assert found.ok, f"error {found.max_error} at {found.index}, allowed {found.tolerance}"
