"""Colours: one for every instruction of a trace and for every reason of a stall."""

from collections.abc import Mapping

import numpy as np
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from simulator.results.trace import Trace

COMPUTING = ("#d1495b", "#ee8434", "#f4c430", "#9b2c6f", "#8c5a2b", "#f29ca3")
"""Warm: instructions that compute, the busiest first."""

MOVING = ("#1d6fa5", "#3fa7a0", "#7cc3ec", "#5a4fa2", "#94bf6a", "#2e7d5b", "#b3b8e6")
"""Cold: instructions that move data, those that are busy longest first."""

WAITING = ("#5f6b76", "#9aa5b1")
"""Grey: instructions of the scalar unit."""

OTHER = "#c8bfb0"
BACKGROUND = "#eef1f4"
INK = "#1f2933"
FAINT = "#66727f"
BUSY = "#2a9d8f"

SERIES = (
    *("#1d6fa5", "#d1495b", "#ee8434", "#3fa7a0", "#5a4fa2"),
    *("#94bf6a", "#9b2c6f", "#8c5a2b", "#7cc3ec", "#f4c430"),
)
"""Groups and curves beside each other, the first ones the easiest to tell apart."""

_WAITS_FOR = ("#e76f51", "#f4a261", "#c8553d", "#f6bd60", "#a44a3f", "#f7d9a8")
_REASONS = {
    "a result": "#b08968",
    "issue": "#e9c46a",
    "engine": "#6d597a",
    "barrier": "#7b6fb0",
    "flag": "#b8aee0",
    "launch": "#8fb3c9",
    "no work": "#dde2e7",
}


def instruction_colours(trace: Trace) -> dict[str, str]:
    """A colour for every name that has rows, in the order of a legend: computing, moving, waiting.

    Names beyond the palettes share `OTHER`.
    """
    time = np.bincount(trace["name"], weights=trace["end"] - trace["start"], minlength=len(trace.names))
    rows = np.bincount(trace["name"], minlength=len(trace.names))
    order = [code for code in np.argsort(-time, kind="stable").tolist() if rows[code]]
    moving = _codes(trace, trace["bytes"] > 0)
    working = _codes(trace, trace["engine"] != _scalar(trace))
    classes = {
        COMPUTING: [code for code in order if code in working - moving],
        MOVING: [code for code in order if code in moving],
        WAITING: [code for code in order if code not in working | moving],
    }
    return {
        trace.names[code]: palette[i] if i < len(palette) else OTHER
        for palette, codes in classes.items()
        for i, code in enumerate(codes)
    }


def _codes(trace: Trace, mask: NDArray[np.bool_]) -> set[int]:
    return set(np.unique(trace["name"][mask]).tolist())


def _scalar(trace: Trace) -> int:
    return trace.engines.index("SCALAR") if "SCALAR" in trace.engines else -1


def ink_on(colour: str) -> str:
    """White or dark, whichever is easier to read on a colour."""
    red, green, blue = to_rgb(colour)
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.62 else "white"


def reason_colours(reasons: Mapping[str, object] | tuple[str, ...]) -> dict[str, str]:
    """A colour for every reason of a stall; waits for the lanes of engines are of one family."""
    waits = [reason for reason in sorted(reasons) if reason.startswith("waits for ")]
    named = {reason: _WAITS_FOR[i % len(_WAITS_FOR)] for i, reason in enumerate(waits)}
    return {reason: named.get(reason) or _REASONS.get(reason, OTHER) for reason in reasons}
