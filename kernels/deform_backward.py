"""deform_conv_backward: the neutral operator, any subset of a deformable convolution's gradients.

Points are computed in fp32. A tap whose point is at or beyond one pixel outside x, or whose offset is NaN or infinite,
is absent: it passes nothing on, and its own gradients are 0. In dw it is a zero of the features that dy is multiplied
by, so that dy which is not finite reaches dw there, as on the chip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from kernels.conv_backward import Sizes, require_ddr
from kernels.deform_points import DEFAULT_OFFSETS, model_offsets
from kernels.errors import OperandError, ShapeError
from kernels.families import LoweredDeform, deform_of, stored_in
from kernels.gradient_fields import given_fields
from kernels.host_memory import require_host_memory
from kernels.operand_arrays import (
    SHAPED,
    channel_first,
    require_convolution_type,
    require_given,
    require_shapes,
)
from kernels.placement import chosen_cores, chosen_dtype, resolved_target
from kernels.shape.deform import DeformShape
from kernels.shape.problems import checked_problem
from kernels.shape.shapes import ConvShape
from kernels.shape.text import parse_deform
from simulator.machine import Checks, Machine
from simulator.results.run import Run
from simulator.values.numerics import Array
from targets.schema import Target

GRADIENTS = ("dx", "dw", "db", "doffset", "dmask")


def deform_conv_backward(
    dy: npt.ArrayLike | None = None,
    w: npt.ArrayLike | None = None,
    *,
    x: npt.ArrayLike | None = None,
    offset: npt.ArrayLike | None = None,
    mask: npt.ArrayLike | None = None,
    features: npt.ArrayLike | None = None,
    shape: DeformShape | str | None = None,
    stride: Sizes = 1,
    padding: int | Sequence[Any] = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    deform_groups: int = 1,
    grads: Sequence[str] | None = None,
    target: str | Target = "ascend950pr",
    cores: int | Sequence[int] | None = None,
    dtype: str | None = None,
    tiling: Mapping[str, object] | None = None,
    offsets: str = DEFAULT_OFFSETS,
    deterministic: bool = False,
    numerics: bool = True,
    checks: Checks | None = None,
) -> Run:
    """Gradients of a deformable convolution (torchvision's deform_conv2d), and what they cost on a target.

    Args:
        dy: gradient of the output, [N, Cout, Ho, Wo].
        w: weights, [Cout, Cin / groups, Kh, Kw].
        x: input, [N, Cin, H, W].
        offset: [N, 2 x deform_groups x Kh x Kw, Ho, Wo]: (dy, dx) a tap, tap by tap, group by group, in pixels.
        mask: [N, deform_groups x Kh x Kw, Ho, Wo], a factor a tap (version 2); None for none.
        features: what the forward pass sampled, [N, Cin, Ho x Kh, Wo x Kw], for dw; default: made from x,
            on a DSP by a launch, else untimed.
        shape: the geometry, instead of the next five; with numerics=False no arrays are needed beside it.
        stride: an int or one an axis.
        padding: an int, one an axis, or (low, high) an axis.
        dilation: distance of the taps, as stride.
        groups: of channels.
        deform_groups: of input channels that share their offsets.
        grads: some of dx, dw, db, doffset, dmask; default all (dmask with a mask only).
        target: the name of a DSP or Da Vinci target, a TOML file, or a Target.
        cores: how many groups of cores (the first ones), or which; default all.
        dtype: what the chip computes in; default the arrays' own.
        tiling: fields to keep (`tilesim operators deform_conv_backward` names them).
        offsets: places of the taps in a timing run without `offset`: "zero", or "uniform:r" within r pixels.
        deterministic: cores add to dx one core after the other, as a fixed order costs; a DSP has no other.
        numerics: compute the gradients, or only time them.
        checks: how the run is watched.

    Raises a TilesimError where an argument is refused.
    """
    chip = resolved_target(target)
    _require_family(chip)
    given = {"dy": dy, "w": w, "x": x, "offset": offset, "mask": mask, "features": features}
    taps = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    arrays, geometry, asked = _checked(given, shape, taps, deform_groups, grads, numerics)
    machine = Machine(chip, chosen_cores(chip, cores), numerics=numerics, checks=checks)
    return _Call(geometry, asked, machine, dtype, given_fields(tiling), offsets, deterministic).run(arrays)


def _checked(
    given: Mapping[str, npt.ArrayLike | None],
    shape: DeformShape | str | None,
    taps: Mapping[str, Any],
    deform_groups: int,
    grads: object,
    numerics: bool,
) -> tuple[dict[str, Array], DeformShape, tuple[str, ...]]:
    """The arrays, the geometry and the gradients of a call that is allowed."""
    arrays = channel_first(given, "NCHW")
    geometry = _resolved(arrays, shape, taps, deform_groups)
    asked = _chosen(grads, geometry)
    _check(geometry, arrays, asked, numerics)
    return arrays, geometry, asked


@dataclass(frozen=True)
class _Call:
    """What was asked for, checked."""

    shape: DeformShape
    grads: tuple[str, ...]
    machine: Machine
    dtype: str | None
    tiling: Mapping[str, object]
    offsets: str
    deterministic: bool

    def run(self, arrays: Mapping[str, Array]) -> Run:
        """Allocate, launch and collect."""
        chip, numerics, shape = self.machine.target, self.machine.numerics, self.shape
        names = (*_operands(self.grads, shape), *(() if numerics else ("offset",)))
        used = {name: array for name, array in arrays.items() if name in names}
        computed = require_convolution_type(chosen_dtype(chip, self.dtype, used), chip)
        kind = stored_in(computed)
        require_ddr({"x": shape.conv.x_shape, "features": shape.features.x_shape}, chip, kind)
        moved = arrays["offset"] if "offset" in arrays else model_offsets(shape, self.offsets)
        more = {"features": arrays["features"]} if "features" in arrays else {}
        lowered = deform_of(
            shape,
            computed,
            self.machine,
            self.grads,
            self.tiling,
            moved,
            features=bool(more),
            deterministic=self.deterministic,
        )
        if numerics:
            require_host_memory(lowered.host_bytes)
            lowered.put({**used, **more})
        lowered.run()
        return finished_run("deform_conv_backward", lowered, computed)


def finished_run(operator: str, lowered: LoweredDeform, computed: str) -> Run:
    """The Run of gradients whose launches are over."""
    machine, shape = lowered.machine, lowered.shape
    return Run(
        operator=operator,
        target=machine.target,
        cores=len(machine.cores),
        dtype=computed,
        cycles=machine.cycles,
        launches=machine.launches,
        tiling=lowered.tiling,
        trace=machine.trace(),
        outputs=lowered.take() if machine.numerics else {},
        macs=machine.macs,
        useful_macs=shape.conv.useful_macs * (lowered.scattered + ("dw" in lowered.grads)),
        peak_flops_per_cycle=lowered.flops_per_cycle * len(machine.cores),
        shape=shape.to_dict(),
        numerics=machine.numerics,
    )


def _require_family(chip: Target) -> None:
    if chip.family not in ("dsp", "davinci"):
        what = "deformable convolutions do not run on this family of targets"
        raise OperandError(what, argument="target", where=chip.name, got=chip.family, limit="dsp, davinci")


def _resolved(
    arrays: Mapping[str, Array], shape: DeformShape | str | None, taps: Mapping[str, Any], deform_groups: int
) -> DeformShape:
    """The geometry that was given, or that of the arrays.

    Raises:
        ShapeError: there are two geometries, or none fits.
        OperandError: an array that it is read from is missing.
    """
    if shape is not None:
        if taps != {"stride": 1, "padding": 0, "dilation": 1, "groups": 1} or deform_groups != 1:
            raise ShapeError("two geometries", argument="shape", got="shape and others")
        read: DeformShape = checked_problem(parse_deform, shape)
        return read
    require_given(("dy", "w", "x"), arrays, SHAPED)
    conv = ConvShape.resolve(arrays["dy"].shape, arrays["w"].shape, arrays["x"].shape, **taps)
    return DeformShape(conv, deform_groups, "mask" in arrays)


def _chosen(grads: object, shape: DeformShape) -> tuple[str, ...]:
    """The gradients asked for.

    Raises:
        OperandError: one is unknown, comes twice, or is of a mask that there is not.
    """
    known = GRADIENTS if shape.masked else GRADIENTS[:-1]
    names = (grads,) if isinstance(grads, str) else known if grads is None else grads
    if not isinstance(names, Sequence) or not names or not set(names) <= set(known):
        what = "gradients that this call does not have"
        raise OperandError(what, argument="grads", got=repr(grads), limit=", ".join(known))
    if len(set(names)) != len(names):
        raise OperandError("a gradient comes twice", argument="grads", got=", ".join(names))
    return tuple(names)


def _operands(grads: Sequence[str], shape: DeformShape) -> tuple[str, ...]:
    """The arrays that gradients are computed from."""
    if any(grad in ("dx", "doffset", "dmask", "dw") for grad in grads):
        mask = ("mask",) if shape.masked else ()
        return ("dy", "w", "x", "offset", *mask)
    return ("dy",)


def _check(shape: DeformShape, arrays: Mapping[str, Array], grads: Sequence[str], numerics: bool) -> None:
    """Refuse operands that are missing or of another shape."""
    conv = shape.conv
    wanted = {"dy": conv.dy_shape, "w": conv.w_shape, "x": conv.x_shape, "offset": shape.offset_shape}
    if "mask" in arrays and not shape.masked:
        what = "a mask beside a geometry without one"
        raise OperandError(what, argument="mask", remedy="give a shape that is masked")
    require_shapes(arrays, {**wanted, "mask": shape.mask_shape, "features": shape.features.x_shape})
    if numerics:
        require_given(_operands(grads, shape), arrays)
