"""The arithmetic of one tile of sampling points: what they add to dx, and the gradients of their offsets and masks."""

from __future__ import annotations

from collections.abc import Hashable
from math import ceil

import numpy as np

from kernels.deform_points import Cell, Floats, shares_of, spread, summed, terms_of
from simulator.cube.vector import REPEAT_BYTES, vector_cycles
from simulator.instructions import Coords, Cost, Instruction
from simulator.memory.memories import View
from targets.schema import Target

CHANNEL_OPERATIONS = 20
"""Multiply-adds of a channel of a point: its mask, four shares of dx, the value and two slopes between four corners
(four each), and three sums."""

POINT_OPERATIONS = 16
"""Of a point: two coordinates, their floors and rests, four shares, and the comparisons of the corners."""

WIDE_BYTES = 4
"""It is computed in fp32."""


class BilinearBackward(Instruction):
    """Gradients of the points of a tile, a thread a point, in fp32.

    A thread goes through its channels one by one, so that the sums over channels are in their order.
    """

    __slots__ = ("_cell", "_channels", "_masked", "name")
    engine = "vector"

    def __init__(
        self,
        cell: Cell,
        channels: int,
        offsets: View,
        scalars: View,
        values: tuple[View, View] | None,
        adds: View | None,
        *,
        coords: Coords = (),
    ) -> None:
        """Compute a tile.

        Args:
            cell: where its points read.
            channels: of each point.
            offsets: [positions, planes, points]: planes of x, of y and, with three, of the mask.
            scalars: the gradients, in the same places; 0 for points that are not inside.
            values: gradients of the features [inside, channels], and pixels [corners there, channels]; None
                where no point is inside.
            adds: what is added to dx, [corners there, channels]; None where no corner is there.
            coords: of the tile.
        """
        reads = (offsets, *(values or ()))
        super().__init__(reads, (scalars,) if adds is None else (scalars, adds), coords)
        self._cell = cell
        self._channels = channels
        self._masked = offsets.shape[1] == 3
        self.name = "bilinear"

    def signature(self) -> Hashable:
        """Points, those inside, and channels."""
        return (self.name, len(self._cell.inside), len(self._cell.y), self._channels)

    def cost(self, target: Target) -> Cost:
        """Multiply-adds over whole registers: of the points, and of the channels of those inside."""
        points, inside = len(self._cell.inside), len(self._cell.y)
        work = CHANNEL_OPERATIONS * ceil(inside * self._channels * WIDE_BYTES / REPEAT_BYTES)
        work += POINT_OPERATIONS * ceil(points * WIDE_BYTES / REPEAT_BYTES)
        return Cost(target.issue.vector_cycles, vector_cycles(target, "multiply_add", work, wide=True))

    def execute(self) -> None:
        """Compute; the three scalars of a point are rounded once."""
        scalars = self.writes[0]
        positions, planes, points = scalars.shape
        found = np.zeros((planes, positions * points), np.float32)
        if len(self.reads) > 1:
            with np.errstate(all="ignore"):
                self._inside(found)
        turned = np.moveaxis(found.reshape(planes, positions, points), 0, 1)
        with np.errstate(over="ignore"):
            scalars.put(np.ascontiguousarray(turned).astype(scalars.buffer.dtype.storage))

    def _inside(self, found: Floats) -> None:
        """Gradients of the points inside, into their columns of `found`, and what they add to dx."""
        cell = self._cell
        upstream, pixels = (view.array().astype(np.float32) for view in self.reads[1:])
        factors = self._factors() if self._masked else None
        terms = terms_of(cell, spread(cell, pixels), upstream, factors)
        found[0, cell.inside] = summed(terms.x)
        found[1, cell.inside] = summed(terms.y)
        if factors is not None:
            found[2, cell.inside] = summed(terms.mask)
        if len(self.writes) > 1:
            through = upstream if factors is None else upstream * factors[:, None]
            self.writes[1].put((through[:, None, :] * shares_of(cell)[:, :, None])[cell.there])

    def _factors(self) -> Floats:
        """The masks of the points inside."""
        given = self.reads[0].array()[:, 2].reshape(-1)
        return np.asarray(given[self._cell.inside].astype(np.float32))
