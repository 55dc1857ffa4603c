"""One run of a row that shows both: integers that must be exact, and random numbers within the bound of rounding.

Half of the channels of one operand are random, every second one, and all else is integers: so each channel of the
outputs is of one kind. The numbers are those of fp16, so that one pair of references serves every type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.conv_backward import NEEDS, conv_backward
from kernels.conv_forward import conv_forward
from kernels.reference.checking import allowed_error, longest_sum, random_operands
from kernels.reference.comparison import compare
from kernels.reference.references import (
    conv_backward_magnitude,
    conv_backward_reference,
    conv_forward_magnitude,
    conv_forward_reference,
)
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from simulator.values.numerics import dtype
from tests.kernels.sweep import LARGEST_HALF_MACS, Mode, modes

Arrays = dict[str, Any]

FORWARD = ("y",)
NEEDED: dict[str, tuple[str, ...]] = {**NEEDS, "y": ("x", "w", "bias")}


def check_modes(shape: ConvShape, target: str, outputs: Sequence[str]) -> None:
    """The outputs of a row in every mode of a target; long sums in fp16 are left out."""
    given, random = mixed(shape, outputs)
    reference, magnitude = references(shape, given, outputs)
    for mode in modes([target]):
        if not mode.half or shape.useful_macs <= LARGEST_HALF_MACS:
            run = run_of(shape, given, mode, outputs)
            for name in outputs:
                check_output(name, run, shape, mode, (reference[name], magnitude[name]), random[name])


def check_output(
    name: str,
    run: Run,
    shape: ConvShape,
    mode: Mode,
    expected: tuple[NDArray[Any], NDArray[Any]],
    random: NDArray[np.bool_],
) -> None:
    """All within the bound; what is made of integers exactly, unless sums are rounded on the way."""
    found = run.outputs[name]
    result = compare(found, expected[0], allowed_error(name, run, shape, *expected))
    assert result.ok, f"{name} {mode}: error {result.max_error} at {result.index}, allowed {result.tolerance}"
    if not mode.half:
        whole = np.broadcast_to(~random, found.shape)
        with np.errstate(over="ignore"):
            rounded = expected[0].astype(found.dtype)
        np.testing.assert_array_equal(found[whole], rounded[whole], err_msg=f"{name} {mode}")


def mixed(
    shape: ConvShape, outputs: Sequence[str], numbers: str = "fp16"
) -> tuple[Arrays, dict[str, NDArray[np.bool_]]]:
    """Operands of a type's numbers, and for each output which elements are random (broadcast to its shape)."""
    sizes = {"dy": shape.dy_shape, "w": shape.w_shape, "x": shape.x_shape, "bias": (shape.cout,)}
    sizes = {n: size for n, size in sizes.items() if any(n in NEEDED[output] for output in outputs)}
    kind, terms = dtype(numbers), longest_sum(shape, outputs) + 1
    made = random_operands(sizes, kind, 1, True, terms)
    noise = random_operands(sizes, kind, 2, False, 1)
    carrier, axis, seen = _random_axis(shape, outputs)
    odd = np.arange(sizes[carrier][axis]) % max(1, seen) % 2 == 1
    made[carrier] = np.where(_along(odd, axis, len(sizes[carrier])), noise[carrier], made[carrier])
    return made, {name: _random_part(name, shape, odd) for name in outputs}


def _random_axis(shape: ConvShape, outputs: Sequence[str]) -> tuple[str, int, int]:
    """The operand with random channels, their axis, and how many of them a group has there."""
    if "dw" in outputs or "db" in outputs:
        return "dy", 1, shape.cout // shape.groups
    result_first = shape.transposed == ("dx" in outputs)
    channels = (shape.cin if "dx" in outputs else shape.cout) // shape.groups
    return "w", 0 if result_first else 1, channels


def _random_part(name: str, shape: ConvShape, odd: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which channels of an output are sums of random numbers, broadcast over its other axes."""
    channels = {"dx": shape.cin, "y": shape.cout, "db": shape.cout, "dw": shape.w_shape[0]}[name]
    if name == "dw" and shape.transposed:
        return _along(odd[: shape.w_shape[1]], 1, shape.ndim + 2)
    every = np.tile(odd, channels // max(1, len(odd))) if len(odd) != channels else odd
    return every if name == "db" else _along(every, 0 if name == "dw" else 1, shape.ndim + 2)


def _along(values: NDArray[np.bool_], axis: int, ndim: int) -> NDArray[np.bool_]:
    return values.reshape(*(1,) * axis, -1, *(1,) * (ndim - axis - 1))


def references(shape: ConvShape, given: Arrays, outputs: Sequence[str]) -> tuple[Arrays, Arrays]:
    """The outputs and the sums of magnitudes behind them."""
    if outputs == FORWARD:
        made = conv_forward_reference(shape, **given), conv_forward_magnitude(shape, **given)
        return {"y": made[0]}, {"y": made[1]}
    return (
        conv_backward_reference(shape, **given, grads=outputs),
        conv_backward_magnitude(shape, **given, grads=outputs),
    )


def run_of(shape: ConvShape, given: Arrays, mode: Mode, outputs: Sequence[str]) -> Run:
    """A run in a mode."""
    stored = {name: array.astype(dtype(mode.dtype).storage) for name, array in given.items()}
    options: dict[str, Any] = {"shape": shape, "target": mode.target, "tiling": mode.tiling(outputs)}
    if outputs == FORWARD:
        return conv_forward(**stored, **options)
    return conv_backward(**stored, **options, grads=outputs)
