"""The write-out of L0C: cast, layout, and addition in the memory."""

from __future__ import annotations

from collections.abc import Hashable
from math import ceil, prod
from typing import Literal

import numpy as np

from simulator.cube.fractals import table_of
from simulator.cube.move import commands_of
from simulator.errors import ProgramError
from simulator.instructions import Coords, Cost, Instruction, path_bytes
from simulator.memory.memories import View
from targets.schema import FixpipeSpec, Target

Layout = Literal["nd", "nz", "nc1hwc0", "split"]
Part = tuple[slice | int, ...]


class Fixpipe(Instruction):
    """Write sums from L0C to GM, L1 or UB: round once to dst's type, or add to what is there (`atomic`).

    `split` is the layout whose blocks of 16 channels become blocks of 8. `count` instructions do it, each of which pays
    its start and its issue.
    """

    __slots__ = ("_axes", "_form", "_part", "atomic", "count", "layout", "moved", "name")
    engine = "fixpipe"

    def __init__(
        self,
        dst: View,
        src: View,
        *,
        layout: Layout = "nd",
        atomic: bool = False,
        count: int = 1,
        form: tuple[int, ...] | None = None,
        part: Part | None = None,
        axes: tuple[int, ...] | None = None,
        coords: Coords = (),
    ) -> None:
        """Write src, seen in the shape `form`, of it the `part`, its axes in the order `axes`, in dst's shape.

        Raises:
            ProgramError: the sizes differ.
        """
        super().__init__((src, dst) if atomic else (src,), (dst,), coords)
        self.layout = layout
        self.atomic = atomic
        self.count = count
        self._form = form or src.shape
        self._part = part
        self._axes = axes
        self.moved = prod(dst.shape) * dst.buffer.dtype.size_bytes
        self.name = "fixpipe_add" if atomic else "fixpipe"
        if part is None and prod(dst.shape) != prod(src.shape):
            raise ProgramError(
                "a write-out of sizes that do not fit",
                where=f"{src.buffer.name} -> {dst.buffer.name}",
                got=f"{src.shape} -> {dst.shape}",
            )

    def signature(self) -> Hashable:
        """Memories, rows of dst, type, layout, addition and count."""
        dst = self.writes[0]
        memories = (self.reads[0].buffer.memory, dst.buffer.memory, dst.buffer.dtype.name)
        return ("fixpipe", *memories, *dst.pieces[1:], self.layout, self.atomic, self.count)

    def cost(self, target: Target) -> Cost:
        """Issue, bytes on the path's link, and the time that the unit needs for the layout.

        Raises:
            ProgramError: the target has no such path or layout.
        """
        dst = self.writes[0]
        key = f"{self.reads[0].buffer.memory}->{dst.buffer.memory}"
        path = table_of(target.path, "path", key, target.name)
        spec = table_of(target.fixpipe, "fixpipe layout", self._table(target, dst), target.name)
        commands = commands_of(path, self.moved, self.count)
        held = commands * spec.start_cycles + self._stream(spec)
        return Cost(
            self.count * (target.issue.fixpipe_cycles or 0),
            commands * path.start_cycles,
            key,
            path_bytes(target, path, dst.pieces),
            max(commands * path.floor_cycles, ceil(held)),
            path.overlap,
            path.idle_cycles or 0,
        )

    def _table(self, target: Target, dst: View) -> str:
        if dst.buffer.memory != target.main_memory:
            return "chip"
        return self.layout

    def _stream(self, spec: FixpipeSpec) -> float:
        """Cycles of what is written, at the slowest of the rates that hold."""
        rate = spec.atomic_bytes_per_cycle if self.atomic else None
        rate = rate or spec.bytes_per_cycle
        elements = prod(self.writes[0].shape)
        by_bytes = self.moved / rate if rate else 0.0
        by_elements = elements / spec.elements_per_cycle if spec.elements_per_cycle else 0.0
        return max(by_bytes, by_elements)

    def execute(self) -> None:
        """Round, order and write or add."""
        values = self.reads[0].array().reshape(self._form)
        if self._part is not None:
            values = values[self._part]
        if self._axes is not None:
            values = values.transpose(self._axes)
        dst = self.writes[0]
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = values.reshape(dst.shape).astype(dst.buffer.dtype.storage)
            dst.put(dst.array() + rounded if self.atomic else rounded)
