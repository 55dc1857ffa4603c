"""A smallest target of two kinds of cores, as the text of a file: one cube core and two vector cores a group."""

from collections.abc import Mapping
from pathlib import Path

from tests.unit.targets.tiny import write

NUMBER = 'mark = "assumed", source = "round numbers for timelines by hand"'


def _number(name: str, value: object) -> str:
    return f"{name} = {{ value = {value}, {NUMBER} }}\n"


def _engine(name: str, core: str) -> str:
    return f'[engine.{name}]\ncore = {core}\nissue = "queued"\n{_number("queue_depth", 8)}'


def _memory(name: str, scope: str, size: int, core: str = "", align: int = 64) -> str:
    own = f"core = {core}\n" if core else ""
    numbers = _number("size_bytes", size) + _number("base_address", 0) + _number("align_bytes", align)
    return f'[memory.{name}]\nscope = "{scope}"\n{own}{numbers}'


def _path(name: str, direction: str, engine: str, link: str = "") -> str:
    port = f"{engine}_port"
    lines = (
        f'link = "{link}"\ndirection = "{direction}"\nport = "{port}"\nengine = "{engine}"\noverlap = false\n'
    )
    return f'[path."{name}"]\n{lines}{_number("start_cycles", 0)}'


def _table(name: str, **numbers: object) -> str:
    return f"[{name}]\n" + "".join(_number(key, value) for key, value in numbers.items())


SPLIT = "".join(
    (
        'name = "split"\ntitle = "a test target of two kinds of cores"\nfamily = "davinci"\n',
        _number("clock_mhz", 1000) + _number("groups", 2),
        _table("core.aic", per_group=1),
        _table("core.aiv", per_group=2),
        _engine("cube", '"aic"'),
        _engine("mte1", '"aic"'),
        _engine("mte2", '["aic", "aiv"]'),
        _engine("mte3", '"aiv"'),
        _engine("vector", '"aiv"'),
        _engine("fixpipe", '"aic"'),
        _memory("gm", "chip", 1 << 20, align=100),
        _memory("l1", "core", 4096, '"aic"'),
        _memory("l0a", "core", 4096, '"aic"'),
        _memory("ub", "core", 4096, '"aiv"'),
        _table("link.hbm", bytes_per_cycle=10, burst_bytes=1),
        _table("link.l2", bytes_per_cycle=40, burst_bytes=1),
        _table("port.mte1_port", bytes_per_cycle=20),
        _table("port.mte2_port", bytes_per_cycle=20),
        _table("port.mte3_port", bytes_per_cycle=20),
        _path("gm->l1", "read", "mte2", "hbm"),
        _path("gm->ub", "read", "mte2", "hbm"),
        _path("ub->gm", "write", "mte3", "hbm"),
        _path("l1->l0a", "read", "mte1"),
        _table(
            "issue",
            copy_cycles=0,
            matmul_cycles=0,
            vector_cycles=0,
            barrier_cycles=0,
            flag_set_cycles=0,
            flag_wait_cycles=0,
        ),
        _table(
            "sync",
            barrier_latency_cycles=10,
            barrier_cycles_per_core=0,
            flag_latency_cycles=0,
            cross_core_flag_latency_cycles=5,
        ),
        _table("launch.default", cycles=0, cycles_per_core=0),
    )
)
"""Everything is instant but streams (HBM 10, L2 40, ports 20 bytes a cycle), barriers (10) and flags (5)."""

CACHE = '[cache.gm]\nlink = "l2"\n' + _number("size_bytes", 400) + _number("block_bytes", 100)
"""A cache of four blocks of 100 bytes."""


def write_split(folder: Path, changes: Mapping[str, str] | None = None, more: str = "") -> Path:
    """Write the target with pieces of its text replaced, each of which must stand there, and more tables behind."""
    text = SPLIT
    for old, new in (changes or {}).items():
        assert old in text, f"{old!r} does not stand in the target"
        text = text.replace(old, new)
    return write(folder / "split.toml", text + more)
