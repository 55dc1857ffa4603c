"""What the schema accepts, and the arithmetic of a Target."""

import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from targets import UNITS_PER_BYTE, LinkSpec, PortSpec, Target, TargetError, load_target
from tests.unit.targets.tiny import write_tiny


@pytest.fixture
def tiny(tmp_path: Path) -> Target:
    """The tiny target: 1000 MHz, one VPU, two DMA lanes."""
    return load_target(write_tiny(tmp_path))


def test_lanes_are_upper_case_with_an_index_where_there_are_several(tiny: Target) -> None:
    """SCALAR comes first, then the engines in the file's order."""
    assert tiny.lanes() == ["SCALAR", "VPU", "DMA0", "DMA1"]
    assert tiny.lanes("dsp") == tiny.lanes()
    assert tiny.lanes("aiv") == ["SCALAR"]


def test_the_kind_of_a_lane_is_its_engine(tiny: Target) -> None:
    """Every lane has a kind; a lane that no core has is refused with the lanes there are."""
    assert [tiny.kind_of(lane) for lane in tiny.lanes()] == ["SCALAR", "VPU", "DMA", "DMA"]
    with pytest.raises(
        TargetError, match="unknown lane: where engine, got DMA2, limit SCALAR, VPU, DMA0, DMA1"
    ):
        tiny.kind_of("DMA2")


def test_cycles_become_microseconds_by_the_clock(tiny: Target) -> None:
    """At 1000 MHz a thousand cycles take a microsecond."""
    assert tiny.us(1500) == 1.5


def test_gigabytes_per_second_convert_exactly() -> None:
    """21.3 GB/s at 1200 MHz are 17.75 bytes a cycle: 71/4, nothing is rounded."""
    mt7004 = load_target("mt7004", {"link.ddr.efficiency": 1})
    assert mt7004.link_units("ddr") == 17 * 65536 + 49152
    assert LinkSpec(gigabytes_per_second=21.3, burst_bytes=64).exact_bytes_per_cycle(1200) == Fraction(71, 4)


def test_efficiency_and_cores_change_a_links_bandwidth() -> None:
    """The DDR is derated by its efficiency; the GSM grows by 5.42 bytes a cycle for each core."""
    mt7004 = load_target("mt7004")
    assert mt7004.link_units("ddr", cores=4) == math.floor(Fraction("17.75") * Fraction("0.94") * 65536)
    assert mt7004.link_units("gsm", cores=4) == math.floor((Fraction("23.6") + 4 * Fraction("5.42")) * 65536)
    assert mt7004.port_units("ddr_read") == math.floor(Fraction("15.4") * 65536)


@given(st.decimals(min_value="0.01", max_value="5000", places=2), st.integers(min_value=1, max_value=4000))
def test_a_port_is_its_exact_rational_rounded_down(rate: object, clock: int) -> None:
    """No float arithmetic comes between the digits of a bandwidth and its units."""
    exact = PortSpec(gigabytes_per_second=float(str(rate))).exact_bytes_per_cycle(clock)
    assert exact == Fraction(str(rate)) * 1000 / clock
    assert PortSpec(bytes_per_cycle=float(str(rate))).exact_bytes_per_cycle(clock) == Fraction(str(rate))


def test_an_unknown_link_or_port_is_refused(tiny: Target) -> None:
    """The error lists the links or ports that exist."""
    with pytest.raises(TargetError, match="unknown link: where link, got 'gsm', limit one of ddr"):
        tiny.link_units("gsm")
    with pytest.raises(TargetError, match="unknown port: where port, got 'write', limit one of read"):
        tiny.port_units("write")
    assert tiny.port_units("read") == int(15.4 * UNITS_PER_BYTE)


def test_a_target_is_frozen_and_strict(tiny: Target) -> None:
    """Fields cannot be set, and values are not converted from text."""
    with pytest.raises(ValidationError, match="frozen"):
        tiny.groups = 3
    with pytest.raises(ValidationError, match="valid integer"):
        Target.model_validate({**tiny.model_dump(), "groups": "3"})


def test_a_target_survives_json(tiny: Target) -> None:
    """A saved run holds its target; reading it back gives an equal one, marks included."""
    assert Target.model_validate_json(tiny.model_dump_json()) == tiny


def test_broken_references_are_refused_without_a_file_too(tiny: Target) -> None:
    """A target built in Python is checked like one from a file; the error names the key alone."""
    tables = tiny.model_dump()
    tables["path"]["ddr->am"]["port"] = "write"
    with pytest.raises(TargetError) as caught:
        Target.model_validate(tables)
    assert str(caught.value) == "unknown port: where path.ddr->am.port, got 'write', limit one of read"
