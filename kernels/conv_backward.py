"""conv_backward: the neutral operator, any subset of a convolution's gradients on a target of the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.dsp.dx.lowering import allocate_dx, dx_tiling, put_operands, run_dx, take_dx
from kernels.errors import OperandError, ShapeError
from kernels.host_memory import require_host_memory
from kernels.placement import chosen_cores, chosen_dtype, resolved_target
from kernels.shape.shapes import ConvShape
from simulator.machine import Checks, Machine
from simulator.results.run import Run
from simulator.values.numerics import Array, DType
from simulator.values.numerics import dtype as named
from targets.schema import Target

AVAILABLE = {"dsp": ("dx",)}
"""Gradients by family."""

Sizes = int | Sequence[int]


def conv_backward(
    dy: npt.ArrayLike | None = None,
    w: npt.ArrayLike | None = None,
    *,
    x: npt.ArrayLike | None = None,
    input_size: Sequence[int] | None = None,
    weight_size: Sequence[int] | None = None,
    shape: ConvShape | None = None,
    stride: Sizes = 1,
    padding: int | Sequence[Any] = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    transposed: bool = False,
    output_padding: Sizes = 0,
    grads: Sequence[str] = ("dx",),
    target: str | Target = "mt7004",
    cores: int | Sequence[int] | None = None,
    dtype: str | None = None,
    layout: str = "NCHW",
    tiling: Mapping[str, object] | None = None,
    numerics: bool = True,
    checks: Checks | None = None,
) -> Run:
    """Gradients of a convolution, and what they cost on a target.

    Args:
        dy: gradient of the output, [N, Cout, *out].
        w: weights, [Cout, Cin / groups, *kernel].
        x: input, [N, Cin, *in]; for dx alone only its size matters.
        input_size: spatial size of the input, where x is not given.
        weight_size: spatial size of the kernel, where w is not given.
        shape: the geometry, instead of the next six; with numerics=False no arrays are needed beside it.
        stride: an int or one an axis, as dilation and output_padding.
        padding: as in PyTorch, or (low, high) an axis; high may be negative: input that no tap reads.
        dilation: distance of the taps.
        groups: of channels.
        transposed: whether the forward operator is the transposed convolution.
        output_padding: of the transposed one.
        grads: which gradients.
        target: a target's name, a TOML file, or a Target.
        cores: how many cores (the first ones), or which; default all.
        dtype: what the chip computes in; default the arrays' own, "native" the chip's best.
        layout: of dy, x and dx: "NCHW" or "NHWC", with any number of spatial axes.
        tiling: fields of the tiling to keep; the others are chosen.
        numerics: compute the gradients, or only time them.
        checks: how the run is watched.

    Raises:
        ShapeError, OperandError, TilingError, TargetError, CapacityError: an argument is refused.
    """
    call = _Call(resolved_target(target), tuple(grads), layout, numerics)
    arrays = call.arrays({"dy": dy, "w": w, "x": x})
    if shape is None:
        sizes = {"input_size": input_size, "weight_size": weight_size, "output_padding": output_padding}
        taps = {"stride": stride, "padding": padding, "dilation": dilation}
        shape = _resolve(arrays, **sizes, **taps, groups=groups, transposed=transposed)
    call.check(shape, arrays)
    return _run_dx(call, shape, arrays, cores, dtype, tiling or {}, checks)


@dataclass(frozen=True)
class _Call:
    """What was asked for."""

    target: Target
    grads: tuple[str, ...]
    layout: str
    numerics: bool

    def arrays(self, given: Mapping[str, npt.ArrayLike | None]) -> dict[str, Array]:
        """The operands that are there, channel first."""
        if self.layout not in ("NCHW", "NHWC"):
            raise OperandError("unknown layout", argument="layout", got=repr(self.layout), limit="NCHW, NHWC")
        return {name: self.channel_first(name, value) for name, value in given.items() if value is not None}

    def channel_first(self, name: str, value: npt.ArrayLike) -> Array:
        """An operand as a channel-first array."""
        array = np.asarray(value)
        if array.dtype.kind not in "fV" and array.dtype.name != "bfloat16":
            raise OperandError(
                "an operand that is not of a floating type",
                argument=name,
                got=str(array.dtype),
                limit="fp16, bf16, fp32, fp64",
            )
        return (
            np.moveaxis(array, -1, 1) if self.layout == "NHWC" and name != "w" and array.ndim > 2 else array
        )

    def as_given(self, dx: Array) -> Array:
        """A gradient in the layout of the call."""
        return np.moveaxis(dx, 1, -1) if self.layout == "NHWC" else dx

    def check(self, shape: ConvShape, arrays: Mapping[str, Array]) -> None:
        """Refuse what this family does not compute, and operands that are missing or of another shape."""
        known = AVAILABLE.get(self.target.family, ())
        missing = [grad for grad in self.grads if grad not in known]
        if missing or not self.grads:
            raise OperandError(
                "gradients that this family of targets does not compute",
                argument="grads",
                where=self.target.name,
                got=", ".join(self.grads) or "none",
                limit=", ".join(known) or "none",
            )
        if shape.transposed:
            raise ShapeError(
                "transposed convolutions are not computed on this target",
                argument="transposed",
                where=self.target.name,
            )
        wanted = {"dy": shape.dy_shape, "w": shape.w_shape, "x": shape.x_shape}
        for name, array in arrays.items():
            if array.shape != wanted[name]:
                raise OperandError(
                    "an operand of another shape", argument=name, got=array.shape, limit=wanted[name]
                )
        for name in ("dy", "w") if self.numerics else ():
            if name not in arrays:
                raise OperandError(
                    "an operand is missing", argument=name, remedy="give it, or ask for numerics=False"
                )


def _resolve(arrays: Mapping[str, Array], **geometry: Any) -> ConvShape:
    """The geometry that the arrays' shapes imply."""
    if "dy" not in arrays:
        raise OperandError(
            "an operand is missing", argument="dy", remedy="give dy, or shape with numerics=False"
        )
    w, x = arrays.get("w"), arrays.get("x")
    shapes = (None if w is None else w.shape, None if x is None else x.shape)
    return ConvShape.resolve(arrays["dy"].shape, *shapes, **geometry)


def _supported_type(operand: DType, target: Target) -> DType:
    if operand.name == "fp64":
        what = "fp64 is a type of gemm only"
        raise OperandError(what, argument="dtype", where=target.name, got="fp64", limit="fp16, fp32")
    return operand


def require_capacity(shape: ConvShape, target: Target, dtype: str, *, check: bool = False) -> None:
    """Refuse a call whose tensors fit neither the target's DDR nor this computer, before any is made.

    Raises:
        CapacityError: a memory is too small.
    """
    kind = named(dtype)
    machine = Machine(target, (0,), numerics=False)
    for name, dims in (("dy", shape.dy_shape), ("w", shape.w_shape), ("dx", shape.x_shape)):
        machine.tensor(name, dims, kind)
    elements = sum(prod(dims) for dims in (shape.dy_shape, shape.w_shape, shape.x_shape))
    require_host_memory(elements * (3 * kind.size_bytes + (32 if check else 0)))


def _run_dx(
    call: _Call,
    shape: ConvShape,
    arrays: Mapping[str, Array],
    cores: int | Sequence[int] | None,
    dtype: str | None,
    given: Mapping[str, object],
    checks: Checks | None,
) -> Run:
    """Allocate, launch and collect."""
    chip, operands_given = call.target, {n: a for n, a in arrays.items() if n in ("dy", "w")}
    operand = _supported_type(named(chosen_dtype(chip, dtype, operands_given)), chip)
    machine = Machine(chip, chosen_cores(chip, cores), numerics=call.numerics, checks=checks)
    tiling = dx_tiling(shape, operand, machine, given)
    operands = allocate_dx(shape, operand, machine, tiling)
    if machine.numerics:
        require_host_memory(3 * (operands.dy.bytes + operands.dx.bytes + operands.w.bytes))
        put_operands(shape, operands, arrays["dy"], arrays["w"])
    run_dx(shape, operand, machine, tiling, operands)
    rate = operand.name + ("_fp16" if operand.name == tiling.fp16_accumulate == "fp16" else "")
    return Run(
        operator="conv_backward",
        target=chip,
        cores=len(machine.cores),
        dtype=operand.name,
        cycles=machine.cycles,
        launches=machine.launches,
        tiling=tiling.model_dump(),
        trace=machine.trace(),
        outputs={"dx": call.as_given(take_dx(shape, operands))} if machine.numerics else {},
        macs=machine.macs,
        useful_macs=shape.useful_macs,
        peak_flops_per_cycle=chip.matmul[rate].flops_per_cycle * len(machine.cores),
        shape=shape.to_dict(),
        numerics=machine.numerics,
    )
