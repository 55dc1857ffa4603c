"""What the sweeps over the case tables share: which rows, at which size, and the two checks of a gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import prod
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kernels.conv_backward import NEEDS, conv_backward
from kernels.reference.checking import check_conv_backward, longest_sum, random_operands
from kernels.reference.references import conv_backward_reference
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from simulator.values.numerics import dtype as named
from targets.loader import load_target
from tests.case_table import TABLES, Case, load_cases

TARGETS = ("mt7004", "ft78ne")
"""Targets that the sweeps run on, in every mode that their matrix unit has; another is added by its name."""

LARGEST_EDGE_MACS = 10_000_000
"""Rows of edge_shapes above this are left out."""

LARGEST_MACS = 1_000_000_000
"""Rows above this are run with fewer rows of the image: what is new in a tile comes again in the next."""

LARGEST_ELEMENTS = 100_000_000
"""Elements of x, w and dy above which a row is run with fewer images, then channels: the reference keeps float64."""

LARGEST_TRANSPOSED_MACS = 1_000_000
"""Transposed rows of edge_shapes above this are left out."""

LARGEST_HALF_MACS = 3_000_000
"""Rows above this are not summed in fp16: the reference steps through each sum."""

LARGEST_BATCH = 400
"""Images of a reported fault at most: one report has a million of them."""

TALL = 32
"""Rows of an image that are never cut."""


class Mode(NamedTuple):
    """What a row is run on, in which type, and in which type its products are summed."""

    target: str
    dtype: str
    accumulate: str

    @property
    def half(self) -> bool:
        """Whether sums are rounded to fp16 at every step."""
        return self.accumulate == "fp16"

    def tiling(self, outputs: Sequence[str]) -> dict[str, object]:
        """The fields that say what the outputs are summed in."""
        if self.dtype != "fp16":
            return {}
        prefixes = [{"dw": "dw."}.get(name, "") for name in outputs if name != "db"]
        return {f"{prefix}fp16_accumulate": self.accumulate for prefix in prefixes}


def modes(targets: Sequence[str] = TARGETS) -> list[Mode]:
    """Every way in which the targets multiply for a convolution."""
    found = []
    for target in targets:
        for rate in load_target(target).matmul:
            dtype, _, accumulate = rate.partition("_")
            if dtype != "fp64":
                found.append(Mode(target, dtype, accumulate or "fp32"))
    return found


def smaller(shape: ConvShape, **sizes: object) -> ConvShape:
    """The shape with a smaller batch, or another size."""
    return ConvShape(**(shape.to_dict() | sizes))  # type: ignore[arg-type]  # the constructor's own arguments


def cut(shape: ConvShape) -> ConvShape:
    """The shape with so few images, channels and rows that it stays below the limits; rows at least what taps reach."""
    while shape.n > 1 and max(prod(shape.x_shape), prod(shape.dy_shape)) > LARGEST_ELEMENTS:
        shape = smaller(shape, n=shape.n // 2)
    while shape.cin // shape.groups > 1 and max(map(prod, (shape.x_shape, shape.w_shape))) > LARGEST_ELEMENTS:
        shape = smaller(shape, cin=shape.groups * (shape.cin // shape.groups // 2))
    axis = max(0, shape.ndim - 2)
    size = list(shape.size)
    least = max(TALL, 2 * shape.dilation[axis] * shape.kernel[axis])
    while shape.useful_macs > LARGEST_MACS and size[axis] > least:
        size[axis] = max(least, size[axis] // 2)
        shape = smaller(shape, size=size)
    return shape


@cache
def every_case() -> tuple[Case, ...]:
    """Every row of a plain or transposed convolution, at the size at which it is run: one image of a layer."""
    found = []
    for table in TABLES:
        for case in load_cases(table):
            shape = case.shape
            if table == "bugs_open":
                if "deform" in case.op:
                    continue
                shape = smaller(shape, n=min(LARGEST_BATCH, shape.n))
            if table in ("networks", "conv3d", "edge_regressions"):
                shape = smaller(shape, n=min(1, shape.n))
            found.append(replace(case, shape=cut(shape)))
    return tuple(found)


def _small(case: Case, most: int) -> bool:
    return case.table != "edge_shapes" or case.shape.useful_macs < most


@cache
def plain_cases() -> tuple[Case, ...]:
    """Every 2-D row that is not transposed."""
    plain = (case for case in every_case() if case.shape.ndim == 2 and not case.shape.transposed)
    return tuple(c for c in plain if c.table not in LATER and _small(c, LARGEST_EDGE_MACS))


@cache
def line_cases() -> tuple[Case, ...]:
    """Every 1-D row that is not transposed."""
    lines = (case for case in every_case() if case.shape.ndim == 1 and not case.shape.transposed)
    return tuple(case for case in lines if _small(case, LARGEST_EDGE_MACS))


@cache
def deep_cases() -> tuple[Case, ...]:
    """Every 3-D row of conv3d that is not transposed."""
    deep = (case for case in every_case() if case.table == "conv3d" and not case.shape.transposed)
    return tuple(case for case in deep if case.shape.useful_macs < LARGEST_MACS)


@cache
def transposed_cases() -> tuple[Case, ...]:
    """Every transposed row."""
    return tuple(c for c in every_case() if c.shape.transposed and _small(c, LARGEST_TRANSPOSED_MACS))


LATER = ("pytorch_samples", "conv3d")
"""Tables whose 2-D rows are not among the plain ones."""

Item = TypeVar("Item")


def spread(items: Sequence[Item], count: int) -> list[Item]:
    """`count` items, evenly over all of them."""
    return [items[index * len(items) // count] for index in range(count)]


def sample(count: int, most_macs: float) -> list[Case]:
    """`count` plain rows that are cheap enough, spread evenly over the tables."""
    return spread([case for case in plain_cases() if case.shape.useful_macs <= most_macs], count)


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
