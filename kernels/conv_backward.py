"""conv_backward: the neutral operator, any subset of a convolution's gradients on a target of the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy.typing as npt

from kernels.errors import OperandError, ShapeError
from kernels.families import backward_of, stored_in
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
from kernels.registry import Call as SearchedCall
from kernels.search.calls import search_call
from kernels.shape.problems import geometry_of
from kernels.shape.shapes import ConvShape
from simulator.machine import Checks, Machine
from simulator.results.run import Run
from simulator.values.numerics import Array, DType
from targets.schema import Target

AVAILABLE = {"dsp": ("dx", "dw", "db"), "davinci": ("dx", "dw", "db")}
"""Gradients by family."""

NEEDS = {"dx": ("dy", "w"), "dw": ("dy", "x"), "db": ("dy",)}
"""The operands of each gradient."""

Sizes = int | Sequence[int]


def conv_backward(
    dy: npt.ArrayLike | None = None,
    w: npt.ArrayLike | None = None,
    *,
    x: npt.ArrayLike | None = None,
    input_size: Sequence[int] | None = None,
    weight_size: Sequence[int] | None = None,
    shape: ConvShape | str | None = None,
    stride: Sizes = 1,
    padding: int | Sequence[Any] = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    transposed: bool = False,
    output_padding: Sizes = 0,
    grads: Sequence[str] | None = None,
    target: str | Target = "mt7004",
    cores: int | Sequence[int] | None = None,
    dtype: str | None = None,
    layout: str = "NCHW",
    tiling: Mapping[str, object] | Literal["auto"] | None = None,
    include_layout: bool = False,
    numerics: bool = True,
    checks: Checks | None = None,
) -> Run:
    """Gradients of a convolution, and what they cost on a target.

    Args:
        dy: gradient of the output, [N, Cout, *out].
        w: weights, [Cout, Cin / groups, *kernel]; transposed [Cin, Cout / groups, *kernel].
        x: input, [N, Cin, *in]; where dw is not asked for only its size matters.
        input_size: spatial size of the input, where x is not given.
        weight_size: spatial size of the kernel, where w is not given.
        shape: the geometry, instead of the next six; with numerics=False no arrays are needed beside it.
        stride: an int or one an axis, as dilation and output_padding.
        padding: as in PyTorch, or (low, high) an axis; high may be negative: input that no tap reads.
        dilation: distance of the taps.
        groups: of channels.
        transposed: whether the forward operator is the transposed convolution.
        output_padding: of the transposed one.
        grads: which gradients; default all that the arrays allow (`NEEDS`), and all three without arrays.
        target: a target's name, a TOML file, or a Target.
        cores: how many cores (the first ones), or which; default all.
        dtype: what the chip computes in; default the arrays' own, "native" the chip's best.
        layout: of dy, x and dx: "NCHW" or "NHWC", with any number of spatial axes.
        tiling: fields to keep: dx's by name, others as "dw.k"; of a transposed dx, those of conv_forward; or "auto".
        include_layout: time the conversions between plain tensors and the device's layouts too.
        numerics: compute the gradients, or only time them.
        checks: how the run is watched.

    Raises a TilesimError where an argument is refused.
    """
    given = {"dy": dy, "w": w, "x": x}
    call = _Call(resolved_target(target), chosen_grads(grads, given), layout, numerics, include_layout)
    arrays = call.arrays(given)
    sizes = {"input_size": input_size, "weight_size": weight_size, "output_padding": output_padding}
    taps = {"stride": stride, "padding": padding, "dilation": dilation}
    whole = {"groups": groups, "transposed": transposed}
    shape = resolved_shape(arrays, shape, {**sizes, **taps, **whole})
    call.check(shape, arrays)
    return _run(call, shape, arrays, cores, dtype, tiling, checks)


@dataclass(frozen=True)
class _Call:
    """What was asked for."""

    target: Target
    grads: tuple[str, ...]
    layout: str
    numerics: bool
    include_layout: bool

    def arrays(self, given: Mapping[str, npt.ArrayLike | None]) -> dict[str, Array]:
        """The operands that are there, channel first."""
        return channel_first(given, self.layout)

    @property
    def operands(self) -> tuple[str, ...]:
        """The arrays that the gradients are computed from."""
        return tuple(name for name in ("dy", "w", "x") if any(name in NEEDS[grad] for grad in self.grads))

    def as_given(self, name: str, gradient: Array) -> Array:
        """A gradient in the layout of the call."""
        return as_given(gradient, self.layout) if name == "dx" else gradient

    def check(self, shape: ConvShape, arrays: Mapping[str, Array]) -> None:
        """Refuse what this family does not compute, and operands that are missing or of another shape.

        Raises:
            OperandError: names the argument.
        """
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
        require_shapes(arrays, {"dy": shape.dy_shape, "w": shape.w_shape, "x": shape.x_shape})
        if self.numerics:
            require_given(self.operands, arrays)


def _allowed(given: Mapping[str, npt.ArrayLike | None]) -> tuple[str, ...]:
    """The gradients that the given operands allow; all of them where these allow none."""
    there = {name for name, value in given.items() if value is not None}
    return tuple(grad for grad, needs in NEEDS.items() if there.issuperset(needs)) or tuple(NEEDS)


def chosen_grads(grads: object, given: Mapping[str, npt.ArrayLike | None]) -> tuple[str, ...]:
    """The gradients asked for, a name or several different ones; default those that the operands allow.

    Raises:
        OperandError: they are no names, or one comes twice.
    """
    if grads is None:
        return _allowed(given)
    names = (grads,) if isinstance(grads, str) else grads
    if not isinstance(names, Sequence | set | frozenset) or not all(isinstance(n, str) for n in names):
        raise OperandError(
            "gradients that are no names", argument="grads", got=repr(grads), limit="dx, dw, db"
        )
    if len(set(names)) != len(tuple(names)):
        raise OperandError("a gradient comes twice", argument="grads", got=", ".join(names))
    return tuple(names)


DEFAULTS = {
    "input_size": None,
    "weight_size": None,
    "output_padding": 0,
    "stride": 1,
    "padding": 0,
    "dilation": 1,
    "groups": 1,
    "transposed": False,
}
"""What the arguments of the geometry are where they are not given."""


def resolved_shape(
    arrays: Mapping[str, Array], shape: ConvShape | str | None, given: Mapping[str, Any]
) -> ConvShape:
    """The geometry that was given, or that the arrays' shapes imply.

    Raises:
        ShapeError: there are two geometries, or none.
    """
    if shape is not None:
        twice = [name for name, default in DEFAULTS.items() if given[name] != default]
        if twice:
            raise ShapeError("two geometries", argument=twice[0], got=f"shape and {', '.join(twice)}")
        return geometry_of(shape)
    require_given(("dy",), arrays, SHAPED)
    w, x = arrays.get("w"), arrays.get("x")
    shapes = (None if w is None else w.shape, None if x is None else x.shape)
    return ConvShape.resolve(arrays["dy"].shape, *shapes, **given)


def require_capacity(
    shape: ConvShape, target: Target, dtype: str, grads: Sequence[str] = ("dx",), *, check: bool = False
) -> None:
    """Refuse a call whose tensors fit neither the target's DDR nor this computer, before any is made.

    Raises:
        CapacityError: a memory is too small.
    """
    partial = 4 * target.groups * prod(shape.w_shape) if "dw" in grads else 0
    require_room(tensors_of(shape, grads), target, stored_in(dtype), partial, check=check)


def require_room(
    tensors: Mapping[str, tuple[int, ...]], target: Target, kind: DType, more_bytes: int = 0, *, check: bool
) -> None:
    """Refuse tensors that fit neither the target's DDR nor, with `more_bytes` of other arrays, this computer.

    Raises:
        CapacityError: a memory is too small.
    """
    require_ddr(tensors, target, kind)
    elements = sum(prod(dims) for dims in tensors.values())
    require_host_memory(elements * (3 * kind.size_bytes + (32 if check else 0)) + more_bytes)


def tensors_of(shape: ConvShape, grads: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The shapes of the operands and results of some gradients."""
    sizes = {"dy": shape.dy_shape}
    sizes |= {"w": shape.w_shape, "dx": shape.x_shape} if "dx" in grads else {}
    sizes |= {"x": shape.x_shape, "dw": shape.w_shape} if "dw" in grads else {}
    return sizes


def require_ddr(tensors: Mapping[str, tuple[int, ...]], target: Target, kind: DType) -> None:
    """Refuse tensors that do not fit the target's DDR, before a tiling is chosen for them.

    Raises:
        CapacityError: DDR is too small.
    """
    machine = Machine(target, (0,), numerics=False)
    for name, dims in tensors.items():
        machine.tensor(name, dims, kind)


def _run(
    call: _Call,
    shape: ConvShape,
    arrays: Mapping[str, Array],
    cores: int | Sequence[int] | None,
    dtype: str | None,
    tiling: Mapping[str, object] | Literal["auto"] | None,
    checks: Checks | None,
) -> Run:
    """Allocate, launch and collect."""
    chip, used = call.target, {n: a for n, a in arrays.items() if n in call.operands}
    computed = require_convolution_type(chosen_dtype(chip, dtype, used), chip)
    machine = Machine(chip, chosen_cores(chip, cores), numerics=call.numerics, checks=checks)
    require_ddr(tensors_of(shape, call.grads), chip, stored_in(computed))
    if tiling == "auto":
        asked = SearchedCall("conv_backward", shape, chip, machine.cores, computed, call.grads)
        tiling = search_call(asked, _timed).tiling
    given = given_fields(tiling, SEARCHED)
    gradients = backward_of(shape, computed, machine, call.grads, given, include_layout=call.include_layout)
    if machine.numerics:
        require_host_memory(gradients.host_bytes)
        gradients.put(used)
    gradients.run()
    outputs = gradients.take() if machine.numerics else {}
    return Run(
        operator="conv_backward",
        target=chip,
        cores=len(machine.cores),
        dtype=computed,
        cycles=machine.cycles,
        launches=machine.launches,
        tiling=gradients.tiling,
        trace=machine.trace(),
        outputs={name: call.as_given(name, found) for name, found in outputs.items()},
        macs=machine.macs,
        useful_macs=shape.useful_macs * len({"dx", "dw"}.intersection(call.grads)),
        peak_flops_per_cycle=gradients.flops_per_cycle * len(machine.cores),
        shape=shape.to_dict(),
        numerics=machine.numerics,
    )


def _timed(call: SearchedCall) -> Run:
    """A call of a search, timed only."""
    options = {"shape": call.shape, "target": call.target, "cores": call.cores, "dtype": call.dtype}
    return conv_backward(**options, grads=call.grads, tiling=call.tiling, numerics=False)
