"""What the Da Vinci targets say of their chips."""

import tomllib
from pathlib import Path

import pytest

import targets
from targets import load_target
from targets.leaves import read_leaves

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
FOLDER = Path(targets.__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("ascend*.toml"))
BINS = [name for name in NAMES if "extends" in tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))]

# clock MHz, cube cores, vector cores a group, L1, L0C, UB, L2, memory in GB of 2**30 (310P3: of 1e9)
CHIPS = {
    "ascend910a": (1000, 32, 0, MIB, 256 * KIB, 256 * KIB, 32 * MIB, 32 * GIB),
    "ascend310p3": (1060, 8, 0, MIB, 256 * KIB, 256 * KIB, 16 * MIB, 24_000_000_000),
    "ascend910b1": (1850, 24, 2, 512 * KIB, 128 * KIB, 192 * KIB, 192 * MIB, 64 * GIB),
    "ascend910b2": (1800, 24, 2, 512 * KIB, 128 * KIB, 192 * KIB, 192 * MIB, 64 * GIB),
    "ascend910b3": (1800, 20, 2, 512 * KIB, 128 * KIB, 192 * KIB, 192 * MIB, 64 * GIB),
    "ascend910b4": (1500, 20, 2, 512 * KIB, 128 * KIB, 192 * KIB, 96 * MIB, 32 * GIB),
    "ascend910_9391": (1850, 24, 2, 512 * KIB, 128 * KIB, 192 * KIB, 192 * MIB, 64 * GIB),
    "ascend910_9391_pair": (1850, 48, 2, 512 * KIB, 128 * KIB, 192 * KIB, 384 * MIB, 128 * GIB),
    "ascend910_9372": (1800, 20, 2, 512 * KIB, 128 * KIB, 192 * KIB, 192 * MIB, 64 * GIB),
    "ascend910_9362": (1500, 20, 2, 512 * KIB, 128 * KIB, 192 * KIB, 168 * MIB, 32 * GIB),
    "ascend310b1": (1224, 1, 1, MIB, 128 * KIB, 248 * KIB, 4 * MIB, 32 * GIB),
    "ascend950pr": (1650, 32, 2, 512 * KIB, 256 * KIB, 248 * KIB, 128 * MIB, 128 * GIB),
    "ascend950dt": (1650, 32, 2, 512 * KIB, 256 * KIB, 248 * KIB, 128 * MIB, 144 * GIB),
}
SPLIT = [name for name, facts in CHIPS.items() if facts[2]]
A2_A3 = [name for name in CHIPS if name.startswith(("ascend910b", "ascend910_"))]


def test_the_files_are_those_of_the_chips() -> None:
    """None is missing, none is untested."""
    assert sorted(CHIPS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_sizes_and_counts(name: str) -> None:
    """Against the platform files of CANN and pypto."""
    chip, (clock, cubes, vectors, l1, l0c, ub, l2, memory) = load_target(name), CHIPS[name]
    assert (chip.family, chip.clock_mhz, chip.groups, chip.main_memory) == ("davinci", clock, cubes, "gm")
    sizes = {each: spec.size_bytes for each, spec in chip.memory.items()}
    assert (sizes["l0a"], sizes["l0b"]) == (64 * KIB, 64 * KIB)
    assert (sizes["l1"], sizes["l0c"], sizes["ub"], sizes["gm"]) == (l1, l0c, ub, memory)
    assert chip.cache["gm"].size_bytes == l2
    kinds = {kind: spec.per_group for kind, spec in chip.core.items()}
    assert kinds["aic" if name in SPLIT else "aicore"] == 1
    assert kinds.get("aiv", 0) == vectors


def test_the_vector_cores_of_310p3_have_a_clock_of_their_own() -> None:
    """Seven beside the eight cores."""
    beside = load_target("ascend310p3").core["aiv"]
    assert (beside.extra, beside.clock_mhz) == (7, 1000)


@pytest.mark.parametrize("name", NAMES)
def test_multiply_adds_a_cycle(name: str) -> None:
    """By type; the first generations and 310B have fp16 only."""
    macs = {rate: spec.macs_per_cycle for rate, spec in load_target(name).cube.items()}
    if name in A2_A3:
        assert macs == {"fp16": 4096, "bf16": 4096, "hf32": 2048, "fp32": 1024}
    elif name.startswith("ascend950"):
        assert macs == {"fp16": 4096, "bf16": 4096, "hf32": 2048, "fp32": 256}
    else:
        assert macs == {"fp16": 4096}


@pytest.mark.parametrize(("name", "l0a", "l0b"), [("ascend910b1", 256, 128), ("ascend950pr", 256, 256)])
def test_loads_to_l0_are_as_measured(name: str, l0a: float, l0b: float) -> None:
    """On A2 half of what its platform file says."""
    loads = load_target(name).load2d
    assert (loads["l0a"].bytes_per_cycle, loads["l0b"].bytes_per_cycle) == (l0a, l0b)


@pytest.mark.parametrize("name", NAMES)
def test_a_path_that_a_chip_lacks_has_no_table(name: str) -> None:
    """L0C leaves through UB on coupled cores, through the fixpipe on others, and never to UB on A2 and A3."""
    chip = load_target(name)
    paths, coupled = set(chip.path), name not in SPLIT
    assert {"gm->l1", "gm->ub", "ub->gm"} <= paths
    assert ("l0c->gm" in paths) != coupled
    assert ("fixpipe" in chip.engine) != coupled
    for key in ("l0c->ub", "l1->ub", "ub->l1"):
        assert (key in paths) == (name not in A2_A3)
    assert ("gm->l0b" in paths) == (name in A2_A3 or coupled)


@pytest.mark.parametrize("name", BINS)
def test_a_bin_differs_in_what_it_states(name: str) -> None:
    """Every line of its file changes its base, or where the number comes from; all else is the base's."""
    leaves, base_name = read_leaves(FOLDER / f"{name}.toml")
    ours, base = load_target(name), load_target(str(base_name))
    stated = {".".join(key) for key in leaves}
    assert len(stated) <= 8
    ours_flat, base_flat = _flat(ours.model_dump()), _flat(base.model_dump())
    numbers = {key for key in ours_flat | base_flat if ours_flat.get(key) != base_flat.get(key)}
    assert {key for key in numbers if not key.startswith("provenance.")} <= stated
    assert {
        key.removeprefix("provenance.").rsplit(".", 1)[0] for key in numbers if "provenance" in key
    } <= stated
    assert stated <= {key.removeprefix("provenance.").removesuffix(".source") for key in numbers}


def _flat(tables: dict[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in tables.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def test_the_pair_is_two_dies() -> None:
    """Twice of everything that the chip shares."""
    die, pair = load_target("ascend910_9391"), load_target("ascend910_9391_pair")
    assert (die.dies, pair.dies) == (None, 2)
    assert pair.link_units("l2") == 2 * die.link_units("l2")
    assert pair.link_units("hbm") == pytest.approx(2 * die.link_units("hbm"), rel=1e-6)
