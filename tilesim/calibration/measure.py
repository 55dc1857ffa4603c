"""What this computer's operations cost, in nanoseconds, from the C program beside this file."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from targets.errors import TilesimError
from tilesim.calibration.compiler import FOLDER, compiled, output

CPUINFO = Path("/proc/cpuinfo")

NAMES = (
    *("multiply_add", "add", "move", "scatter", "tap", "page", "line"),
    *("byte", "byte_together", "fork", "join", "reap", "crowded"),
)


@dataclass(frozen=True)
class Computer:
    """What the system says of the computer; None where it does not.

    Attributes:
        cores: that this process may use.
        clock_mhz: as the system gives it.
        cache_bytes: of the second-level cache.
        page_bytes: of a page.
        memory_bytes: of the main memory.
        load: how many processes ran at the time, on average over a minute.
    """

    cores: int
    clock_mhz: float | None
    cache_bytes: int | None
    page_bytes: int
    memory_bytes: int
    load: float


def this_computer() -> Computer:
    """What the system says."""
    size = os.sysconf("SC_PAGE_SIZE")
    return Computer(
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        clock_mhz=_clock_mhz(),
        cache_bytes=_sysconf("SC_LEVEL2_CACHE_SIZE"),
        page_bytes=size,
        memory_bytes=size * os.sysconf("SC_PHYS_PAGES"),
        load=os.getloadavg()[0],
    )


def _clock_mhz() -> float | None:
    try:
        found = re.search(r"cpu MHz\s*:\s*([\d.]+)", CPUINFO.read_text(encoding="ascii", errors="replace"))
    except OSError:
        return None
    return round(float(found[1]), 3) if found else None


def _sysconf(name: str) -> int | None:
    try:
        return os.sysconf(name) or None
    except (ValueError, OSError):
        return None


def measured(workers: int, cache_bytes: int) -> dict[str, float]:
    """Compile the program, run it, and read what it says: nanoseconds an item, by name.

    Raises:
        TilesimError: there is no compiler, or a program failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(FOLDER / "probe.c", Path(folder))
        return parsed(output([str(program), str(workers), str(cache_bytes)]))


def parsed(text: str) -> dict[str, float]:
    """The numbers in the program's lines.

    Raises:
        TilesimError: a line is missing, or a number is not above 0.
    """
    found: Mapping[str, str] = dict(line.split() for line in text.splitlines())
    bad = [name for name in NAMES if not float(found.get(name, "nan")) > 0]
    if bad:
        raise TilesimError("a measurement without a result", where="probe", got=", ".join(bad))
    return {name: float(found[name]) for name in NAMES}
