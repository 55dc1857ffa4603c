"""Gradients and outputs beside PyTorch's on the CPU: 100 shapes of the tables, of 1 to 3 axes, plain and transposed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from kernels.conv_backward import conv_backward
from kernels.conv_forward import conv_forward
from kernels.families import stored_in
from kernels.reference.checking import allowed_error, random_operands, seen
from kernels.reference.comparison import compare
from kernels.reference.references import (
    conv_backward_magnitude,
    conv_backward_reference,
    conv_forward_magnitude,
)
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from simulator.values.numerics import Array, dtype
from tests.case_table import Case
from tests.kernels.davinci_rows import chip_of
from tests.kernels.sweep import every_case, spread

GRADS = ("dx", "dw", "db")
LARGEST_MACS = 3_000_000
KINDS = ((1, False, 14), (2, False, 36), (3, False, 20), (1, True, 8), (2, True, 12), (3, True, 10))
"""Spatial axes, whether transposed, and how many rows."""


def sampled() -> list[Case]:
    """Rows of every kind, grouped ones among them, that are legal in PyTorch as well."""
    cheap = [case for case in every_case() if case.shape.useful_macs < LARGEST_MACS and legal(case.shape)]
    found = []
    for ndim, transposed, count in KINDS:
        kind = [c for c in cheap if (c.shape.ndim, c.shape.transposed) == (ndim, transposed)]
        several = [c for c in kind if c.shape.groups > 1]
        grouped = spread(several, min(len(several), count // 3))
        found += grouped + spread([c for c in kind if c not in grouped], count - len(grouped))
    return found


def legal(shape: ConvShape) -> bool:
    """PyTorch refuses empty channels and outputs, and has one pad an axis where a convolution is transposed."""
    return 0 not in (shape.n, shape.cin, shape.cout, *shape.out) and (
        not shape.transposed or all(low == high for low, high in shape.padding)
    )


CASES = sampled()


def test_a_hundred_shapes_of_every_kind() -> None:
    """The sample has what its name says."""
    assert len({case.id for case in CASES}) == 100
    kinds = {(c.shape.ndim, c.shape.transposed) for c in CASES}
    assert len(kinds) == 6
    assert sum(case.shape.groups > 1 for case in CASES) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.table}-{case.id}")
def test_gradients_and_output_are_pytorchs(case: Case) -> None:
    """The simulated numbers in fp32, and the float64 reference, against autograd in float64."""
    shape = case.shape
    made = operands(shape)
    y, expected = autograd(shape, made)
    run = conv_backward(made["dy"], made["w"], x=made["x"], shape=shape, target="mt7004")
    magnitude = conv_backward_magnitude(shape, made["dy"], made["w"], made["x"])
    reference = conv_backward_reference(shape, made["dy"], made["w"], made["x"])
    for name in GRADS:
        off = np.abs(np.subtract(reference[name], expected[name], dtype=np.float64)).max()
        assert off <= 1e-12 * magnitude[name].max(), name
        check(name, run, shape, expected[name], magnitude[name])
    forward = conv_forward(made["x"], made["w"], made["bias"], shape=shape, target="mt7004")
    check("y", forward, shape, y, conv_forward_magnitude(shape, made["x"], made["w"], made["bias"]))


@pytest.mark.slow
@pytest.mark.parametrize(("number", "case"), list(enumerate(CASES)), ids=lambda v: getattr(v, "id", ""))
def test_gradients_of_cubes_are_pytorchs(number: int, case: Case) -> None:
    """The same rows on Da Vinci chips, dealt to chips and types; autograd has what the cubes see of the operands."""
    shape, (target, rate) = case.shape, chip_of(number)
    stored = {name: array.astype(stored_in(rate).storage) for name, array in operands(shape).items()}
    run = conv_backward(stored["dy"], stored["w"], x=stored["x"], shape=shape, target=target, dtype=rate)
    read = stored | {name: seen(rate, stored[name]) for name in ("dy", "w", "x")}
    for names, given in ((("dx", "dw"), read), (("db",), stored)):  # db does not go through the cube
        magnitude = conv_backward_magnitude(shape, given["dy"], given["w"], given["x"])
        expected = autograd(shape, given)[1]
        for name in names:
            check(name, run, shape, expected[name], magnitude[name])


def operands(shape: ConvShape) -> dict[str, Array]:
    """Random operands."""
    sizes = {"dy": shape.dy_shape, "w": shape.w_shape, "x": shape.x_shape, "bias": (shape.cout,)}
    return random_operands(sizes, dtype("fp32"), 5, False, 1)


def check(name: str, run: Run, shape: ConvShape, expected: Array, magnitude: Any) -> None:
    """An output within the bound of rounding of PyTorch's."""
    found = compare(run.outputs[name], expected, allowed_error(name, run, shape, expected, magnitude))
    assert found.ok, f"{name}: error {found.max_error} at {found.index}, allowed {found.tolerance}"


def autograd(shape: ConvShape, made: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
    """PyTorch's output and gradients of float64 leaves; unequal pads are made by padding or cropping x."""
    torch: Any = import_module("torch")
    x, w, bias = (torch.tensor(made[n].astype(np.float64), requires_grad=True) for n in ("x", "w", "bias"))
    options: dict[str, Any] = {"stride": shape.stride, "dilation": shape.dilation, "groups": shape.groups}
    functional = torch.nn.functional
    if shape.transposed:
        convolve = getattr(functional, f"conv_transpose{shape.ndim}d")
        pads = [low for low, _ in shape.padding]
        y = convolve(x, w, bias, padding=pads, output_padding=shape.output_padding, **options)
    else:
        around = [pad for low_high in reversed(shape.padding) for pad in low_high]
        y = getattr(functional, f"conv{shape.ndim}d")(functional.pad(x, around), w, bias, **options)
    y.backward(torch.tensor(made["dy"].astype(np.float64)))
    gradients = {"dx": x.grad, "dw": w.grad, "db": bias.grad}
    return y.detach().numpy(), {name: gradient.numpy() for name, gradient in gradients.items()}
