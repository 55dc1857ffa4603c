"""Random operands for a call, and its outputs against the float64 reference."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kernels.reference.comparison import UNIT_ROUNDOFF, Comparison, compare, error_bound
from kernels.reference.references import conv_backward_magnitude, conv_backward_reference
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from simulator.values.numerics import Array, DType


def random_operands(
    shapes: Mapping[str, tuple[int, ...]], kind: DType, seed: int, integers: bool, terms: int
) -> dict[str, Array]:
    """Operands by name: standard normal values, or small integers.

    Sums of `terms` products of the integers are exact in fp32, and where it can be in the type of the operands.
    """
    rng = np.random.default_rng(seed)
    largest = largest_integer(kind, terms)
    made = {}
    for name, shape in shapes.items():
        values = (
            rng.integers(-largest, largest + 1, shape) if integers else rng.standard_normal(shape, np.float32)
        )
        made[name] = values.astype(kind.storage)
    return made


def largest_integer(kind: DType, terms: int) -> int:
    """The largest m so that `terms` products of integers up to m stay below 1 / unit roundoff; at least 1."""
    room = min(1 / kind.unit_roundoff, 2.0**24) / max(1, terms)
    return int(min(8, max(1, np.floor(np.sqrt(room)))))


def longest_chain(shape: ConvShape, tiling: Mapping[str, object], cores: int) -> int:
    """The additions that one element of dx has been through, at most: a K step, the steps, the cores."""
    cog = shape.cout // max(1, shape.groups)
    k = min(cog, int(str(tiling["k"])))
    return k + shape.taps * -(-cog // max(1, k)) + cores


def check_conv_backward(run: Run, shape: ConvShape, dy: Array, w: Array) -> dict[str, Comparison]:
    """Each gradient of a run against the reference, within the bound of rounding; also noted in the run."""
    reference = conv_backward_reference(shape, dy, w, grads=tuple(run.outputs))
    magnitude = conv_backward_magnitude(shape, dy, w, grads=tuple(run.outputs))
    half = run.dtype == "fp16" and run.tiling.get("fp16_accumulate") == "fp16"
    unit = UNIT_ROUNDOFF["fp16" if half else "fp32"]
    terms = longest_chain(shape, run.tiling, run.cores)
    found = {}
    for name, got in run.outputs.items():
        bound = error_bound(magnitude[name], reference[name], run.dtype, terms, unit)
        found[name] = compare(got, reference[name], bound)
    run.max_error = {name: c.max_error for name, c in found.items()}
    run.tolerance = {name: c.tolerance for name, c in found.items()}
    return found
