"""Running deformable convolutions in tests, and holding their gradients against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.deform_backward import deform_conv_backward
from kernels.reference.comparison import compare
from kernels.reference.deform import deform_backward_reference
from kernels.reference.deform_checking import deform_bounds
from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from simulator.values.numerics import dtype

NAMES = ("dx", "dw", "db", "doffset", "dmask")
SUMMED = ("dx", "doffset", "dmask")
"""Gradients whose bits no number of cores changes."""

TINY = DeformShape(ConvShape(2, 4, (5, 6), 4, (3, 3), padding=1, groups=2), 2, True)


def rounded(given: dict[str, Any], kind: str = "fp32") -> dict[str, Any]:
    """Return operands in a type."""
    return {name: array.astype(dtype(kind).storage) for name, array in given.items()}


def ran(shape: DeformShape, given: dict[str, Any], **more: Any) -> Run:
    """Run on a 950, on two of its groups, unless others are asked for; on all cores of another target."""
    cores = {} if "target" in more else {"cores": 2}
    return deform_conv_backward(**given, shape=shape, **{**cores, **more})


def check(run: Run, shape: DeformShape, given: dict[str, Any]) -> None:
    """Assert that every gradient lies within the bound of rounding."""
    reference = deform_backward_reference(shape, **given, coordinates="float32")
    bounds = deform_bounds(run.dtype, shape, given, reference)
    assert set(run.outputs) == set(reference)
    for name, wanted in reference.items():
        found = compare(run.outputs[name], wanted, bounds[name])
        assert found.ok, (name, found)


def same(a: Run, b: Run, names: tuple[str, ...] = NAMES) -> bool:
    """Whether gradients have the same bits."""
    return all(np.array_equal(a.outputs[name], b.outputs[name]) for name in names)
