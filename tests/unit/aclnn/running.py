"""Arguments of calls on small integers, and both calls at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels import aclnn
from kernels.reference.checking import longest_sum, random_operands
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from simulator.values.numerics import dtype

RESULTS = {"gradInput": "dx", "gradWeight": "dw", "gradBias": "db"}
PLAIN = ConvShape(n=2, cin=4, size=(7, 6), cout=6, kernel=(3, 2), stride=(2, 1), padding=(1, 0), groups=2)
TRANSPOSED = ConvShape(
    n=2,
    cin=4,
    size=(4, 5),
    cout=6,
    kernel=(3, 2),
    stride=2,
    padding=(1, 0),
    groups=2,
    transposed=True,
    output_padding=(1, 0),
)


def operands(shape: ConvShape, kind: str = "fp16") -> dict[str, NDArray[Any]]:
    """Small integers, whose sums are exact."""
    sizes = {"dy": shape.dy_shape, "w": shape.w_shape, "x": shape.x_shape}
    terms = longest_sum(shape, ("dx", "dw", "db"))
    return dict(random_operands(sizes, dtype(kind), 1, True, terms))


def arguments(
    shape: ConvShape,
    arrays: dict[str, NDArray[Any]],
    mask: Sequence[bool] = (True, True, True),
    math: int = 0,
) -> dict[str, Any]:
    """The arguments of a call, with results of NaN."""
    results = {
        "gradInput": np.full(shape.x_shape, np.nan, arrays["x"].dtype),
        "gradWeight": np.full(shape.w_shape, np.nan, arrays["w"].dtype),
        "gradBias": np.full((shape.cout,), np.nan, arrays["dy"].dtype),
    }
    tensors = {"gradOutput": arrays["dy"], "input": arrays["x"], "weight": arrays["w"], **results}
    return {name: aclnn.aclTensor.of(array) for name, array in tensors.items()} | {
        "biasSizes": [shape.cout],
        "stride": list(shape.stride),
        "padding": [low for low, _ in shape.padding],
        "dilation": list(shape.dilation),
        "transposed": shape.transposed,
        "outputPadding": list(shape.output_padding),
        "groups": shape.groups,
        "outputMask": list(mask),
        "cubeMathType": math,
    }


def timed(given: dict[str, Any]) -> dict[str, Any]:
    """The same call without data."""
    return {
        name: aclnn.aclCreateTensor(value.shape, value.dtype, format=value.format)
        if isinstance(value, aclnn.aclTensor)
        else value
        for name, value in given.items()
    }


def run(device: aclnn.Device, given: dict[str, Any], stream: aclnn.Stream | None = None) -> Run:
    """Both calls, which must succeed."""
    size, executor = aclnn.Out[int](), aclnn.Out[aclnn.aclOpExecutor]()
    with device:
        aclnn.check(
            aclnn.aclnnConvolutionBackwardGetWorkspaceSize(**given, workspaceSize=size, executor=executor)
        )
    bytes_needed = size.value or 0
    memory = device.malloc(bytes_needed)
    aclnn.check(aclnn.aclnnConvolutionBackward(memory, bytes_needed, executor, stream or device.stream()))
    assert executor.value is not None
    assert executor.value.run is not None
    return executor.value.run
