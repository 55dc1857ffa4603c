"""Which work of a network is distinct, and which has to be done in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from reports.networks.times import LayerTime
from tilesim.networks.layers import Layer, NetworkError
from tilesim.networks.step import time_step
from tilesim.networks.timing import Chip, Work, time_layer

MOST_IN_ORDER = 2000
"""Layers of a step on a target with a cache: each is simulated, however many are equal."""


def works_of(layers: Sequence[Layer], grads: tuple[str, ...], *, step: bool, all_dx: bool) -> list[Work]:
    """What is asked of each layer: not dx where it is of no use."""
    rest = tuple(grad for grad in grads if grad != "dx")
    return [Work(layer.shape, rest if layer.first and not all_dx else grads, step) for layer in layers]


@dataclass(frozen=True)
class Plan:
    """The work on one target, as tasks that do not depend on each other.

    Attributes:
        chip: where.
        layers: of the network; needed in order.
        works: one a task; in order, all of one task.
        which: for each layer, the place of its time among the results.
        in_order: whether all is one task.
    """

    chip: Chip
    layers: tuple[Layer, ...]
    works: tuple[Work, ...]
    which: tuple[int, ...]
    in_order: bool

    def tasks(self) -> Iterator[Task]:
        """One for each distinct work, or one for all."""
        if self.in_order:
            yield Task(self.chip, self.works, self.layers)
        else:
            for work in self.works:
                yield Task(self.chip, (work,), ())


@dataclass(frozen=True)
class Task:
    """What one process does at a time."""

    chip: Chip
    works: tuple[Work, ...]
    layers: tuple[Layer, ...]

    @property
    def size(self) -> int:
        """How much there is to do, roughly."""
        return sum(work.shape.useful_macs for work in self.works)

    def run(self, tell: Callable[[], None] | None = None) -> list[LayerTime]:
        """Its layers' times; `tell` is called when a layer of several is done."""
        if self.layers:
            return time_step(self.chip, self.layers, self.works, tell)
        return [time_layer(self.chip, work) for work in self.works]


def plan_of(chip: Chip, layers: tuple[Layer, ...], works: Sequence[Work], *, step: bool) -> Plan:
    """Distinct works; in a step on a target with a cache all works, since a layer's time depends on those before.

    Raises:
        NetworkError: there are too many of them.
    """
    if step and chip.target.cache:
        if len(works) > MOST_IN_ORDER:
            raise NetworkError(
                "too many layers for a step, in which a cache is handed on",
                where=chip.target.name,
                got=len(works),
                limit=MOST_IN_ORDER,
                remedy="leave --step out, and each distinct layer is simulated once",
            )
        return Plan(chip, layers, tuple(works), tuple(range(len(works))), in_order=True)
    places = {work: place for place, work in enumerate(dict.fromkeys(works))}
    return Plan(chip, layers, tuple(places), tuple(places[work] for work in works), in_order=False)
