"""What-if values laid over a target."""

from pathlib import Path

import numpy as np
import pytest

from targets import Mark, TargetError, load_target
from tests.unit.targets.tiny import write_tiny


@pytest.mark.parametrize(
    "value", ["1572864", "0x180000", "1_572_864", "1572864.0", 1572864, np.int64(1572864), 1572864.0]
)
def test_text_and_numbers_override_alike(value: object) -> None:
    """Whatever way a whole number comes, the field is the integer, marked as the user's."""
    target = load_target("mt7004", {"memory.am.size_bytes": value})
    assert target.memory["am"].size_bytes == 1572864
    assert type(target.memory["am"].size_bytes) is int
    assert target.provenance["memory.am.size_bytes"] == Mark(mark="override", source="set by the user")


def test_other_types_override_too() -> None:
    """Text of truth values, lists and strings is read as what the field holds."""
    target = load_target(
        "mt7004",
        {
            "path.ddr->am.overlap": "false",
            "matmul.fp32.granule_cycles": "[2, 3.5]",
            "engine.dma.issue": "blocking",
            "title": "7",
        },
    )
    assert target.path["ddr->am"].overlap is False
    assert target.matmul["fp32"].granule_cycles == (2.0, 3.5)
    assert target.engine["dma"].issue == "blocking"
    assert target.title == "7"


def test_the_loaded_target_is_not_touched() -> None:
    """An override is of one load; the next without it has the file's value and mark."""
    before = load_target("mt7004").memory["am"].size_bytes
    load_target("mt7004", {"memory.am.size_bytes": 64})
    after = load_target("mt7004")
    assert after.memory["am"].size_bytes == before
    assert after.provenance["memory.am.size_bytes"].mark == "assumed"


def test_a_default_of_the_schema_can_be_overridden(tmp_path: Path) -> None:
    """A key that the file leaves out is a key all the same."""
    target = load_target(write_tiny(tmp_path), {"link.ddr.row_overhead_bytes": "16"})
    assert target.link["ddr"].row_overhead_bytes == 16
    assert target.provenance["link.ddr.row_overhead_bytes"].mark == "override"


def test_a_bandwidth_override_replaces_the_other_unit() -> None:
    """A link given in gigabytes a second can be set in bytes a cycle."""
    target = load_target("mt7004", {"link.ddr.bytes_per_cycle": "10"})
    assert (target.link["ddr"].bytes_per_cycle, target.link["ddr"].gigabytes_per_second) == (10, None)
    assert "link.ddr.gigabytes_per_second" not in target.provenance


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "memory.am.size_byte",
            1,
            "unknown key: where override: memory.am.size_byte; did you mean memory.am.size_bytes?",
        ),
        ("zzz", 1, "unknown key: where override: zzz"),
        ("memory.am", 1, "unknown key: where override: memory.am"),
        (
            "memory.am.size_bytes",
            "big",
            "wrong value: where override: memory.am.size_bytes, got 'big', limit Input should be a valid",
        ),
        (
            "memory.am.size_bytes",
            "1.5",
            "wrong value: where override: memory.am.size_bytes, got 1.5, limit Input should be a valid",
        ),
        (
            "engine.dma.count",
            "true",
            "wrong value: where override: engine.dma.count, got True, limit Input should be a valid integer",
        ),
        (
            "path.ddr->am.link",
            "bus",
            "unknown link: where override: path.ddr->am.link, got 'bus', limit one of ddr, gsm",
        ),
        ("groups", "4\nname = 'x'", "wrong value: where override: groups, got \"4\\nname = 'x'\""),
    ],
)
def test_a_wrong_override_is_refused(key: str, value: object, message: str) -> None:
    """The error names the override's key, and the nearest known one."""
    with pytest.raises(TargetError) as caught:
        load_target("mt7004", {key: value})
    assert str(caught.value).startswith(message)


def test_two_units_of_one_bandwidth_are_refused() -> None:
    """Nobody can tell which of two overrides of one rate is meant."""
    both = {"link.ddr.bytes_per_cycle": 1, "link.ddr.gigabytes_per_second": 1}
    with pytest.raises(TargetError, match=r"where override: link\.ddr, limit exactly one .* not both"):
        load_target("mt7004", both)


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        ({"link.ddr.gigabytes_per_second": 1e-30}, "link.ddr"),
        ({"clock_mhz": 1e12}, "link.ddr"),
        ({"port.ddr_read.bytes_per_cycle": 1e-9}, "port.ddr_read"),
        ({"link.ddr.write_cost": 1e-9}, "link.ddr.write_cost"),
    ],
)
def test_rates_that_round_to_nothing_are_refused(overrides: dict[str, object], key: str) -> None:
    """Bandwidths are whole units of 2**-16 byte a cycle: of none, nothing would ever arrive."""
    with pytest.raises(TargetError, match=key):
        load_target("mt7004", overrides)


def test_a_clock_that_makes_the_memory_slow_is_not() -> None:
    """The slowest rate that is taken is above the bound."""
    target = load_target("mt7004", {"clock_mhz": 1e7})
    assert target.link_units("ddr") >= 1 << 6
