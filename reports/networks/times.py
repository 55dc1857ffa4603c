"""What the layers of a network cost on targets: the table, the totals, and the record."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from reports.networks.memory import Held, held
from reports.networks.rows import cells, headings, layer_fields, lined_up, total_lines
from simulator.results.files import text_writer, write_files
from simulator.results.run import plain

PARTS = ("forward", "dx", "dw", "db")
"""What a layer's time is made of, in the order in which it is shown."""

RECORD, TABLE, PICTURE = "network.json", "network.csv", "network.png"


@dataclass(frozen=True)
class LayerWork:
    """One convolution of a network.

    Attributes:
        name: as the network calls it.
        geometry: its arguments; plain values.
        sizes: input, weights, and what else there is to say, as a short text.
        macs: multiply-adds of one pass (forward, dx or dw).
    """

    name: str
    geometry: Mapping[str, object]
    sizes: str
    macs: int


@dataclass(frozen=True)
class LayerTime:
    """What one convolution costs on one target.

    Attributes:
        cycles: by part (`PARTS`), those that were asked for.
        macs: useful multiply-adds of forward, dx and dw together.
        tensors: bytes of the tensors on the device by name, in the target's layouts.
        bound: one sentence, where a trace was kept.
        refused: why it has none of these, empty where it ran.
    """

    cycles: Mapping[str, int] = field(default_factory=dict)
    macs: int = 0
    tensors: Mapping[str, int] = field(default_factory=dict)
    bound: str = ""
    refused: str = ""

    @property
    def total(self) -> int:
        """Cycles of all parts."""
        return sum(self.cycles.values())


@dataclass(frozen=True)
class TargetTimes:
    """A network on one target.

    Attributes:
        target: its name.
        cores: how many of its cores.
        dtype: what it computes in.
        clock_mhz: of the cycles.
        peak_gflops: of the data type, of these cores.
        in_order: layers ran one after another on one machine, the cache handed on; else each distinct one by itself.
        distinct: what each distinct layer costs; in order, each layer.
        which: for each layer of the network, its place in `distinct`.
    """

    target: str
    cores: int
    dtype: str
    clock_mhz: float
    peak_gflops: float
    in_order: bool
    distinct: tuple[LayerTime, ...]
    which: tuple[int, ...]

    @cached_property
    def times(self) -> Counter[int]:
        """How many layers each distinct one stands for."""
        return Counter(self.which)

    @cached_property
    def cycles(self) -> dict[str, int]:
        """Cycles of the network by part, of the layers that ran."""
        found: Counter[str] = Counter()
        for place, count in self.times.items():
            for part, cycles in self.distinct[place].cycles.items():
                found[part] += count * cycles
        return {part: found[part] for part in PARTS if part in found}

    @property
    def total(self) -> int:
        """Cycles of the network, of the layers that ran."""
        return sum(self.cycles.values())

    @cached_property
    def macs(self) -> int:
        """Useful multiply-adds of the layers that ran."""
        return sum(count * self.distinct[place].macs for place, count in self.times.items())

    @cached_property
    def refused(self) -> int:
        """How many layers did not run."""
        return sum(count for place, count in self.times.items() if self.distinct[place].refused)

    def us(self, cycles: int) -> float:
        """Cycles as microseconds."""
        return cycles / self.clock_mhz

    def gflops(self, macs: int, cycles: int) -> float:
        """Useful GFLOP/s; 0 where nothing ran."""
        return 2e-3 * macs / self.us(cycles) if cycles else 0.0

    def layer(self, place: int) -> LayerTime:
        """What a layer of the network costs."""
        return self.distinct[self.which[place]]

    def share(self, cycles: int) -> float:
        """Cycles as a share of the network's."""
        return cycles / self.total if self.total else 0.0

    @cached_property
    def memory(self) -> Held:
        """Gradients and workspaces that are held."""
        return held([self.distinct[place].tensors for place in self.which])


@dataclass(frozen=True)
class NetworkTimes:
    """A network on targets: `str` is a table, `save` writes record, table and picture.

    Attributes:
        model: the file's name.
        layers: its convolutions in order.
        targets: one a target.
        step: whether forward was timed too.
        others: operators that were not simulated, with how many there are.
        notes: sentences that a reader should know.
        refused: targets that run no convolution at all, with the reason.
    """

    model: str
    layers: tuple[LayerWork, ...]
    targets: tuple[TargetTimes, ...]
    step: bool = False
    others: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def macs(self) -> int:
        """Multiply-adds of one pass over all layers."""
        return sum(layer.macs for layer in self.layers)

    def table(self, *, memory: bool = False) -> str:
        """A table for each target, with its totals; `memory`: what is held too."""
        return "\n\n".join("\n".join(self._table(times, memory)) for times in self.targets)

    def _table(self, times: TargetTimes, memory: bool) -> Iterator[str]:
        yield f"{self.model} on {times.target}, {times.cores} cores, {times.dtype}"
        parts = tuple(times.cycles)
        first = {place: layer for layer, place in reversed(list(enumerate(times.which)))}
        rows = [
            cells(self.layers[layer], times, place, parts, memory) for place, layer in sorted(first.items())
        ]
        yield from lined_up([headings(parts, memory), *rows])
        yield from total_lines(self, times, memory)

    def __str__(self) -> str:
        return self.table()

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON has."""
        record = {
            "model": self.model,
            "step": self.step,
            "convolutions": len(self.layers),
            "macs": self.macs,
            "other_operators": dict(self.others),
            "notes": list(self.notes),
            "refused_targets": dict(self.refused),
            "layers": [{"layer": each.name, **each.geometry, "macs": each.macs} for each in self.layers],
            "targets": [self._target(times) for times in self.targets],
        }
        return {key: plain(value) for key, value in record.items()}

    def _target(self, times: TargetTimes) -> dict[str, Any]:
        return {
            "target": times.target,
            "cores": times.cores,
            "dtype": times.dtype,
            "in_order": times.in_order,
            "cycles": times.total,
            "time_us": times.us(times.total),
            "cycles_by_part": times.cycles,
            "useful_macs": times.macs,
            "achieved_gflops": times.gflops(times.macs, times.total),
            "peak_gflops": times.peak_gflops,
            "refused_layers": times.refused,
            "distinct_layers": len(times.distinct),
            "memory_bytes": times.memory.to_dict(),
            "layers": [layer_fields(times, place) for place in range(len(self.layers))],
        }

    def save(self, directory: Path | str) -> None:
        """Write network.json, network.csv (a row for each layer and target) and network.png, all or none.

        Raises:
            RunFileError: the operating system refused.
        """
        from reports.canvas import write_png  # noqa: PLC0415 - matplotlib takes most of a second to load
        from reports.networks.picture import draw_network  # noqa: PLC0415

        record = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        write_files(
            Path(directory),
            {
                TABLE: text_writer(self._csv()),
                PICTURE: write_png(draw_network(self)),
                RECORD: text_writer(record),
            },
        )

    def _csv(self) -> str:
        text = io.StringIO(newline="")
        names = [*layer_fields(self.targets[0], 0)]
        writer = csv.DictWriter(text, ["target", "layer", "sizes", *names])
        writer.writeheader()
        for times in self.targets:
            for place, layer in enumerate(self.layers):
                fields = layer_fields(times, place)
                writer.writerow({"target": times.target, "layer": layer.name, "sizes": layer.sizes, **fields})
        return text.getvalue()
