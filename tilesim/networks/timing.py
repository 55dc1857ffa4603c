"""What one convolution costs on one target, by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernels import conv_backward, conv_forward
from kernels.conv_backward import require_ddr
from kernels.families import LoweredBackward, backward_of, forward_of, stored_in
from kernels.shape.shapes import ConvShape
from reports.networks.times import LayerTime
from simulator.results.metrics import measure
from targets.errors import TilesimError
from targets.schema import Target
from tilesim.networks.machine import NetworkMachine

OPERANDS = {"x": "x", "w": "w", "y": "y", "dy": "dy", "dx": "dx", "dw": "dw", "db": "db"}
"""Tensors of a layer that forward and backward share when it runs by itself."""

MACS = ("forward", "dx", "dw")
"""The parts that multiply."""


@dataclass(frozen=True)
class Chip:
    """A target and how it is used: its cores by number, and the type that it computes in."""

    target: Target
    cores: tuple[int, ...]
    dtype: str

    def machine(self, *, traced: bool) -> NetworkMachine:
        """A machine with nothing in it."""
        return NetworkMachine(self.target, self.cores, traced=traced)


@dataclass(frozen=True)
class Work:
    """What is asked of one convolution: its geometry, which gradients (there may be none), and whether forward."""

    shape: ConvShape
    grads: tuple[str, ...]
    forward: bool


def time_layer(chip: Chip, work: Work) -> LayerTime:
    """What one convolution costs by itself, caches cold; a refusal is a result too."""
    machine = chip.machine(traced=True)
    cycles: dict[str, int] = {}
    try:
        if work.forward:
            cycles |= run_forward(chip, machine, work.shape, OPERANDS)
        if work.grads:
            cycles |= run_backward(chip, machine, work, OPERANDS)
    except TilesimError as error:
        return LayerTime(refused=str(error))
    figures = measure(machine.trace(), chip.target, len(chip.cores), machine.cycles, machine.launches)
    return LayerTime(cycles, macs_of(work, cycles), machine.tensors, figures.bound)


def macs_of(work: Work, cycles: Mapping[str, int]) -> int:
    """Useful multiply-adds of the parts that ran."""
    return work.shape.useful_macs * len(set(MACS).intersection(cycles))


def run_forward(
    chip: Chip, machine: NetworkMachine, shape: ConvShape, places: Mapping[str, str]
) -> dict[str, int]:
    """Launch the forward convolution; its cycles.

    Raises:
        TilesimError: the target refuses it.
    """
    require_ddr(conv_forward.tensors_of(shape), chip.target, stored_in(chip.dtype))
    machine.begin(places)
    begun = machine.cycles
    forward_of(shape, chip.dtype, machine, {}, bias=False).run()
    return {"forward": machine.cycles - begun}


def run_backward(
    chip: Chip, machine: NetworkMachine, work: Work, places: Mapping[str, str]
) -> dict[str, int]:
    """Launch the gradients; the cycles of each.

    Raises:
        TilesimError: the target refuses one.
    """
    require_ddr(conv_backward.tensors_of(work.shape, work.grads), chip.target, stored_in(chip.dtype))
    machine.begin(places)
    made = backward_of(work.shape, chip.dtype, machine, work.grads, {})
    return dict(_timed(machine, made))


def _timed(machine: NetworkMachine, made: LoweredBackward) -> Iterator[tuple[str, int]]:
    begun = machine.cycles
    for grad in made.parts():
        yield grad, machine.cycles - begun
        begun = machine.cycles
