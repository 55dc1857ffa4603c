"""A call of aclnnConvolutionBackward that can be changed argument by argument, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from kernels import aclnn
from kernels.aclnn.objects import PLAIN_FORMATS, STORAGE, aclDataType, aclFormat, aclTensor, packed
from simulator.values.numerics import dtype

FLOAT, FLOAT16, BF16 = aclDataType.ACL_FLOAT, aclDataType.ACL_FLOAT16, aclDataType.ACL_BF16
TARGETS = {
    "910": "ascend910a",
    "310P": "ascend310p3",
    "A2": "ascend910b1",
    "A3": "ascend910_9391",
    "950": "ascend950pr",
}
"""A target of each product."""

MARK = 7.0
"""What results hold before a call."""


def tensor(
    shape: tuple[int, ...], kind: aclDataType = FLOAT16, layout: aclFormat | None = None, *, data: bool = True
) -> aclTensor:
    """A packed tensor full of a mark; types that NumPy lacks have no data."""
    chosen = layout or PLAIN_FORMATS.get(len(shape), aclFormat.ACL_FORMAT_ND)
    there = data and kind in STORAGE
    array = np.full(shape, MARK, dtype(STORAGE[kind]).storage) if there else None
    return aclTensor(shape, kind, chosen, packed(shape), array)


@dataclass
class Call:
    """The arguments by the names of the page, and where the results go."""

    arguments: dict[str, Any]
    size: aclnn.Out[int] = field(default_factory=aclnn.Out)
    executor: aclnn.Out[aclnn.aclOpExecutor] = field(default_factory=aclnn.Out)

    def plan(self, series: str = "A2") -> int:
        """The first call, on a target of a series, or on a target by its name."""
        with aclnn.Device(TARGETS.get(series, series)):
            return aclnn.aclnnConvolutionBackwardGetWorkspaceSize(
                **{"workspaceSize": self.size, "executor": self.executor, **self.arguments}
            )

    @property
    def tensors(self) -> dict[str, aclTensor]:
        """The arguments that are tensors."""
        return {name: value for name, value in self.arguments.items() if isinstance(value, aclTensor)}

    @property
    def untouched(self) -> bool:
        """Whether nothing was written: neither a byte of a tensor nor an out-pointer."""
        arrays = [t.data for t in self.tensors.values() if t.data is not None]
        return (
            self.size.value is None and self.executor.value is None and all((a == MARK).all() for a in arrays)
        )


def call(
    *,
    ndim: int = 2,
    transposed: bool = False,
    kind: aclDataType = FLOAT16,
    changed: Mapping[str, object] = MappingProxyType({}),
    **more: object,
) -> Call:
    """A call that every product with this rank and type takes: 2 groups, 3 x 3 kernel, pad 1, output like input."""
    size, ones = (5, 6, 7)[-ndim:], [1] * ndim
    w = (4, 3, *[3] * ndim) if transposed else (6, 2, *[3] * ndim)
    x, dy = (2, 4, *size), (2, 6, *size)
    shapes = {"gradOutput": dy, "input": x, "weight": w, "gradInput": x, "gradWeight": w, "gradBias": (6,)}
    base: dict[str, object] = {name: tensor(shape, kind) for name, shape in shapes.items()}
    base |= {
        "biasSizes": [6],
        "stride": ones,
        "padding": ones,
        "dilation": ones,
        "transposed": transposed,
        "outputPadding": [0] * ndim,
        "groups": 2,
        "outputMask": [True, True, True],
        "cubeMathType": 1,
    }
    return Call({**base, **changed, **more})


def refused(made: Call, series: str = "A2") -> aclnn.AclnnError:
    """The error of a call that must be refused, with nothing written and its message at hand."""
    status = made.plan(series)
    error = aclnn.recent_error()
    assert error is not None
    assert status == error.code
    assert aclnn.aclGetRecentErrMsg() == str(error)
    assert aclnn.aclGetRecentErrMsg() is None
    assert made.untouched
    return error


def shapes(**changed: tuple[int, ...]) -> Mapping[str, aclTensor]:
    """Tensors by name, of these shapes; results like their operands unless they are given."""
    like = {"input": "gradInput", "weight": "gradWeight"}
    results = {like[name]: tensor(shape) for name, shape in changed.items() if name in like}
    return {**results, **{name: tensor(shape) for name, shape in changed.items()}}
