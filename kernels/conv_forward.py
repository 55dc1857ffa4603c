"""conv_forward: the neutral operator, the output of a convolution on a target of the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy.typing as npt

from kernels.conv_backward import require_ddr, require_room
from kernels.errors import OperandError, ShapeError
from kernels.families import Lowered, forward_of, stored_in
from kernels.gradient_fields import SEARCHED, given_fields
from kernels.host_memory import require_host_memory
from kernels.operand_arrays import (
    SHAPED,
    as_given,
    channel_first,
    require_convolution_type,
    require_given,
    require_shapes,
)
from kernels.placement import chosen_cores, chosen_dtype, resolved_target
from kernels.registry import Call
from kernels.search.calls import search_call
from kernels.shape.fit import same_rank, tensor_shape
from kernels.shape.problems import geometry_of
from kernels.shape.shapes import ConvShape
from simulator.machine import Checks, Machine
from simulator.results.run import Run
from simulator.values.numerics import Array
from targets.schema import Target

FAMILIES = ("dsp", "davinci")
"""Families of targets that compute it."""

Sizes = int | Sequence[int]


def conv_forward(
    x: npt.ArrayLike | None = None,
    w: npt.ArrayLike | None = None,
    bias: npt.ArrayLike | None = None,
    *,
    shape: ConvShape | str | None = None,
    stride: Sizes = 1,
    padding: int | Sequence[Any] = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    transposed: bool = False,
    output_padding: Sizes = 0,
    with_bias: bool = False,
    target: str | Target = "mt7004",
    cores: int | Sequence[int] | None = None,
    dtype: str | None = None,
    layout: str = "NCHW",
    tiling: Mapping[str, object] | Literal["auto"] | None = None,
    include_layout: bool = False,
    numerics: bool = True,
    checks: Checks | None = None,
) -> Run:
    """The output of a convolution, and what it costs on a target.

    Args:
        x: input, [N, Cin, *in].
        w: weights, [Cout, Cin / groups, *kernel]; transposed [Cin, Cout / groups, *kernel].
        bias: [Cout], or none.
        shape: the geometry, or a text of it, instead of the next six; numerics=False needs no arrays beside it.
        stride: an int or one an axis, as dilation and output_padding.
        padding: as in PyTorch, or (low, high) an axis; high may be negative: input that no tap reads.
        dilation: distance of the taps.
        groups: of channels.
        transposed: whether it is the transposed convolution.
        output_padding: of the transposed one.
        with_bias: whether a call without arrays has a bias.
        target: a target's name, a TOML file, or a Target.
        cores: how many cores (the first ones), or which; default all.
        dtype: what the chip computes in; default the arrays' own, "native" the chip's best.
        layout: of x and y: "NCHW" or "NHWC", with any number of spatial axes.
        tiling: fields to keep, the others are chosen; a transposed one has those of dx. "auto": they are searched.
        include_layout: time the conversions between plain tensors and the device's layouts too.
        numerics: compute the output, or only time it.
        checks: how the run is watched.

    Returns the run, with the output as `run.y`, [N, Cout, *out]; raises a TilesimError where an argument is refused.
    """
    chip = resolved_target(target)
    arrays = channel_first({"x": x, "w": w, "bias": bias}, layout)
    taps = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    shape = resolved(arrays, shape, {**taps, "transposed": transposed, "output_padding": output_padding})
    _check(chip, shape, arrays, (("x", "w", "bias") if with_bias else ("x", "w")) if numerics else ())
    computed = require_convolution_type(chosen_dtype(chip, dtype, arrays), chip)
    machine = Machine(chip, chosen_cores(chip, cores), numerics=numerics, checks=checks)
    require_ddr(tensors_of(shape), chip, stored_in(computed))
    if tiling == "auto":
        tiling = search_call(Call("conv_forward", shape, chip, machine.cores, computed), _timed).tiling
    options = {"bias": with_bias or "bias" in arrays, "include_layout": include_layout}
    forward = forward_of(shape, computed, machine, given_fields(tiling, SEARCHED), **options)
    return _run(forward, shape, computed, machine, arrays, layout)


def resolved(
    arrays: Mapping[str, Array], shape: ConvShape | str | None, given: Mapping[str, Any]
) -> ConvShape:
    """The geometry that was given, or that of x and w.

    Raises:
        ShapeError: there are two geometries, or one that cannot be.
        OperandError: there is none.
    """
    if shape is not None:
        defaults = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "transposed": False}
        twice = [name for name, value in given.items() if value != defaults.get(name, 0)]
        if twice:
            raise ShapeError("two geometries", argument=twice[0], got=f"shape and {', '.join(twice)}")
        return geometry_of(shape)
    require_given(("x", "w"), arrays, SHAPED)
    x = tensor_shape("x", arrays["x"].shape)
    w = same_rank("w", arrays["w"].shape, len(x) - 2)
    cout = w[1] * int(given["groups"]) if given["transposed"] else w[0]
    return ConvShape(n=x[0], cin=x[1], size=x[2:], cout=cout, kernel=w[2:], **given)


def _check(target: Target, shape: ConvShape, arrays: Mapping[str, Array], needed: Sequence[str]) -> None:
    """Refuse families that do not compute it, and operands that are missing or of another shape."""
    if target.family not in FAMILIES:
        raise OperandError(
            "this family of targets has no forward convolution",
            argument="target",
            where=target.name,
            got=target.family,
            limit=", ".join(FAMILIES),
        )
    require_shapes(arrays, {"x": shape.x_shape, "w": shape.w_shape, "bias": (shape.cout,)})
    require_given(needed, arrays)


def tensors_of(shape: ConvShape) -> dict[str, tuple[int, ...]]:
    """The shapes of operands and result."""
    return {"x": shape.x_shape, "w": shape.w_shape, "y": shape.dy_shape}


def require_capacity(shape: ConvShape, target: Target, dtype: str, *, check: bool = False) -> None:
    """Refuse a call whose tensors fit neither the target's DDR nor this computer, before any is made.

    Raises:
        CapacityError: a memory is too small.
    """
    require_room(tensors_of(shape), target, stored_in(dtype), check=check)


def _run(
    forward: Lowered,
    shape: ConvShape,
    computed: str,
    machine: Machine,
    arrays: Mapping[str, Array],
    layout: str,
) -> Run:
    """Launch and collect."""
    if machine.numerics:
        require_host_memory(forward.host_bytes)
        forward.put(arrays)
    forward.run()
    outputs = forward.take() if machine.numerics else {}
    return Run(
        operator="conv_forward",
        target=machine.target,
        cores=len(machine.cores),
        dtype=computed,
        cycles=machine.cycles,
        launches=machine.launches,
        tiling=forward.tiling,
        trace=machine.trace(),
        outputs={name: as_given(found, layout) for name, found in outputs.items()},
        macs=machine.macs,
        useful_macs=shape.useful_macs,
        peak_flops_per_cycle=forward.flops_per_cycle * len(machine.cores),
        shape=shape.to_dict(),
        numerics=machine.numerics,
    )


def _timed(call: Call) -> Run:
    """A call of a search, timed only."""
    options = {"shape": call.shape, "target": call.target, "cores": call.cores, "dtype": call.dtype}
    return conv_forward(**options, tiling=call.tiling, numerics=False)
