"""What aclnnConvolutionBackwardGetWorkspaceSize was given, by the names of its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernels.aclnn.objects import aclTensor

INPUTS = ("gradOutput", "input", "weight")
OUTPUTS = ("gradInput", "gradWeight", "gradBias")
PARTNER = {"gradInput": "input", "gradWeight": "weight", "gradBias": "gradOutput"}
"""The tensor whose type a result has."""


@dataclass(frozen=True)
class Arguments:
    """The arguments as given: nothing is checked yet, so any may be None or of a wrong type."""

    tensors: dict[str, aclTensor | None]
    biasSizes: Sequence[int] | None  # noqa: N815  # the page's name
    stride: Sequence[int] | None
    padding: Sequence[int] | None
    dilation: Sequence[int] | None
    transposed: bool
    outputPadding: Sequence[int] | None  # noqa: N815  # the page's name
    groups: int
    outputMask: Sequence[bool] | None  # noqa: N815  # the page's name
    cubeMathType: int  # noqa: N815  # the page's name

    def tensor(self, name: str) -> aclTensor:
        """A tensor that is known to be there."""
        found = self.tensors[name]
        assert found is not None  # noqa: S101  # null pointers are refused before anything else
        return found

    def array(self, name: str) -> tuple[int, ...]:
        """An array that is known to be there."""
        return tuple(getattr(self, name))

    @property
    def wanted(self) -> tuple[str, ...]:
        """The results that the mask asks for."""
        mask = self.outputMask or (False,) * 3
        return tuple(name for name, asked in zip(OUTPUTS, mask, strict=True) if asked)

    @property
    def named(self) -> dict[str, aclTensor]:
        """The operands and the results asked for."""
        return {name: self.tensor(name) for name in (*INPUTS, *self.wanted)}

    @property
    def ndim(self) -> int:
        """Spatial axes of the input."""
        return len(self.tensor("input").shape) - 2

    @property
    def pads(self) -> tuple[tuple[int, int], ...]:
        """(low, high) an axis; four values of a 2-D call are top, bottom, left, right."""
        values = self.array("padding")
        if self.ndim == 2 and len(values) == 4:
            return (values[0], values[1]), (values[2], values[3])
        return tuple((value, value) for value in values)
