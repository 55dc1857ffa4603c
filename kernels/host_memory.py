"""The memory of the computer that simulates: estimated before a run starts."""

from __future__ import annotations

from pathlib import Path

from simulator.errors import CapacityError

MEMINFO = Path("/proc/meminfo")


def available_bytes() -> int | None:
    """Bytes that can be had without swapping, where the system tells."""
    try:
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def require_host_memory(wanted_bytes: int) -> None:
    """Refuse a run whose arrays would not fit the host.

    Raises:
        CapacityError: more is wanted than is free.
    """
    free = available_bytes()
    if free is not None and wanted_bytes > free:
        raise CapacityError(
            "this computer has too little memory for the arrays of the run",
            memory="host",
            wanted_bytes=wanted_bytes,
            free_bytes=free,
            remedy="lower the batch, or ask for timing only",
        )
