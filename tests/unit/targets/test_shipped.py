"""The files that come with tilesim."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

import pytest

from targets import Target, available_targets, load_target

FP64 = {"fp64": 96.0, "fp64_nt": 96.0, "fp64_nt_merged": 96.0}
MARKS = {"documented", "derived", "assumed"}


def numbers_of(tables: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """Dotted keys of all numbers, and of tuples of numbers, in a dumped target."""
    for name, value in tables.items():
        if isinstance(value, dict):
            yield from numbers_of(value, f"{prefix}{name}.")
        elif _is_number(value[0] if isinstance(value, tuple) else value):
            yield prefix + name


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@pytest.fixture(params=available_targets())
def shipped(request: pytest.FixtureRequest) -> Target:
    """Each shipped target in turn."""
    return load_target(str(request.param))


def test_a_file_is_named_after_its_target() -> None:
    """What a file calls itself is what it is loaded by."""
    assert [load_target(name).name for name in available_targets()] == available_targets()
    assert "mt7004" in available_targets()


def test_every_number_has_mark_and_source(shipped: Target) -> None:
    """The marks are of all numbers and of nothing else; no file claims to be an override."""
    assert set(shipped.provenance) == set(numbers_of(shipped.model_dump(exclude={"provenance"})))
    assert {mark.mark for mark in shipped.provenance.values()} <= MARKS
    assert all(len(mark.source.split()) >= 2 for mark in shipped.provenance.values())


def test_a_path_is_a_copy_between_two_memories_of_its_link(shipped: Target) -> None:
    """No path starts where it ends."""
    assert all(
        source != destination for source, _, destination in (key.partition("->") for key in shipped.path)
    )


@pytest.mark.parametrize("name", ["mt7004", "ft_m7032", "ft78ne"])
def test_a_file_gives_every_number_itself(name: str) -> None:
    """The files hide nothing in a default of the schema."""
    marks = load_target(name).provenance
    assert [key for key, mark in marks.items() if "default of the schema" in mark.source] == []


def test_mt7004_has_the_memories_of_its_facts() -> None:
    """Sizes and addresses, none of which overlap."""
    memories = load_target("mt7004").memory
    assert [
        (name, memory.base_address, memory.size_bytes, memory.scope) for name, memory in memories.items()
    ] == [
        ("sm", 0x18000000, 64 * 1024, "core"),
        ("am", 0x10000000, 768 * 1024, "core"),
        ("gsm", 0x70000000, 6 * 1024**2, "chip"),
        ("ddr", 0x80000000, 4 * 1024**3, "chip"),
    ]
    ranges = sorted(
        (memory.base_address, memory.base_address + memory.size_bytes) for memory in memories.values()
    )
    assert all(end <= start for (_, end), (start, _) in pairwise(ranges))
    assert all(memory.base_address % memory.align_bytes == 0 for memory in memories.values())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mt7004", {"fp32": 192, "fp16": 192, "fp16_fp16": 384}),
        ("ft_m7032", {"fp32": 192, "fp16": 192, "fp16_fp16": 384, **FP64}),
    ],
)
def test_peaks_agree_with_the_widest_kernels(name: str, expected: dict[str, float]) -> None:
    """flops_per_cycle is what the widest kernel does: 2 x rows x columns over cycles."""
    matmul = load_target(name).matmul
    peaks = {
        dtype: 2
        * spec.kernel_rows
        * spec.granule_columns
        * len(spec.granule_cycles)
        / spec.granule_cycles[-1]
        for dtype, spec in matmul.items()
    }
    assert peaks == {dtype: spec.flops_per_cycle for dtype, spec in matmul.items()}
    assert peaks == expected


def test_ft_m7032_is_the_published_cluster() -> None:
    """Cores, clock, memories and peaks of the GEMM paper; about 40 GB/s of DDR for all cores."""
    target = load_target("ft_m7032")
    assert (target.groups, target.clock_mhz) == (8, 1800)
    assert {n: m.size_bytes for n, m in target.memory.items() if n != "ddr"} == {
        "sm": 64 * 1024,
        "am": 768 * 1024,
        "gsm": 6 * 1024**2,
    }
    assert target.matmul["fp64"].flops_per_cycle * target.clock_mhz * target.groups == 1_382_400
    assert target.link_units("ddr", 8) / 65536 * 1.8 == pytest.approx(40, rel=0.01)
    paths = load_target("mt7004").path
    assert {key: (path.link, path.port) for key, path in target.path.items()} == {
        key: (path.link, path.port) for key, path in paths.items()
    }


def test_mt7004_moves_data_as_its_dma_does() -> None:
    """DDR and GSM exchange with AM, SM and each other; SM and AM do not by DMA. Only DDR starts slowly."""
    paths = load_target("mt7004").path
    assert {key: (path.link, path.port, path.start_cycles) for key, path in paths.items()} == {
        "ddr->am": ("ddr", "ddr_read", 200),
        "ddr->sm": ("ddr", "ddr_read", 200),
        "ddr->gsm": ("ddr", "ddr_read", 200),
        "am->ddr": ("ddr", "ddr_write", 200),
        "sm->ddr": ("ddr", "ddr_write", 200),
        "gsm->ddr": ("ddr", "ddr_write", 200),
        "gsm->am": ("gsm", "gsm_read", 60),
        "gsm->sm": ("gsm", "gsm_read", 60),
        "am->gsm": ("gsm", "gsm_write", 60),
        "sm->gsm": ("gsm", "gsm_write", 60),
    }
    assert load_target("mt7004").lanes() == ["SCALAR", "VPU", "DMA0", "DMA1", "DMA2", "DMA3"]


def test_ft78ne_has_the_facts_of_its_documents() -> None:
    """Eight cores at 1250 MHz, 160 Gflop/s in fp32; a 960 KB window of L2 a core, 8 MB shared; a DMA that blocks."""
    target = load_target("ft78ne")
    assert (target.groups, target.clock_mhz) == (8, 1250)
    assert 8 * target.clock_mhz * target.matmul["fp32"].flops_per_cycle == 160_000
    assert list(target.matmul) == ["fp32"]
    window = target.memory["l2"]
    assert (window.base_address, window.size_bytes) == (0x10810000, 0x108FFFFF + 1 - 0x10810000)
    assert window.core_stride_bytes == 0x01000000
    assert target.role_bytes("scalar") + target.role_bytes("array") == window.size_bytes
    assert (target.memory["smc"].base_address, target.memory["smc"].size_bytes) == (0x0C000000, 8 << 20)
    assert target.engine["dma"].issue == "blocking"
