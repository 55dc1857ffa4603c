"""What the tests of the Da Vinci kernels share: chips and their types, the rows they run, and the two checks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from kernels.conv_backward import NEEDS, conv_backward
from kernels.families import stored_in
from kernels.reference.checking import check_conv_backward, longest_sum, random_operands
from kernels.reference.references import conv_backward_reference
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from tests.case_table import Case, load_cases
from tests.kernels.mixed import check_output, mixed, references
from tests.kernels.sweep import LARGEST_BATCH, Mode, cut, smaller

CHIPS = (
    ("ascend910a", "fp16"),
    ("ascend310p3", "fp16"),
    ("ascend910b1", "fp16"),
    ("ascend910b1", "hf32"),
    ("ascend910b1", "bf16"),
    ("ascend910b1", "fp32"),
    ("ascend950pr", "bf16"),
    ("ascend950pr", "fp16"),
    ("ascend950pr", "hf32"),
    ("ascend950pr", "fp32"),
)
"""Targets, with each type that their cubes take."""

GRADS = ("dx", "dw", "db")
TABLES = (
    "edge_shapes",
    "networks",
    "conv3d",
    "pytorch_samples",
    "torch_npu_cases",
    "edge_regressions",
    "bugs_open",
)


LARGEST_TAPS = 1_000_000
"""Rows with more are run with half the kernel on each axis: a million instructions take some gigabytes and minutes."""


def fewer_taps(shape: ConvShape) -> ConvShape:
    """The shape with kernels so short that they are below the limit, on images that are as much smaller."""
    while prod(shape.kernel) > LARGEST_TAPS:
        kernel = tuple(-(-taps // 2) for taps in shape.kernel)
        less = (d * (old - new) for d, old, new in zip(shape.dilation, shape.kernel, kernel, strict=True))
        size = tuple(extent - off for extent, off in zip(shape.size, less, strict=True))
        shape = smaller(shape, kernel=kernel, size=size)
    return shape


def chip_of(number: int) -> tuple[str, str]:
    """The chip and type of row `number`: rows are dealt in turn."""
    return CHIPS[number % len(CHIPS)]


def operands(shape: ConvShape, dtype: str, integers: bool, grads: Sequence[str] = GRADS) -> dict[str, Any]:
    """Dy, w and x by name; None for what the gradients do not need."""
    sizes = {"dy": shape.dy_shape, "w": shape.w_shape, "x": shape.x_shape}
    needed = {name: size for name, size in sizes.items() if any(name in NEEDS[grad] for grad in grads)}
    terms = max(longest_sum(shape, grads), shape.n * prod(shape.size)) if integers else 1
    made = random_operands(needed, stored_in(dtype), 1 if integers else 2, integers, terms)
    return {name: made.get(name) for name in sizes}


def check_integers(
    shape: ConvShape, target: str, dtype: str, grads: Sequence[str] = GRADS, **options: Any
) -> Run:
    """Gradients of integer data are the reference's, rounded once where they do not fit the type."""
    made = operands(shape, dtype, True, grads)
    run = conv_backward(**made, shape=shape, grads=grads, target=target, dtype=dtype, **options)
    reference = conv_backward_reference(shape, **made, grads=grads)
    assert set(run.outputs) == set(grads)
    for grad, found in run.outputs.items():
        with np.errstate(over="ignore"):
            wanted = reference[grad].astype(stored_in(dtype).storage)
        np.testing.assert_array_equal(found, wanted, err_msg=f"{grad} on {target} in {dtype}")
    return run


def check_random(
    shape: ConvShape, target: str, dtype: str, grads: Sequence[str] = GRADS, **options: Any
) -> Run:
    """Gradients of random data are within the bound of rounding."""
    made = operands(shape, dtype, False, grads)
    run = conv_backward(**made, shape=shape, grads=grads, target=target, dtype=dtype, **options)
    for grad, found in check_conv_backward(run, shape, **made).items():
        assert found.ok, f"{grad}: error {found.max_error} at {found.index}, allowed {found.tolerance}"
    return run


def check_mixed(shape: ConvShape, target: str, dtype: str) -> None:
    """Integer channels exactly and random channels within the bound, dx in a run and dw with db in another."""
    kind = stored_in(dtype)
    for grads in (("dx",), ("dw", "db")):
        given, random = mixed(shape, grads, "fp16" if kind.name == "fp32" else kind.name)
        stored = {name: array.astype(kind.storage) for name, array in given.items()}
        run = conv_backward(**stored, shape=shape, grads=grads, target=target, dtype=dtype)
        reference, magnitude = references(shape, given, grads)
        for name in grads:
            expected = reference[name], magnitude[name]
            check_output(name, run, shape, Mode(target, dtype, "fp32"), expected, random[name])


@cache
def rows_of(table: str, most_macs: float) -> tuple[Case, ...]:
    """The rows of a table below a size; networks and conv3d with one image, all cut if large."""
    found = []
    for case in load_cases(table):
        shape = case.shape
        if table in ("networks", "conv3d", "torch_npu_cases"):
            shape = smaller(shape, n=min(1, shape.n))
        if table == "bugs_open":
            shape = smaller(shape, n=min(LARGEST_BATCH, shape.n))
        if "deform" in case.op or (case.dtype == "fp64" and table == "bugs_open"):
            continue
        if (shape := fewer_taps(cut(shape))).useful_macs < most_macs:
            found.append(Case(case.id, table, case.op, case.dtype, shape, case.out, case.pads, case.note))
    return tuple(found)


def sample(count: int, most_macs: float) -> list[Case]:
    """`count` rows, spread evenly over all tables."""
    every = [case for table in TABLES for case in rows_of(table, most_macs)]
    return [every[int(index * len(every) / count)] for index in range(count)]
