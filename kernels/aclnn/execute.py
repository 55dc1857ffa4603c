"""Running a planned call: the neutral operator on the device, and its results in the tensors of the call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.aclnn.plan import GRADIENTS, Plan
from kernels.conv_backward import conv_backward
from simulator.results.run import Run
from simulator.values.numerics import dtype as named


def execute(plan: Plan) -> Run:
    """Run a plan; the results asked for are written when all of them are complete.

    Raises:
        CapacityError: a memory is too small.
    """
    arrays = operand_arrays(plan) if plan.numerics else {}
    run = conv_backward(
        arrays.get("dy"),
        arrays.get("w"),
        x=arrays.get("x"),
        shape=plan.shape,
        grads=plan.grads,
        target=plan.device.target,
        cores=plan.device.cores,
        dtype=plan.compute,
        numerics=plan.numerics,
    )
    if plan.numerics:
        write_results(plan, run)
    return run


def operand_arrays(plan: Plan) -> dict[str, NDArray[Any]]:
    """The operands as the cube reads them: packed, in the type that it computes in."""
    kind = named(plan.storage).storage
    with np.errstate(over="ignore"):  # beyond fp16's range is infinity, as in the chip's cast
        return {name: np.ascontiguousarray(t.data, kind) for name, t in plan.operands.items()}


def write_results(plan: Plan, run: Run) -> None:
    """Copy the gradients into the tensors of the call, in their types."""
    for name in plan.given.wanted:
        data = plan.given.tensor(name).data
        assert data is not None  # noqa: S101  # the checks refuse calls with some of the data
        with np.errstate(over="ignore"):  # beyond fp16's range is infinity, as in the chip's cast
            data[...] = run.outputs[GRADIENTS[name]].astype(data.dtype)
