"""A training step on one machine: what each launch leaves in the cache the next one finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from reports.networks.times import LayerTime
from targets.errors import TilesimError
from tilesim.networks.layers import Layer
from tilesim.networks.timing import Chip, Work, macs_of, run_backward, run_forward


def time_step(
    chip: Chip, layers: Sequence[Layer], works: Sequence[Work], tell: Callable[[], None] | None = None
) -> list[LayerTime]:
    """What each layer costs in a step: forward of all, then the gradients of each, the last layer first.

    Tensors of the network keep their addresses: a layer reads what another wrote, and dx of one is dy of the other;
    weights and inputs lie where forward read them. `tell` is called when a layer's backward is done.
    """
    step = _Step(chip, layers, works)
    for place in range(len(layers)):
        step.forward(place)
    for place in reversed(range(len(layers))):
        step.backward(place)
        if tell is not None:
            tell()
    return [step.found(place) for place in range(len(layers))]


class _Step:
    """The machine of a step, and what its layers have cost so far."""

    def __init__(self, chip: Chip, layers: Sequence[Layer], works: Sequence[Work]) -> None:
        self._chip, self._layers, self._works = chip, layers, works
        self._machine = chip.machine(traced=False)
        self._cycles: list[dict[str, int]] = [{} for _ in layers]
        self._tensors: list[dict[str, int]] = [{} for _ in layers]
        self._refused = [""] * len(layers)
        self._makers = {layer.writes for layer in layers}
        self._first = {layer.reads: place for place, layer in reversed(list(enumerate(layers)))}

    def forward(self, place: int) -> None:
        """Run a layer's forward convolution."""
        shape = self._works[place].shape
        self._call(place, lambda places: run_forward(self._chip, self._machine, shape, places))

    def backward(self, place: int) -> None:
        """Run a layer's gradients, and free those of images that no layer needs any more."""
        work, layer = self._works[place], self._layers[place]
        if work.grads and not self._refused[place]:
            self._call(place, lambda places: run_backward(self._chip, self._machine, work, places))
        self._machine.forget(gradient_of(layer.writes))
        if layer.reads not in self._makers and self._first[layer.reads] == place:
            self._machine.forget(gradient_of(layer.reads))

    def _call(self, place: int, run: Callable[[Mapping[str, str]], dict[str, int]]) -> None:
        """Add the cycles of a call, or keep why it was refused."""
        try:
            self._cycles[place] |= run(places_of(place, self._layers[place]))
            self._tensors[place] = self._machine.tensors
        except TilesimError as error:
            self._refused[place] = str(error)

    def found(self, place: int) -> LayerTime:
        """What a layer cost."""
        if self._refused[place]:
            return LayerTime(refused=self._refused[place])
        cycles = self._cycles[place]
        return LayerTime(cycles, macs_of(self._works[place], cycles), self._tensors[place])


def places_of(place: int, layer: Layer) -> dict[str, str]:
    """The network's names of a layer's tensors, by the kernels' names."""
    own = {name: f"{name} of {place}" for name in ("w", "dw", "db", "dw_tap_major")}
    images = {"x": layer.reads, "y": layer.writes}
    return {**own, **images, "dx": gradient_of(layer.reads), "dy": gradient_of(layer.writes)}


def gradient_of(tensor: str) -> str:
    """The name of a tensor's gradient."""
    return f"gradient of {tensor}"
