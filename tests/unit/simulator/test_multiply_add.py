"""Vectors of channels that are multiplied and added, casts of boxes, and room beside what is placed."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest

from simulator.device.arrays import BYTE
from simulator.errors import BoundsError
from simulator.machine import Machine
from simulator.memory.memories import Buffer, Memory
from simulator.values.numerics import dtype
from simulator.vector import Cast, MultiplyAdd, Terms
from targets.loader import load_target
from targets.schema import MemorySpec

MT7004, FT78NE = load_target("mt7004"), load_target("ft78ne")


def buffer(name: str, shape: tuple[int, ...], kind: str, address: int = 0) -> Buffer:
    """A buffer of a memory that nobody else uses."""
    return Buffer("am", name, address, shape, dtype(kind), shared=False)


def multiply_add(kind: str, channels: int, positions: int) -> MultiplyAdd:
    """One run of so many positions, one tap."""
    out = buffer("out", (positions, channels), "fp32")
    source = buffer("source", (positions, channels), kind, 1 << 16)
    factors = buffer("factors", (2, channels), kind, 1 << 17)
    terms: Terms = (((slice(None),), (slice(None),), 1),)
    whole = ((0, 0), (positions, channels))
    return MultiplyAdd(
        out.box(*whole),
        source.box(*whole),
        factors.box((0, 0), (2, channels)),
        terms,
        runs=1,
        positions=positions,
    )


@pytest.mark.parametrize(
    ("kind", "channels", "moves"),
    [
        ("fp32", 32, 3 * 10 + 1),  # a register holds 32 floats: three moves a position, one for the factors
        ("fp32", 33, 6 * 10 + 2),  # the last channel has a register of its own
        ("fp16", 64, 5 * 10 + 1),  # one register of fp16, two of sums, which are loaded and stored
    ],
)
def test_its_moves_cost_it(kind: str, channels: int, moves: int) -> None:
    """Registers at four moves a cycle, the fixed time of a run and of the call."""
    instruction = multiply_add(kind, channels, 10)
    assert instruction.cost(MT7004).cycles == ceil(moves / 4) + 20 + 7
    assert instruction.macs == 10 * channels


def test_registers_of_two_floats() -> None:
    """FT78NE moves two registers a cycle."""
    assert multiply_add("fp32", 5, 10).cost(FT78NE).cycles == ceil((9 * 10 + 3) / 2) + 15 + 10


def test_products_of_fp16_are_exact() -> None:
    """They are made and summed in fp32."""
    instruction = multiply_add("fp16", 2, 1)
    out, source, factors = (instruction.writes[0].buffer, *(view.buffer for view in instruction.reads[:2]))
    out.data = np.array([[1, -1]], np.float32)
    source.data = np.array([[1 + 2**-10, 300]], np.float16)
    factors.data = np.array([[np.nan, np.nan], [1 + 2**-10, 300]], np.float16)
    instruction.execute()
    assert out.data.tolist() == [[1 + (1 + 2**-10) ** 2, 89_999]]


def test_a_cast_of_a_box_is_charged_row_by_row() -> None:
    """Rows of one float in memory take a register each; packed ones share."""
    whole = buffer("whole", (8, 40), "fp16")
    packed = buffer("packed", (16,), "fp32", 1 << 16)
    rows = Cast(packed.dense((8, 2)), whole.box((0, 3), (8, 2)))
    assert rows.cost(MT7004).cycles == ceil(8 * 2 / 4) + 20 + 7
    dense = Cast(packed.dense((16,)), buffer("other", (16,), "fp16").dense((16,)))
    assert dense.cost(MT7004).cycles == ceil(2 / 4) + 20 + 7


def test_gaps_of_a_memory() -> None:
    """Between what is placed, from aligned addresses; a buffer goes above the others while there is room."""
    memory = Memory("am", MemorySpec(size_bytes=1024, base_address=4096, scope="core"))
    assert memory.gaps() == [(4096, 5120)]
    memory.allocate("low", (100,), BYTE, address=4096 + 128)
    assert memory.gaps() == [(4096, 4224), (4352, 5120)]
    assert memory.allocate("above", (650,), BYTE).address == 4352
    assert memory.allocate("between", (128,), BYTE).address == 4096
    assert memory.gaps() == [(5056, 5120)]
    assert memory.taken == [(4224, 4324), (4352, 5002), (4096, 4224)]
    memory.release(4352)
    assert memory.gaps() == [(4352, 5120)]
    memory.check_place("more", 4352, 768)
    with pytest.raises(BoundsError, match="two buffers overlap"):
        memory.check_place("more", 4300, 8)


def test_room_of_the_core_with_the_least() -> None:
    """A tensor in a core's own memory outlives launches, and leaves that core less room."""
    machine = Machine(MT7004, (0, 2))
    size = MT7004.memory["am"].size_bytes
    assert machine.room_bytes("am") == size
    machine.tensor("held", (1000,), dtype("fp32"), memory="am", core=2, address=0x10000000)
    assert machine.room_bytes("am") == size - 4032
    assert machine.room_bytes("ddr") == MT7004.memory["ddr"].size_bytes
