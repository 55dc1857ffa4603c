"""Columns and values of a sweep as a picture says them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TITLES = {
    "time_ms": "time (ms)",
    "cycles": "cycles",
    "gflops": "GFLOP/s",
    "peak_gflops": "peak GFLOP/s",
    "share_of_peak": "share of the peak (%)",
    "seconds": "seconds it took to simulate",
    "cost.onchip_bytes": "on-chip memory",
    "cost.mac_lanes": "MAC lanes",
}


def title(name: str) -> str:
    """A column as the label of an axis."""
    if name in TITLES:
        return TITLES[name]
    if name.startswith("cost.") and name.endswith("_gbs"):
        return f"bandwidth of {name.removeprefix('cost.').removesuffix('_gbs')} (GB/s)"
    if name.startswith("bytes."):
        return f"bytes over {name.removeprefix('bytes.')}"
    return name


def shown(name: str, value: Any) -> Any:
    """A figure in the unit of its axis: shares of 1 become per cent."""
    return 100 * value if name == "share_of_peak" else value


def text(name: str, value: Any) -> str:
    """A value as a tick, a label or a cell says it; sizes in KiB and MiB."""
    if isinstance(value, bool | str) or value is None:
        return str(value)
    if name.endswith("_bytes") or name.startswith("bytes."):
        return size(value)
    if abs(value) >= 1e5:
        return f"{value:,.0f}"
    return f"{value:,.4g}"


def size(count: float) -> str:
    """Bytes with a binary prefix."""
    for prefix, unit in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(count) >= unit:
            return f"{count / unit:.4g} {prefix}"
    return f"{count:.4g} B"


def call_text(call: Mapping[str, Any]) -> str:
    """What all points of a sweep share, in a line."""
    shape = call["shape"]
    shown_shape = (
        shape if isinstance(shape, str) else ",".join(f"{key}={value}" for key, value in shape.items())
    )
    fixed = [f"{name} {call[name]}" for name in ("dtype", "cores") if call.get(name)]
    grads = [",".join(call["grads"])] if call.get("grads") else []
    more = [f"{key}={value}" for part in ("tiling", "overrides") for key, value in call[part].items()]
    return "; ".join([shown_shape.replace(" ", ""), *grads, *fixed, *more])
