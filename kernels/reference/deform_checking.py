"""How far the gradients of a deformable convolution may be from the reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.reference.comparison import UNIT_ROUNDOFF, error_bound
from kernels.reference.deform import deform_backward_reference
from kernels.shape.deform import DeformShape

POINT_STEPS = 12
"""Roundings between operands and one term of a sum: shares, slopes and products of a point."""


def deform_bounds(
    computed: str,
    shape: DeformShape,
    given: Mapping[str, Any],
    reference: Mapping[str, npt.NDArray[np.float64]],
) -> dict[str, npt.NDArray[np.float64]]:
    """The bound of rounding of each element of each gradient.

    Between its two halves the gradient of the features is rounded to the type of the tensors, and so are the features
    themselves; sums are fp32. Terms of a sum of dx: every point may fall on one pixel.
    """
    magnitude = deform_backward_reference(shape, **given, coordinates="float32", magnitude=True)
    conv = shape.conv
    outputs = conv.n * conv.out[0] * conv.out[1]
    deep = conv.cout // conv.groups + POINT_STEPS
    terms = {
        "dx": deep + outputs * conv.taps,
        "dw": outputs + POINT_STEPS,
        "db": outputs,
        "doffset": deep + shape.channels,
        "dmask": deep + shape.channels,
    }
    between = 0 if computed in ("fp32", "hf32") else UNIT_ROUNDOFF[computed]
    found = {}
    for name, wanted in reference.items():
        rounding = 0.0 if name == "db" else between
        found[name] = error_bound(magnitude[name], wanted, computed, terms[name]) + rounding * magnitude[name]
    return found
