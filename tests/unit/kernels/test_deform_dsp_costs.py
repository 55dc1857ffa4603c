"""What the instructions of deformable convolutions on DSPs cost, by hand, and how their places are found."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.deform_points import Points
from kernels.dsp.deform.extents import extents_of
from kernels.dsp.deform.tiles import Places, Spot, Tile, Window, spots_of, transfers_of
from kernels.dsp.deform.vectors import AddPoints, Extents, SamplePoints, Work, work_cycles
from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape
from simulator.errors import ProgramError
from simulator.gather import GatherRuns
from simulator.memory.memories import Buffer
from simulator.values.numerics import dtype
from targets.loader import load_target

SHAPE = DeformShape(ConvShape(1, 32, (4, 5), 8, (1, 2)), 1, True)
MT7004 = load_target("mt7004")


def points(rows: float = 0.0, columns: float = 0.0) -> Points:
    """All taps moved by so much."""
    offset = np.zeros(SHAPE.offset_shape, np.float32)
    offset[:, ::2], offset[:, 1::2] = rows, columns
    return Points.of(SHAPE, offset)


def buffer(size: int, memory: str = "am") -> Buffer:
    """Elements of fp32 at address 0."""
    return Buffer(memory, "held", 0, (size,), dtype("fp32"), memory == "ddr")


def gathered(starts: list[int], transfers: int) -> GatherRuns:
    """Runs of 8 elements."""
    source = buffer(4096, "ddr").scattered(np.array(starts), 8)
    return GatherRuns(buffer(4096).dense((len(starts), 8)), source, transfers)


def test_gathered_runs() -> None:
    """Bytes 0 to 32, 48 to 80 (two bursts of 64) and 48 to 80 again: five bursts, and the issue of each transfer."""
    cost = gathered([0, 12, 12], 2).cost(MT7004)
    assert (cost.charged_bytes, cost.issue_cycles, cost.cycles) == (5 * 64, 2 * 45, 200)
    held = buffer(64, "l2").dense((1, 8))
    far = GatherRuns(held, buffer(64, "ddr").scattered(np.array([0]), 8), 3).cost(load_target("ft78ne"))
    assert (far.charged_bytes, far.issue_cycles, far.cycles) == (64, 3 * 450, 3 * 200)


def test_gathers_that_cannot_be() -> None:
    """Unlike ranges, and memories without a path."""
    source = buffer(64, "ddr").scattered(np.array([0, 8]), 8)
    with pytest.raises(ProgramError, match="unlike"):
        GatherRuns(buffer(64).dense((1, 8)), source, 1)
    with pytest.raises(ProgramError, match="no such path"):
        GatherRuns(buffer(64, "l2").dense((2, 8)), source, 1).cost(MT7004)


def test_work() -> None:
    """Four moves and three multiply-adds of 32 lanes a cycle; 20 a loop, 7 the call; five steps across a register."""
    assert work_cycles(MT7004, Work(41, 30, 0, 1)) == 11 + 20 + 7
    assert work_cycles(MT7004, Work(4, 31, 0, 2)) == 11 + 40 + 7
    assert work_cycles(MT7004, Work(4, 31, 3, 0)) == 16 + 7  # (31 + 3 x 5) / 3


def tile(moved: Points, columns: int = 2) -> Tile:
    """The first outputs of row 1: two taps each, one register of channels a point."""
    return Tile.of(moved, Spot(0, 1, 0, 0, columns))


def test_sampled_points() -> None:
    """Four points of one register: 17 operations each, 3 sums across, 16 for all four to find their places."""
    reads = {"offset": buffer(8).dense((2, 4)), "mask": buffer(4).dense((2, 2))}
    reads |= {"pixels": buffer(320).dense((10, 32)), "upstream": buffer(128).dense((1, 4, 32))}
    writes = {"doffset": buffer(8).dense((2, 4)), "dmask": buffer(4).dense((2, 2))}
    features = {"features": buffer(128).dense((1, 4, 32))}
    full = SamplePoints(tile(points(0.5, 0.5)), 32, reads, {**writes, **features})
    assert full.cost(MT7004).cycles == -(-(4 * (4 + 1 + 8 + 2 + 1) + 16 + 12 * 5) // 3) + 20 + 7
    alone = SamplePoints(tile(points(0.5, 0.5)), 32, reads, features, np.zeros(16, np.intp))
    assert alone.cost(MT7004).cycles == -(-(4 * (4 + 1) + 16) // 3) + 4 * 20 + 7
    absent = SamplePoints(tile(points(9.0)), 32, {"offset": reads["offset"]}, features)
    assert absent.cost(MT7004).cycles == -(-16 // 3) + 20 + 7


def test_added_points() -> None:
    """Two rows of corners below, one of them in the band: a corner is loaded and stored, its point is a loop."""
    found = tile(points(0.5))
    pixels = found.cell.pixels // 32
    places = Places.of(found.cell, pixels, 10, 5)
    assert sorted(places.pixels.tolist()) == [0, 1, 1, 1, 2, 2, 2, 3]
    band, reads = buffer(160).dense((1, 5, 32)), {"offset": buffer(8).dense((2, 4))}
    reads["upstream"] = buffer(128).dense((1, 4, 32))
    cost = AddPoints(found, 0, places, reads, band).cost(MT7004)
    moves, operations = places.points + 2 * len(places.pixels), len(places.pixels) + 16
    assert cost.cycles == max(-(-moves // 4), -(-operations // 3)) + places.points * 20 + 7
    assert places.points == 4


def test_windows_and_transfers() -> None:
    """Points side by side share pixels; far apart they are brought in one by one, by two transfers or one."""
    near = tile(points(0.5, 0.5), 3)
    window = Window.of(near.cell, SHAPE)
    assert window is not None
    assert window[:4] == (1, 2, 0, 5)
    pixel = near.cell.pixels[3] // 32
    assert divmod(int(window.places[3]), 5) == (pixel // 5 - 1, pixel % 5)
    offset = np.zeros(SHAPE.offset_shape, np.float32)
    offset[0, 0, 1, 0], offset[0, 2, 1, 0] = -1, 2
    spread = Tile.of(Points.of(SHAPE, offset), Spot(0, 1, 0, 0, 1))
    assert Window.of(spread.cell, SHAPE) is None
    assert Window.of(tile(points(9.0)).cell, SHAPE) is None
    assert (transfers_of(near.cell, whole=True), transfers_of(near.cell, whole=False)) == (6, 12)


def test_extents() -> None:
    """Rows of pixels from the lowest corner to the highest, by pieces of columns; H and -2 where nothing is inside."""
    found = extents_of(points(0.5), [(0, 2), (2, 2)])
    assert found.shape == (4, 2, 1, 2)
    assert found[1, 0, 0].tolist() == [1, 2]
    assert extents_of(points(9.0), [(0, 4)])[0, 0, 0].tolist() == [4, -2]
    out, given = buffer(2).dense((1, 2)), buffer(16).dense((4, 4))
    first, more = (Extents(out, given, found[1, 0], 8, begins=begins) for begins in (True, False))
    assert out in more.reads
    assert out not in first.reads
    assert first.cost(MT7004).cycles == -(-(6 + 2 * 5) // 3) + 20 + 7


def test_spots() -> None:
    """Every output once."""
    listed = [(s.n, s.i, s.j + k) for s in spots_of(SHAPE, 3) for k in range(s.columns)]
    assert listed == [(0, i, j) for i in range(4) for j in range(4)]
