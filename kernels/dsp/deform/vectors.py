"""The vector unit's work on sampling points: bilinear sums along channels, in fp32.

Operations are counted a register of channels of a point. Its corners' shares and its mask are in scalar registers, as
the left operand of a product is. Loads and stores run beside multiply-adds: the longer of the two counts.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import ceil, log2

import numpy as np

from kernels.deform_points import Floats, Whole, bilinear, shares_of, spread, summed, terms_of
from kernels.dsp.deform.tiles import Places, Tile
from simulator.instructions import Coords, Cost, Instruction
from simulator.memory.memories import View
from simulator.values.numerics import Array
from targets.schema import Target

VALUE, MASKED, SLOPES, SUM = 4, 1, 8, 1
"""Multiply-adds of a register: the value between four corners, the mask, two slopes, and each sum over channels."""

POINT_OPERATIONS = 16
"""Of a point: two coordinates, their floors and rests, four shares, and the comparisons of the corners."""

WIDE_BYTES = 4
"""It is computed in fp32."""


@dataclass(frozen=True)
class Work:
    """What a vector unit does: register moves, multiply-adds of registers, sums across a register, and loops."""

    moves: int
    operations: int
    across: int
    runs: int


def work_cycles(target: Target, work: Work) -> int:
    """The longer of moves and operations, a fixed time for each loop and for the call.

    Multiply-adds are as many a cycle as in products: half the peak's operations over the lanes of a register.
    """
    spec = target.vector_unit
    lanes = spec.register_bytes // WIDE_BYTES
    rate = target.matmul["fp32"].flops_per_cycle / 2 / lanes
    operations = work.operations + work.across * ceil(log2(lanes))
    longer = max(ceil(work.moves / spec.moves_per_cycle), ceil(operations / rate))
    return longer + work.runs * spec.run_cycles + spec.call_cycles


def registers(target: Target, elements: int) -> int:
    """Registers that hold so many packed fp32 elements."""
    return ceil(elements * WIDE_BYTES / target.vector_unit.register_bytes)


def _floats(values: Array) -> Floats:
    """Numbers that are fp32 as they lie: no copy."""
    return np.asarray(values, np.float32)


class _PointOp(Instruction):
    """An operation on the points of a tile."""

    __slots__ = ("tile", "views")
    engine = "vpu"

    def __init__(
        self, tile: Tile, reads: dict[str, View], writes: dict[str, View], coords: Coords = ()
    ) -> None:
        super().__init__(tuple(reads.values()), tuple(writes.values()), coords)
        self.tile = tile
        self.views = {**reads, **writes}

    def wide(self, name: str) -> Floats:
        """Numbers of an operand in fp32."""
        return np.asarray(self.views[name].array().astype(np.float32))

    def factors(self) -> Floats | None:
        """Masks of the points inside, None where there are none."""
        if "mask" not in self.views:
            return None
        return np.asarray(self.wide("mask").reshape(-1)[self.tile.cell.inside])


class SamplePoints(_PointOp):
    """Features of the points of a tile, and what a piece of their channels adds to doffset and dmask.

    Reads offset, [mask], pixels [corners there, or those of a window, channels] where there are any, and upstream [tap
    rows, columns, channels] where doffset or dmask is wanted; writes features, like upstream, or doffset [columns,
    2 x taps] and dmask [columns, taps], which it adds to and so reads too.
    """

    __slots__ = ("_index", "channels")
    name = "sample_points"

    def __init__(
        self,
        tile: Tile,
        channels: int,
        reads: dict[str, View],
        writes: dict[str, View],
        index: Whole | None = None,
        *,
        coords: Coords = (),
    ) -> None:
        """Work on so many channels; `index` says which of the pixels each corner is, where they are a window."""
        sums = {name: view for name, view in writes.items() if name != "features"}
        super().__init__(tile, {**reads, **sums}, writes, coords)
        self.channels = channels
        self._index = index

    def signature(self) -> Hashable:
        """Points, those inside, channels, what is wanted, and whether pixels are packed."""
        cell, packed = self.tile.cell, self._index is None
        return (self.name, len(cell.inside), len(cell.y), self.channels, packed, *sorted(self.views))

    def cost(self, target: Target) -> Cost:
        """Four corners and the upstream gradient are loaded, features stored, beside the multiply-adds.

        Packed corners are one loop; in a window each point is a loop of its own.
        """
        points, inside, wide = len(self.tile.cell.inside), len(self.tile.cell.y), self.views.keys()
        each = registers(target, self.channels)
        sums = [name for name in ("doffset", "dmask") if name in wide]
        moves = inside * each * (4 + ("upstream" in wide)) + points * each * ("features" in wide)
        once = ("features" in wide or "dmask" in wide) * VALUE + ("mask" in wide) * MASKED
        once += ("doffset" in wide) * (SLOPES + 2 * SUM) + ("dmask" in wide) * SUM
        across = inside * (2 * ("doffset" in sums) + ("dmask" in sums))
        operations = inside * each * once + POINT_OPERATIONS * registers(target, points)
        runs = 1 if self._index is None else inside
        cycles = work_cycles(target, Work(moves, operations, across, runs))
        return Cost(target.issue.vector_cycles, cycles)

    def execute(self) -> None:
        """Features are rounded once; sums stay in fp32."""
        cell, views, factors = self.tile.cell, self.views, self.factors()
        pixels = self.wide("pixels") if "pixels" in views else np.zeros((0, self.channels), np.float32)
        corners = spread(cell, pixels if self._index is None else pixels[self._index])
        with np.errstate(all="ignore"):
            if "features" in views:
                self._put_features(bilinear(cell, corners), factors)
            if "upstream" in views and self.channels:
                upstream = _floats(self.tile.points_of(self.wide("upstream"))[cell.inside])
                self._add_sums(corners, upstream, factors)

    def _put_features(self, values: Floats, factors: Floats | None) -> None:
        """Absent points are zeros."""
        view = self.views["features"]
        found = np.zeros((len(self.tile.cell.inside), self.channels), np.float32)
        found[self.tile.cell.inside] = values if factors is None else values * factors[:, None]
        view.put(np.ascontiguousarray(self.tile.rows_of(found)).astype(view.buffer.dtype.storage))

    def _add_sums(self, corners: Floats, upstream: Floats, factors: Floats | None) -> None:
        cell, terms = self.tile.cell, terms_of(self.tile.cell, corners, upstream, factors)
        if "doffset" in self.views:
            pairs = _floats(self.views["doffset"].array()).reshape(-1, 2)
            pairs[cell.inside, 0] += summed(terms.y)
            pairs[cell.inside, 1] += summed(terms.x)
        if "dmask" in self.views:
            masks = _floats(self.views["dmask"].array()).reshape(-1)
            masks[cell.inside] += summed(terms.mask)


class AddPoints(_PointOp):
    """What the points of a tile add to a band of dx [rows, W, channels], point by point.

    Reads offset, [mask], upstream [tap rows of the tile from `first`, columns, channels] and the band, which it writes.
    """

    __slots__ = ("_places", "channels", "first")
    name = "add_points"

    def __init__(
        self,
        tile: Tile,
        first: int,
        places: Places,
        reads: dict[str, View],
        band: View,
        *,
        coords: Coords = (),
    ) -> None:
        """Add to `places` of the band."""
        super().__init__(tile, {**reads, "band": band}, {"band": band}, coords)
        self.first = first
        self._places = places
        self.channels = band.shape[-1]

    def signature(self) -> Hashable:
        """Points, points and corners in the band, and channels."""
        places = self._places
        count = len(self.tile.cell.inside)
        return (self.name, count, places.points, len(places.pixels), self.channels, "mask" in self.views)

    def cost(self, target: Target) -> Cost:
        """Each corner in the band is loaded and stored; a point's loop begins when the one before has stored."""
        each, places = registers(target, self.channels), self._places
        moves = each * (places.points + 2 * len(places.pixels))
        operations = each * (len(places.pixels) + places.points * ("mask" in self.views) * MASKED)
        operations += POINT_OPERATIONS * registers(target, len(self.tile.cell.inside))
        cycles = work_cycles(target, Work(moves, operations, 0, places.points))
        return Cost(target.issue.vector_cycles, cycles)

    def execute(self) -> None:
        """Add corner by corner, in the order of the points."""
        cell, places, factors = self.tile.cell, self._places, self.factors()
        rows = self.wide("upstream")
        whole = np.zeros((self.tile.kernel[0], *rows.shape[1:]), np.float32)
        whole[self.first : self.first + len(rows)] = rows
        upstream = _floats(self.tile.points_of(whole)[cell.inside])
        band = self.views["band"].array().reshape(-1, self.channels)
        with np.errstate(all="ignore"):
            through = upstream if factors is None else upstream * factors[:, None]
            shares = shares_of(cell)[places.point, places.corner]
            np.add.at(band, places.pixels, through[places.point] * shares[:, None])


class Extents(Instruction):
    """The lowest and highest row of pixels that the points of an output row touch: [deformable groups, 2] in fp32."""

    __slots__ = ("_begins", "_found", "_points")
    engine = "vpu"
    name = "extents"

    def __init__(
        self, out: View, offset: View, found: Floats, points: int, *, begins: bool, coords: Coords = ()
    ) -> None:
        """`found` [groups, 2] of so many points; they are the first of their row, or more of it."""
        super().__init__((offset,) if begins else (offset, out), (out,), coords)
        self._found = found
        self._points = points
        self._begins = begins

    def signature(self) -> Hashable:
        """Points."""
        return (self.name, self._points)

    def cost(self, target: Target) -> Cost:
        """Offsets are loaded; a coordinate, its floor, two comparisons, and the least and greatest, by registers."""
        each = registers(target, self._points)
        return Cost(target.issue.vector_cycles, work_cycles(target, Work(2 * each, 6 * each, 2, 1)))

    def execute(self) -> None:
        """Least and greatest with what was there."""
        out = self.writes[0].array()
        if self._begins:
            out[...] = self._found
        np.minimum(out[:, 0], self._found[:, 0], out=out[:, 0])
        np.maximum(out[:, 1], self._found[:, 1], out=out[:, 1])
