"""A network on targets: which work is distinct, who does it, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kernels.conv_backward import AVAILABLE, chosen_grads
from kernels.errors import OperandError
from kernels.operand_arrays import require_convolution_type
from kernels.placement import chosen_cores, chosen_dtype, resolved_target
from reports.networks.times import LayerTime, LayerWork, NetworkTimes, TargetTimes
from targets.errors import TilesimError
from targets.schema import Target
from tilesim.networks.layers import Layer, Network, NetworkError
from tilesim.networks.plans import Plan, plan_of, works_of
from tilesim.networks.reading import read_network
from tilesim.networks.sharing import Told, times_of
from tilesim.networks.sizes import sizes_text
from tilesim.networks.timing import Chip


def network(
    model: str | Path | Network,
    *,
    targets: str | Target | Sequence[str | Target] = "mt7004",
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    dtype: str = "native",
    cores: int | Sequence[int] | None = None,
    grads: Sequence[str] = ("dx", "dw"),
    step: bool = False,
    all_dx: bool = False,
    jobs: int = 1,
    on_layer: Told | None = None,
) -> NetworkTimes:
    """Time the backward of every convolution of a network, each distinct one once, on targets.

    Args:
        model: an ONNX model (.onnx, needs the extra `onnx`), a CSV table of layers, or what `read_network` returned.
        targets: one or several: names, TOML files or Targets.
        batch: images, where the file leaves them open; where it says a number, this one instead.
        dims: other dimensions that an ONNX model leaves open, by name.
        dtype: what the chips compute in; "native": each target's best.
        cores: how many cores (the first ones), or which; default all.
        grads: which gradients.
        step: a training step: forward too. Where a target has a cache, all forward convolutions and then the gradients,
            the last layer's first, run on one machine, and each finds in the cache what was left there.
        all_dx: time dx of a convolution that no convolution lies before, too.
        jobs: processes that share the work.
        on_layer: called as layers are done: how many are, of how many.

    Returns:
        The times. A layer that a target refuses is in them with the reason, and the totals lack it.

    Raises:
        NetworkError: the file is not usable, or every layer is refused on every target.
        TilesimError: an argument is refused.
    """
    if jobs < 1:
        raise OperandError("a number of processes", argument="jobs", got=jobs, limit="1 or more")
    read = _read(model, batch, dims)
    wanted = chosen_grads(grads, {})
    chips, refused = _chips(
        (targets,) if isinstance(targets, str | Target) else targets, dtype, cores, wanted
    )
    works = works_of(read.layers, wanted, step=step, all_dx=all_dx)
    plans = [plan_of(chip, read.layers, works, step=step) for chip in chips.values()]
    found = times_of(plans, jobs, on_layer)
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


def _read(model: str | Path | Network, batch: int | None, dims: Mapping[str, int] | None) -> Network:
    """The network, from its file unless it was read before.

    Raises:
        NetworkError: the file is not usable.
        OperandError: sizes are given of a network that was read before.
    """
    if not isinstance(model, Network):
        return read_network(model, batch, dims)
    if batch is not None or dims:
        raise OperandError(
            "sizes of a network that was read before", argument="batch", remedy="give its file"
        )
    return model


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


def _times(plan: Plan, distinct: Sequence[LayerTime]) -> TargetTimes:
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
