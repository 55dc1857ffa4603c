"""Targets of several kinds of cores: their units, lanes and names, and what is refused."""

from pathlib import Path

import pytest

from targets import Target, TargetError, Unit, load_target
from tests.unit.targets.davinci import CACHE, NUMBER, write_split
from tests.unit.targets.tiny import write_tiny

EXTRA = {"[core.aiv]\n": f"[core.aiv]\nextra = {{ value = 3, {NUMBER} }}\n"}


@pytest.fixture
def split(tmp_path: Path) -> Target:
    """Two groups of one cube core and two vector cores."""
    return load_target(write_split(tmp_path))


def test_a_target_without_the_tables_of_a_dsp_loads(split: Target) -> None:
    """No micro-kernels and no vector table; asking for the latter says so."""
    assert split.matmul == {}
    assert split.main_memory == "gm"
    with pytest.raises(TargetError, match="missing key: where vector"):
        _ = split.vector_unit


def test_units_count_group_by_group_and_kind_by_kind(split: Target) -> None:
    """Group 1 has units 3 to 5: its cube core first."""
    assert split.units([1]) == [Unit(3, 1, "aic", 0), Unit(4, 1, "aiv", 0), Unit(5, 1, "aiv", 1)]
    assert [unit.number for unit in split.units(range(2), ["aiv"])] == [1, 2, 4, 5]
    assert split.unit(4) == Unit(4, 1, "aiv", 0)
    with pytest.raises(TargetError, match="unknown core: got 6"):
        split.unit(6)


def test_cores_in_no_group_follow_the_groups(tmp_path: Path) -> None:
    """Each group that is asked for brings one of them."""
    target = load_target(write_split(tmp_path, EXTRA))
    assert target.units([0], ["aiv"]) == [
        Unit(1, 0, "aiv", 0),
        Unit(2, 0, "aiv", 1),
        Unit(6, -1, "aiv", 0),
    ]
    assert target.units([0, 1])[-1] == Unit(7, -1, "aiv", 1)
    assert target.core_name(7) == "veccore1"


def test_cores_go_by_the_names_of_the_tools(split: Target, tmp_path: Path) -> None:
    """A chip of one kind has plain cores."""
    assert [split.core_name(n) for n in (0, 1, 5)] == [
        "core0.cubecore0",
        "core0.veccore0",
        "core1.veccore1",
    ]
    assert load_target(write_tiny(tmp_path)).core_name(1) == "core1"


def test_an_engine_may_belong_to_several_kinds(split: Target) -> None:
    """Both kinds have an MTE2."""
    assert split.lanes("aic") == ["SCALAR", "CUBE", "MTE1", "MTE2", "FIXPIPE"]
    assert split.lanes("aiv") == ["SCALAR", "MTE2", "MTE3", "VECTOR"]
    assert split.lanes() == ["SCALAR", "CUBE", "MTE1", "MTE2", "MTE3", "VECTOR", "FIXPIPE"]


REFUSED = [
    ({'core = ["aic", "aiv"]': 'core = ["aic", "aix"]'}, "", "unknown core: where split.toml: engine.mte2.core"),
    ({'core"\ncore = "aiv"': 'core"\ncore = "aix"'}, "", "unknown core: where split.toml: memory.ub.core"),
    ({'engine = "mte1"': 'engine = "mte9"'}, "", "unknown engine: where split.toml: path.l1->l0a.engine"),
    ({}, CACHE.replace("cache.gm", "cache.l1"), "unknown memory of the chip: where split.toml: cache.l1"),
    ({}, CACHE.replace('"l2"', '"l3"'), "unknown link: where split.toml: cache.gm.link"),
    ({}, CACHE + f"line_bytes = {{ value = 30, {NUMBER} }}\n", "lines that do not fill a block"),
    ({}, CACHE.replace("400", "99"), "a cache of no block"),
    ({'link = "hbm"\ndirection = "write"': 'link = ""\ndirection = "write"'}, CACHE, "a path to a memory with a cache"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "more", "message"), REFUSED)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, changes: dict[str, str], more: str, message: str
) -> None:
    """Each fault names the key."""
    with pytest.raises(TargetError) as caught:
        load_target(write_split(tmp_path, changes, more))
    assert str(caught.value).startswith(message)


def test_a_kind_that_the_chip_has_none_of_is_refused(tmp_path: Path) -> None:
    """Neither in a group nor beside them."""
    none = {"[core.aic]\nper_group = { value = 1": "[core.aic]\nper_group = { value = 0"}
    with pytest.raises(TargetError, match=r"has none of: where split\.toml: core\.aic\.per_group"):
        load_target(write_split(tmp_path, none))
