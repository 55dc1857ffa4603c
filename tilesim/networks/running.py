"""A network on targets: which work is distinct, who does it, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from kernels.conv_backward import AVAILABLE, chosen_grads
from kernels.errors import OperandError
from kernels.operand_arrays import require_convolution_type
from kernels.placement import chosen_cores, chosen_dtype, resolved_target
from reports.network import LayerTime, LayerWork, NetworkTimes, TargetTimes
from targets.errors import TilesimError
from targets.schema import Target
from tilesim.networks.layers import Layer, Network, NetworkError
from tilesim.networks.reading import read_network
from tilesim.networks.sizes import sizes_text
from tilesim.networks.timing import Chip, Work, time_layer, time_step

Report = Callable[[int, int], None]
"""Is told how many pieces of work are done, and of how many."""

MOST_IN_ORDER = 2000
"""Layers of a step on a target with a cache: each is simulated, however many are equal."""


def network(
    model: str | Path | Network,
    *,
    targets: Sequence[str | Target] = ("mt7004",),
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    dtype: str = "native",
    cores: int | Sequence[int] | None = None,
    grads: Sequence[str] = ("dx", "dw"),
    step: bool = False,
    all_dx: bool = False,
    jobs: int = 1,
    report: Report | None = None,
) -> NetworkTimes:
    """Time the backward of every convolution of a network, each distinct one once, on targets.

    Args:
        model: an ONNX model (.onnx, needs the extra `onnx`), a CSV table of layers, or what `read_network` returned.
        targets: names, TOML files or Targets.
        batch: images, where the file leaves them open; where it says a number, this one instead.
        dims: other dimensions that an ONNX model leaves open, by name.
        dtype: what the chips compute in; "native": each target's best.
        cores: how many cores (the first ones), or which; default all.
        grads: which gradients.
        step: a training step: forward too. Where a target has a cache, all forward convolutions and then the gradients,
            the last layer's first, run on one machine, and each finds in the cache what was left there.
        all_dx: time dx of a convolution that no convolution lies before, too.
        jobs: processes that share the work. With more than one, a script needs `if __name__ == "__main__":`.
        report: is called as pieces of work are done.

    Returns:
        The times. A layer that a target refuses is in them with the reason, and the totals lack it.

    Raises:
        NetworkError: the file is not usable, or every layer is refused on every target.
        TilesimError: an argument is refused.
    """
    if jobs < 1:
        raise OperandError("a number of processes", argument="jobs", got=jobs, limit="1 or more")
    read = model if isinstance(model, Network) else read_network(model, batch, dims)
    wanted = chosen_grads(tuple(grads), {})
    chips, refused = _chips(targets, dtype, cores, wanted)
    works = _works(read.layers, wanted, step=step, all_dx=all_dx)
    plans = [_plan(chip, read.layers, works, step=step) for chip in chips.values()]
    found = _run(plans, jobs, report)
    times = tuple(_times(plan, distinct) for plan, distinct in zip(plans, found, strict=True))
    _require_some(read, times)
    return NetworkTimes(
        model=read.name,
        layers=_described(read.layers),
        targets=times,
        step=step,
        others=read.others,
        notes=read.notes,
        refused=refused,
    )


def _chips(
    targets: Sequence[str | Target], dtype: str, cores: int | Sequence[int] | None, grads: tuple[str, ...]
) -> tuple[dict[str, Chip], dict[str, str]]:
    """Targets by name with cores and type, and why the others are left out.

    Raises:
        TilesimError: there is none, one comes twice, or all are refused.
    """
    chips: dict[str, Chip] = {}
    refused: dict[str, str] = {}
    first: TilesimError | None = None
    for each in targets:
        target = resolved_target(each)
        if target.name in chips or target.name in refused:
            raise OperandError("a target comes twice", argument="targets", got=target.name)
        try:
            chips[target.name] = _chip(target, dtype, cores, grads)
        except TilesimError as error:
            first = first or error
            refused[target.name] = str(error)
    if not chips:
        raise first or OperandError("no target", argument="targets", remedy="name one")
    return chips, refused


def _chip(target: Target, dtype: str, cores: int | Sequence[int] | None, grads: tuple[str, ...]) -> Chip:
    known = AVAILABLE.get(target.family, ())
    unknown = [grad for grad in grads if grad not in known]
    if unknown or not grads:
        what = "gradients that this family of targets does not compute"
        got, limit = ", ".join(unknown) or "none", ", ".join(known) or "none"
        raise OperandError(what, argument="grads", where=target.name, got=got, limit=limit)
    computed = require_convolution_type(chosen_dtype(target, dtype, {}), target)
    return Chip(target, chosen_cores(target, cores), computed)


def _works(layers: Sequence[Layer], grads: tuple[str, ...], *, step: bool, all_dx: bool) -> list[Work]:
    """What is asked of each layer: not dx where it is of no use."""
    rest = tuple(grad for grad in grads if grad != "dx")
    return [Work(layer.shape, rest if layer.first and not all_dx else grads, step) for layer in layers]


@dataclass(frozen=True)
class _Plan:
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

    def tasks(self) -> Iterator[_Task]:
        """One for each distinct work, or one for all."""
        if self.in_order:
            yield _Task(self.chip, self.works, self.layers)
        else:
            for work in self.works:
                yield _Task(self.chip, (work,), ())


@dataclass(frozen=True)
class _Task:
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


def _plan(chip: Chip, layers: tuple[Layer, ...], works: Sequence[Work], *, step: bool) -> _Plan:
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
        return _Plan(chip, layers, tuple(works), tuple(range(len(works))), in_order=True)
    places = {work: place for place, work in enumerate(dict.fromkeys(works))}
    return _Plan(chip, layers, tuple(places), tuple(places[work] for work in works), in_order=False)


def _run(plans: Sequence[_Plan], jobs: int, report: Report | None) -> list[list[LayerTime]]:
    """The times of each plan's tasks, in their order."""
    tasks = [(number, task) for number, plan in enumerate(plans) for task in plan.tasks()]
    count = _Count(sum(len(task.works) for _, task in tasks), report)
    results: list[list[LayerTime]] = [[] for _ in tasks]
    for place, found in _results([task for _, task in tasks], jobs, count):
        results[place] = found
    gathered: list[list[LayerTime]] = [[] for _ in plans]
    for (number, _), found in zip(tasks, results, strict=True):
        gathered[number] += found
    return gathered


class _Count:
    """How many layers are done."""

    def __init__(self, total: int, report: Report | None) -> None:
        self._total, self._report, self._done = total, report, 0

    def add(self, layers: int = 1) -> None:
        """So many more are."""
        self._done += layers
        if self._report is not None:
            self._report(self._done, self._total)


def _results(tasks: Sequence[_Task], jobs: int, count: _Count) -> Iterator[tuple[int, list[LayerTime]]]:
    """Each task's place and result as it comes, the largest first where several processes share them."""
    if min(jobs, len(tasks)) <= 1:
        for place, task in enumerate(tasks):
            found = task.run(count.add)
            if not task.layers:
                count.add()
            yield place, found
        return
    order = sorted(range(len(tasks)), key=lambda place: -tasks[place].size)
    # A forked child would have the locks of the parent's threads, which a progress bar has.
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(tasks[place].run): place for place in order}
        try:
            for future in as_completed(futures):
                found = future.result()
                count.add(len(found))
                yield futures[future], found
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _times(plan: _Plan, distinct: Sequence[LayerTime]) -> TargetTimes:
    target, cores = plan.chip.target, len(plan.chip.cores)
    return TargetTimes(
        target=target.name,
        cores=cores,
        dtype=plan.chip.dtype,
        clock_mhz=target.clock_mhz,
        peak_gflops=_peak(plan.chip) * cores * target.clock_mhz / 1e3,
        in_order=plan.in_order,
        distinct=tuple(distinct),
        which=plan.which,
    )


def _peak(chip: Chip) -> float:
    """Floating-point operations of a core in a cycle."""
    rates = chip.target.cube or chip.target.matmul
    return rates[chip.dtype].flops_per_cycle


def _require_some(network: Network, times: Sequence[TargetTimes]) -> None:
    """Refuse a network of which no layer ran on any target, with the first reason.

    Raises:
        NetworkError: says why.
    """
    if all(each.refused == len(network.layers) for each in times):
        first = times[0].layer(0).refused
        name = network.layers[0].name
        raise NetworkError("no layer runs on any target", where=network.name, got=f"{name}: {first}")


def _described(layers: Sequence[Layer]) -> tuple[LayerWork, ...]:
    shapes = {layer.shape for layer in layers}
    known = {shape: (shape.to_dict(), sizes_text(shape), shape.useful_macs) for shape in shapes}
    return tuple(LayerWork(layer.name, *known[layer.shape]) for layer in layers)
