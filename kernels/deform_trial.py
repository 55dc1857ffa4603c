"""One run of deform_conv_backward on random operands, compared with the reference where that is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kernels.deform_backward import deform_conv_backward
from kernels.deform_points import DEFAULT_OFFSETS, model_offsets
from kernels.families import stored_in
from kernels.reference.checking import longest_sum, random_operands, seen
from kernels.reference.comparison import compare
from kernels.reference.deform import deform_backward_reference
from kernels.reference.deform_checking import deform_bounds
from kernels.shape.deform import DeformShape
from simulator.results.run import Run
from simulator.values.numerics import Array
from targets.schema import Target


def run_deform_backward(
    shape: DeformShape,
    target: Target,
    computed: str,
    cores: Sequence[int],
    *,
    grads: Sequence[str] | None,
    tiling: Mapping[str, object] | None,
    numerics: bool,
    seed: int,
    integers: bool,
    check: bool,
) -> Run:
    """Run on normal operands, or small integers; offsets are those of the default model, masks lie in [0, 1).

    Raises:
        TilesimError: an argument is refused.
    """
    if not numerics:
        return deform_conv_backward(
            shape=shape,
            target=target,
            cores=cores,
            dtype=computed,
            grads=grads,
            tiling=tiling,
            numerics=False,
        )
    made = _operands(shape, computed, seed, integers)
    run = deform_conv_backward(
        made["dy"],
        made["w"],
        x=made["x"],
        offset=made["offset"],
        mask=made.get("mask"),
        shape=shape,
        target=target,
        cores=cores,
        dtype=computed,
        grads=grads,
        tiling=tiling,
    )
    if check:
        check_deform_backward(run, shape, made)
    return run


def _operands(shape: DeformShape, computed: str, seed: int, integers: bool) -> dict[str, Array]:
    kind, conv = stored_in(computed), shape.conv
    sizes = {"dy": conv.dy_shape, "w": conv.w_shape, "x": conv.x_shape}
    made = random_operands(sizes, kind, seed, integers, longest_sum(conv, ("dx", "dw", "db")))
    made["offset"] = model_offsets(shape, DEFAULT_OFFSETS).astype(kind.storage)
    if shape.masked:
        mask = np.random.default_rng(seed).uniform(0, 1, shape.mask_shape)
        made["mask"] = mask.astype(kind.storage)
    return made


def check_deform_backward(run: Run, shape: DeformShape, given: Mapping[str, Array]) -> None:
    """Compare each gradient of a run with the reference, within the bound of rounding; noted in the run."""
    read = {name: seen(run.dtype, a) if name in ("dy", "w") else a for name, a in given.items()}
    mask = read.get("mask")
    reference = deform_backward_reference(
        shape, read["dy"], read["w"], read["x"], read["offset"], mask, coordinates="float32"
    )
    bounds = deform_bounds(run.dtype, shape, read, reference)
    found = {name: compare(got, reference[name], bounds[name]) for name, got in run.outputs.items()}
    run.max_error = {name: each.max_error for name, each in found.items()}
    run.tolerance = {name: each.tolerance for name, each in found.items()}
