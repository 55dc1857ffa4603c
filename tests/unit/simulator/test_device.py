"""A device: arrays at addresses, what lies where, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.device.device import Device, in_use
from simulator.errors import BoundsError, CapacityError, ProgramError


def test_an_array_holds_its_data() -> None:
    """A view of the numbers, to read and to write; NaN where nothing was given."""
    with Device("mt7004") as device:
        array = device.array("ddr", (2, 3), "fp16", address=0x86000000, data=np.arange(6).reshape(2, 3))
        assert array.data.dtype == np.float16
        assert array.data.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert (array.address, array.bytes, array.end) == (0x86000000, 12, 0x8600000C)
        array.data[0, 0] = 9
        array.data = array.data + 1
        assert array.data[0, 0] == 10
        assert np.isnan(device.array("ddr", 4).data).all()
        assert (device.array("ddr", 4, data=0).data == 0).all()


def test_an_address_leads_to_its_array() -> None:
    """Also from inside; not one past the end."""
    with Device("mt7004") as device:
        array = device.array("ddr", (2, 3), "fp32", address=0x86000000)
        assert device.at(0x86000000) is array
        assert device.at(0x86000017) is array
        for address in (0x86000018, 0x85FFFFFF):
            with pytest.raises(BoundsError, match="no array lies at this address"):
                device.at(address)
        with pytest.raises(BoundsError, match="an address outside every memory"):
            device.at(0x10)
        assert device.memory_at(0x86000018) == ("ddr", None)
        assert device.memory_at(0x70000000) == ("gsm", None)


def test_every_core_sees_its_own_memory_at_one_address() -> None:
    """AM of MT7004: the core that asks decides."""
    with Device("mt7004") as device:
        arrays = [device.array("am", 4, address=0x10000000, core=core) for core in range(4)]
        assert [device.at(0x10000000, core) for core in range(4)] == arrays
        assert device.at(0x10000000) is arrays[0]
        assert device.spmd(lambda: device.at(0x10000000), 0b1010) == (arrays[1], arrays[3])


def test_every_core_has_its_own_addresses() -> None:
    """L2 of FT78NE: the address says whose."""
    with Device("ft78ne") as device:
        array = device.array("l2", 4, address=0x10810000 + 5 * 0x01000000)
        assert array.core == 5
        assert device.at(array.address) is array
        assert device.memory_at(array.address) == ("l2", 5)
        with pytest.raises(BoundsError, match="address outside a memory"):
            device.array("l2", 4, address=array.address, core=2)


def test_what_is_refused_when_an_array_is_placed() -> None:
    """And nothing is there afterwards."""
    with Device("mt7004") as device:
        device.array("ddr", 1024, address=0x86000000)
        wrong: list[tuple[str, str, object, object, object]] = [
            ("two buffers overlap", "ddr", 4, 0x86000FFC, None),
            ("address outside a memory", "ddr", 4, 0x70000000, None),
            ("address outside a memory", "am", 200_000, 0x10000000, None),
            ("an address between two elements", "ddr", 4, 0x87000002, None),
            ("data of another shape", "ddr", 4, None, [1, 2, 3]),
            ("a shape that is none", "ddr", (2, 0), None, None),
            ("a shape that is none", "ddr", (True,), None, None),
        ]
        for message, memory, shape, address, data in wrong:
            with pytest.raises((BoundsError, ProgramError), match=message):
                device.array(memory, shape, "fp32", address, data)  # type: ignore[arg-type]  # some are wrong on purpose
        with pytest.raises(CapacityError, match="memory am"):
            device.array("am", 200_000)
        with pytest.raises(ProgramError, match=r"no such memory.*limit sm, am, gsm, ddr"):
            device.array("l2", 4)
        with pytest.raises(ProgramError, match=r"no such core.*limit 0 to 3"):
            device.array("am", 4, core=4)
        with pytest.raises(ProgramError, match="unknown data type"):
            device.array("ddr", 4, "int8")
        assert len(device.arrays) == 1


def test_room_is_used_again() -> None:
    """An array that was freed, and gaps between arrays where nothing fits above them."""
    with Device("mt7004") as device:
        first = device.array("am", 100_000)
        top = device.array("am", 16, address=0x10000000 + 786432 - 64)
        with pytest.raises(CapacityError):
            device.array("am", 100_000)
        between = device.array("am", 50_000)
        assert first.end <= between.address < top.address
        device.free(first)
        assert device.array("am", 100_000).address == first.address
        with pytest.raises(ProgramError, match="an array that is not on the device"):
            device.free(first)


def test_plain_addresses_belong_to_the_innermost_device() -> None:
    """A closed one takes no more arrays."""
    with pytest.raises(ProgramError, match="no device is in use"):
        in_use()
    with Device("mt7004") as outer, Device("ft78ne") as inner:
        assert in_use() is inner
        assert outer is not inner
    array = Device("mt7004").array("ddr", 4, data=1)
    assert array.data.sum() == 4
    with pytest.raises(ProgramError, match="a device that was closed"):
        inner.array("ddr", 4)


def test_structures_lie_at_addresses_too() -> None:
    """One for all cores in shared memory, one a core in its own; nothing else lies there."""
    with Device("mt7004") as device:
        device.struct(0x89000000, 88)["field"] = 1
        assert device.struct(0x89000000, 88) == {"field": 1}
        with pytest.raises(BoundsError, match="two buffers overlap"):
            device.array("ddr", 4, address=0x89000040)
        with pytest.raises(BoundsError, match="two buffers overlap"):
            device.struct(0x89000004, 88)

        def own() -> dict[str, object]:
            device.struct(0x10030000, 88)["core"] = device.core
            return device.struct(0x10030000, 88)

        assert device.spmd(own, 0b1001) == ({"core": 0}, {"core": 3})


def test_clocks_run_beside_each_other() -> None:
    """Cores that meet are at one time; others go on by themselves."""
    with Device("mt7004") as device:
        device.spend((0, 1), 10)
        device.spend((2,), 25)
        assert device.cycles == 25
        device.spend((1, 2), 5)
        assert device.cycles == 30
        device.spend((0,), 5)
        assert device.cycles == 30
