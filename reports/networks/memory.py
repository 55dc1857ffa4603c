"""Device memory that the backward pass of a network holds, from the tensors of each layer's call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

GRADIENTS = {"dx": ("dx",), "dw": ("dw", "dw_tap_major"), "db": ("db",)}
"""The tensor that holds a gradient: the first of these that there is."""

OPERANDS = ("x", "y", "w", "dy", "bias")


@dataclass(frozen=True)
class Held:
    """Bytes on the device, in its layouts.

    Attributes:
        weight_gradients: dw and db of all layers: an optimiser takes them when the pass has ended.
        image_gradients: dy and dx of the layer that has most: they go from layer to layer.
        workspaces: of the layer that has most: the next one uses the same bytes.
        peak: the most at any layer, backwards: gradients of weights so far, dy, dx and workspace.
        workspaces_of_all: workspaces of all layers, for a runtime that does not use them again.
    """

    weight_gradients: int
    image_gradients: int
    workspaces: int
    peak: int
    workspaces_of_all: int

    def to_dict(self) -> dict[str, int]:
        """Plain values."""
        return asdict(self)


def gradient(tensors: Mapping[str, int], name: str) -> int:
    """Bytes of a gradient; 0 where the call has none."""
    return next((tensors[each] for each in GRADIENTS[name] if each in tensors), 0)


def workspace(tensors: Mapping[str, int]) -> int:
    """Bytes of what is neither operand nor gradient: sums of cores, weights in another order, columns."""
    named = {*OPERANDS} | {
        next((each for each in names if each in tensors), "") for names in GRADIENTS.values()
    }
    return sum(size for name, size in tensors.items() if name not in named)


def held(layers: Sequence[Mapping[str, int]]) -> Held:
    """What the tensors of the layers' calls, in the order of the network, take."""
    kept = peak = images = 0
    for tensors in reversed(layers):
        kept += gradient(tensors, "dw") + gradient(tensors, "db")
        passing = tensors.get("dy", 0) + gradient(tensors, "dx")
        images = max(images, passing)
        peak = max(peak, kept + passing + workspace(tensors))
    spaces = [workspace(tensors) for tensors in layers]
    return Held(kept, images, max(spaces, default=0), peak, sum(spaces))
