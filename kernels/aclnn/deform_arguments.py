"""What aclnnDeformableConv2dBackwardGetWorkspaceSize was given, by the names of its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernels.aclnn.objects import aclTensor

INPUTS = ("input", "gradOutput", "offsetOut", "weight", "offset")
OUTPUTS = ("gradInput", "gradWeight", "gradOffset", "gradBias")
ARRAYS = ("kernelSize", "stride", "padding", "dilation")


@dataclass(frozen=True)
class DeformArguments:
    """The arguments as given: nothing is checked yet, so any may be None or of a wrong type."""

    tensors: dict[str, aclTensor | None]
    arrays: dict[str, Sequence[int] | None]
    groups: int
    deformableGroups: int  # noqa: N815  # the page's name
    modulated: object

    def tensor(self, name: str) -> aclTensor:
        """A tensor that is known to be there."""
        found = self.tensors[name]
        assert found is not None  # noqa: S101  # null pointers are refused before anything else
        return found

    def array(self, name: str) -> tuple[int, ...]:
        """An array that is known to be there."""
        found = self.arrays[name]
        assert found is not None  # noqa: S101  # null pointers are refused before anything else
        return tuple(found)
