"""One call of each operator on random operands, compared with its reference where that is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernels.conv_backward import NEEDS, conv_backward, require_capacity
from kernels.conv_forward import conv_forward
from kernels.conv_forward import require_capacity as require_forward_capacity
from kernels.deform_trial import run_deform_backward
from kernels.errors import OperandError
from kernels.families import stored_in
from kernels.ft.trial import run_backprop_input
from kernels.gemm import check_gemm, gemm
from kernels.gemm import require_capacity as require_gemm_capacity
from kernels.nx.trial import run_backward_fast
from kernels.reference.checking import (
    check_conv_backward,
    check_conv_forward,
    longest_sum,
    random_operands,
)
from kernels.registry import Call
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from simulator.values.numerics import Array


def backprop_input_trial(call: Call) -> Run:
    """The vendor's shared call."""
    kind = stored_in(call.computed)
    return run_backprop_input(call.shape, call.target, kind, call.cores, tiling=call.tiling, **_values(call))


def backward_fast_trial(call: Call) -> Run:
    """The call of a host, which has no choice of a type and no tiling.

    Raises:
        OperandError: another type, or a tiling, is asked for.
    """
    if call.dtype not in (None, "fp32", "native"):
        raise OperandError(
            "the operator computes in fp32",
            argument="dtype",
            where=call.operator,
            got=call.dtype,
            limit="fp32",
        )
    if call.tiling:
        what, got = "the operator has no tiling", ", ".join(call.tiling)
        raise OperandError(what, argument="tiling", where=call.operator, got=got)
    return run_backward_fast(call.shape, call.target, len(call.cores), **_values(call))


def deform_trial(call: Call) -> Run:
    """The gradients of a deformable convolution."""
    more = {"tiling": call.tiling, "grads": call.grads or None, **_values(call)}
    return run_deform_backward(call.shape, call.target, call.computed, call.cores, **more)


def _values(call: Call) -> dict[str, Any]:
    """What is said of values."""
    return {
        "numerics": call.numerics,
        "seed": call.seed,
        "integers": call.integers,
        "check": call.check,
    }


def gemm_trial(call: Call) -> Run:
    """A matrix product."""
    (m, n, k), target, computed, chosen = call.shape, call.target, call.computed, call.cores
    options: dict[str, Any] = {"target": target, "cores": chosen, "dtype": computed, "tiling": call.tiling}
    if not call.numerics:
        return gemm(shape=(m, n, k), **options, numerics=False)
    require_gemm_capacity((m, n, k), target, computed, chosen, call.tiling, check=call.check)
    made = call.operands({"a": (m, k), "b": (k, n)}, k)
    run = gemm(made["a"], made["b"], **options)
    if call.check:
        check_gemm(run, made["a"], made["b"])
    return run


def backward_trial(call: Call) -> Run:
    """Some gradients of a convolution; default all."""
    return _Convolution(call).backward()


def forward_trial(call: Call) -> Run:
    """The output of a convolution."""
    return _Convolution(call).forward()


@dataclass(frozen=True)
class _Convolution:
    """A convolution on random operands."""

    call: Call

    @property
    def options(self) -> dict[str, Any]:
        """What both directions are called with."""
        c = self.call
        options = {"shape": c.shape, "target": c.target, "cores": c.cores, "tiling": c.tiling}
        return {**options, "dtype": c.computed}

    def operands(self, shapes: Mapping[str, tuple[int, ...]], outputs: Sequence[str]) -> dict[str, Array]:
        """Random operands for some outputs."""
        c = self.call
        terms = longest_sum(c.shape, outputs)
        return random_operands(shapes, stored_in(c.computed), c.seed, c.integers, terms)

    def backward(self) -> Run:
        """Some gradients."""
        c, asked = self.call, self.call.grads or tuple(NEEDS)
        if not c.numerics:
            return conv_backward(**self.options, grads=asked, numerics=False)
        shape: ConvShape = c.shape
        require_capacity(shape, c.target, c.computed, asked, check=c.check)
        shapes = {"dy": shape.dy_shape, "w": shape.w_shape, "x": shape.x_shape}
        needed = {name: dims for name, dims in shapes.items() if any(name in NEEDS.get(g, ()) for g in asked)}
        made = self.operands(needed, asked)
        dy, w, x = (made.get(name) for name in shapes)
        run = conv_backward(dy, w, x=x, **self.options, grads=asked)
        if c.check and dy is not None:
            check_conv_backward(run, shape, dy, w, x)
        return run

    def forward(self) -> Run:
        """The output, without a bias."""
        c = self.call
        if not c.numerics:
            return conv_forward(**self.options, numerics=False)
        require_forward_capacity(c.shape, c.target, c.computed, check=c.check)
        made = self.operands({"x": c.shape.x_shape, "w": c.shape.w_shape}, ("y",))
        run = conv_forward(made["x"], made["w"], **self.options)
        if c.check:
            check_conv_forward(run, c.shape, made["x"], made["w"])
        return run
