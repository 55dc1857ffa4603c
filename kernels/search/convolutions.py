"""The gradients and the output of a convolution, as a search sees them: fields, plans, and what is estimated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from kernels.davinci.image_rules import Setting as CubeSetting
from kernels.davinci.sides import FRACTAL, Sides
from kernels.davinci.tiling import BiasTiling, ImageTiling, WeightTiling
from kernels.dsp.dw.lowering import dw_setting
from kernels.dsp.dw.plan import candidates as dw_candidates
from kernels.dsp.dw.tiling import DbTiling, DwTiling
from kernels.dsp.dx.geometry import Geometry
from kernels.dsp.dx.lowering import dx_setting
from kernels.dsp.dx.plan import candidates as panel_candidates
from kernels.dsp.dx.tiling import DxTiling, checked
from kernels.dsp.forward.geometry import ForwardGeometry
from kernels.dsp.forward.lowering import forward_setting
from kernels.dsp.forward.tiling import ForwardTiling, as_panels, of_panels
from kernels.families import backward_of, forward_of, stored_in
from kernels.gradient_fields import PREFIXES
from kernels.search.subject import Fields, Given, Options, Subject
from kernels.search.values import Extent, options_of
from kernels.shape.shapes import ConvShape
from simulator.machine import Machine
from targets.errors import TilesimError
from targets.schema import Target

Timer = Callable[[Given, tuple[str, ...]], tuple[Fields, int]]
"""Runs a call with some fields and gradients, timed only: all fields, and the cycles."""

Ranked = Iterable[tuple[float, Fields]]
Extents = dict[str, Extent]


@dataclass(frozen=True)
class Convolution:
    """One gradient, or "y", on some cores of a target; `time` runs it alone."""

    grad: str
    shape: ConvShape
    computed: str
    target: Target
    cores: tuple[int, ...]
    time: Timer

    def subject(self) -> Subject:
        """What the search asks."""
        prefix = PREFIXES.get(self.grad, "")

        def time(given: Given) -> tuple[Fields, int]:
            tiling, cycles = self.time({prefix + name: value for name, value in given.items()}, self.grads)
            return {name.removeprefix(prefix): value for name, value in tiling.items()}, cycles

        if self.target.family == "davinci" or self.grad == "db":
            return Subject(self.grad, time, self.options, self.plan, prefix=prefix)
        return Subject(
            self.grad, time, self.options, self.plan, seeds=self.seeds, estimate=self.estimate, prefix=prefix
        )

    @property
    def grads(self) -> tuple[str, ...]:
        """The gradients of the call; none of a forward convolution."""
        return () if self.grad == "y" else (self.grad,)

    @property
    def machine(self) -> Machine:
        """The target, for plans."""
        return Machine(self.target, self.cores, numerics=False)

    @property
    def gathers(self) -> bool:
        """Whether each result reads its taps."""
        return self.shape.transposed == (self.grad == "dx")

    def plan(self, given: Given) -> Fields:
        """All fields, by the kernel's rule and checks.

        Raises:
            TilesimError: they are refused.
        """
        if self.grad == "y":
            return forward_of(self.shape, self.computed, self.machine, given, bias=False).tiling
        prefix = PREFIXES[self.grad]
        named = {prefix + name: value for name, value in given.items()}
        made = backward_of(self.shape, self.computed, self.machine, (self.grad,), named).tiling
        return {name.removeprefix(prefix): value for name, value in made.items()}

    def options(self, tiling: Given) -> Options:
        """Values to try."""
        made: tuple[type[BaseModel], Extents]
        made = self._on_cubes() if self.target.family == "davinci" else self._on_dsp()
        return options_of(*made, tiling, ())

    def seeds(self, given: Given) -> Ranked:
        """The planner's tilings with their estimates on a DSP; its choice for less array memory comes first."""
        halved = replace(self, target=with_half_the_array(self.target))
        with suppress(TilesimError):
            yield 0.0, min(halved.ranked(given), key=lambda each: each[0], default=(0.0, {}))[1]
        yield from self.ranked(given)
        if self.grad == "dx" and not self.gathers and "column" not in given:
            yield from self.ranked({**given, "column": "none"})

    def ranked(self, given: Given) -> Ranked:
        """The planner's tilings with their estimates, on a DSP."""
        operand, machine = stored_in(self.computed), self.machine
        if self.grad == "dw":
            for cycles, tiling in dw_candidates(dw_setting(self.shape, operand, machine, given), given):
                yield cycles, tiling.model_dump()
        elif self.gathers:
            fields = as_panels(given)
            setting: Any = forward_setting(self.shape, operand, machine, fields)
            yield from _panels(panel_candidates(setting, fields), fields, turned=True)
        else:
            setting = dx_setting(self.shape, operand, machine, given)
            yield from _panels(panel_candidates(setting, given), given, turned=False)

    def estimate(self, tiling: Given) -> float:
        """Cycles of a whole tiling by the planner's estimate; 0 where it knows none."""
        try:
            return min((cycles for cycles, _ in self.ranked(tiling)), default=0.0)
        except TilesimError:
            return 0.0

    def _on_dsp(self) -> tuple[type[BaseModel], Extents]:
        """Fields and extents of the DSP kernels."""
        plain = Geometry.of(self.shape)
        outputs = max(1, plain.n * plain.d.out * plain.h.out * plain.w.out)
        if self.grad == "db":
            return DbTiling, {"k": Extent(outputs)}
        spec = self.target.matmul[stored_in(self.computed).name]
        if self.grad == "dw":
            return DwTiling, {
                "groups": Extent(plain.groups),
                "out_channels": Extent(plain.cog, spec.kernel_rows),
                "taps": Extent(plain.taps),
                "channels": Extent(plain.cig, spec.granule_columns),
                "k": Extent(min(outputs, 1024)),
                "rows": Extent(plain.cog, spec.kernel_rows),
            }
        g = ForwardGeometry.turned(plain) if self.gathers else plain
        extents = {
            "images": Extent(g.n),
            "rows": Extent(g.h.size),
            "cols": Extent(g.w.size),
            "groups": Extent(g.groups),
            "channels": Extent(g.cig, spec.granule_columns),
            "block_channels": Extent(g.cig, spec.granule_columns),
            "block_taps": Extent(g.w.kernel),
            "k": Extent(g.cog),
            "positions": Extent(min(4 * g.h.out * g.w.out, 2048), spec.kernel_rows),
            "budget_bytes": Extent(self.target.role_bytes("array") // 2, 8192),
        }
        return (ForwardTiling if self.gathers else DxTiling), extents

    def _on_cubes(self) -> tuple[type[BaseModel], Extents]:
        """Fields and extents of the Da Vinci kernels."""
        item = stored_in(self.computed).size_bytes
        c0, cores = 32 // item, len(self.cores)
        sides = Sides.of(self.shape, c0)
        setting = CubeSetting(sides, self.target, stored_in(self.computed), self.shape.ndim, cores)
        half, (_, rows, columns) = setting.half_l0, sides.small_size
        if self.grad == "db":
            return BiasTiling, {"k": Extent(4096, FRACTAL)}
        if self.grad == "dw":
            return WeightTiling, {
                "m": Extent(min(sides.small.channels, 512), FRACTAL),
                "n": Extent(min(sides.large.blocks * sides.plane_taps * c0, 512), c0),
                "k": Extent(half * FRACTAL // 4, FRACTAL),
                "rows": Extent(rows),
                "columns": Extent(columns),
                **{part: Extent(cores) for part in ("batch", "m_parts", "n_parts")},
            }
        made, read = (sides.small, sides.large) if self.gathers else (sides.large, sides.small)
        return ImageTiling, {
            "m": Extent(min(made.size[1] * (made.size[2] + FRACTAL), 1024), FRACTAL),
            "n": Extent(min(made.channels, 512), FRACTAL),
            "k": Extent(half * c0 // 4, c0),
            "channels": Extent(read.blocks * c0, c0),
            "taps": Extent(sides.plane_taps),
        }


def _panels(candidates: Sequence[Any], given: Given, *, turned: bool) -> Iterator[tuple[float, Fields]]:
    """Candidates of a planner of panels as whole tilings, with the names of y's fields where they are `turned`."""
    for each in candidates:
        tiling = checked({**each.values, **given})
        yield each.cycles, (of_panels(tiling) if turned else tiling).model_dump()


def with_half_the_array(target: Target) -> Target:
    """A DSP with half of its array memory."""
    name = target.role["array"].memory
    spec = target.memory[name]
    less = spec.model_copy(update={"size_bytes": spec.size_bytes // 2})
    return target.model_copy(update={"memory": {**target.memory, name: less}})


def subjects_of(
    shape: ConvShape, computed: str, target: Target, cores: tuple[int, ...], grads: Sequence[str], time: Timer
) -> list[Subject]:
    """One subject a gradient ("y" for the output): launches of one do not wait for those of another."""
    return [Convolution(grad, shape, computed, target, cores, time).subject() for grad in grads]
