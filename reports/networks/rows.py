"""The rows of a network's table, its totals, and the fields of a layer's record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from reports.networks.memory import gradient, workspace
from simulator.results.metrics import percent
from simulator.results.summary import amount, duration

if TYPE_CHECKING:  # the record's classes make their tables with these functions
    from reports.networks.times import LayerWork, NetworkTimes, TargetTimes

NAME, SIZES, REASON = 32, 44, 100
"""Characters of a name, of the sizes, and of a refusal in the table."""


def shortened(text: str, length: int) -> str:
    """A text of at most so many characters: what is cut is in the middle, names of layers end differently."""
    half = (length - 2) // 2
    return text if len(text) <= length else f"{text[:half]}..{text[-half:]}"


def headings(parts: Sequence[str], memory: bool) -> list[str]:
    """The heads of the columns."""
    held = ["dx bytes", "dw bytes", "workspace"] if memory else []
    return ["layer", "times", "sizes", *parts, "time", "GFLOP/s", "of peak", "share", *held]


def cells(layer: LayerWork, times: TargetTimes, place: int, parts: Sequence[str], memory: bool) -> list[str]:
    """The row of a distinct layer, as `headings`; its share is that of all layers that it stands for."""
    found, count = times.distinct[place], times.times[place]
    name = [shortened(layer.name, NAME), f"{count:,}", shortened(layer.sizes, SIZES)]
    if found.refused:
        return [*name, f"refused: {found.refused[:REASON]}"]
    speed = times.gflops(found.macs, found.total)
    row = [f"{found.cycles[part]:,}" if part in found.cycles else "-" for part in parts]
    row += [duration(times.us(found.total)), f"{speed:,.1f}", percent(speed / times.peak_gflops)]
    row += [percent(times.share(count * found.total))]
    if memory:
        row += [amount(gradient(found.tensors, each), "B") for each in ("dx", "dw")]
        row += [amount(workspace(found.tensors), "B")]
    return [*name, *row]


def lined_up(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows as lines, columns of text to the left, others to the right; a short row ends with a text of any length."""
    full = [row for row in rows if len(row) == len(rows[0])]
    widths = [max(len(row[column]) for row in full) for column in range(len(rows[0]))]
    for index in (0, 2):
        widths[index] = max(len(row[index]) for row in rows)
    for row in rows:
        whole = len(row) == len(rows[0])
        texts = {0, 2} if whole else {0, 2, len(row) - 1}
        cut = [
            cell.ljust(width) if column in texts else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        yield "  ".join(cut).rstrip()


def total_lines(network: NetworkTimes, times: TargetTimes, memory: bool) -> Iterator[str]:
    """What the whole network costs."""
    count, distinct = len(network.layers), len(times.distinct)
    how = "each simulated in its turn, the cache handed on" if times.in_order else f"{distinct} distinct"
    yield f"total: {count:,} convolutions ({how}), {times.total:,} cycles, {duration(times.us(times.total))}"
    shares = ", ".join(f"{part} {percent(times.share(cycles))}" for part, cycles in times.cycles.items())
    speed = times.gflops(times.macs, times.total)
    rate = (
        f"{speed:,.1f} of {times.peak_gflops:,.1f} GFLOP/s ({percent(speed / times.peak_gflops)} of the peak)"
    )
    yield f"{shares}; {rate}"
    if times.refused:
        yield f"without {times.refused:,} convolutions that {times.target} refuses: the totals lack them"
    if network.others:
        yield f"not simulated: {sum(network.others.values()):,} other operators"
    if memory:
        yield from _memory_lines(times)


def _memory_lines(times: TargetTimes) -> Iterator[str]:
    found = times.memory
    yield (
        f"held: gradients of weights {amount(found.weight_gradients, 'B')}, dy and dx at most "
        f"{amount(found.image_gradients, 'B')}, workspace at most {amount(found.workspaces, 'B')}, "
        f"together at most {amount(found.peak, 'B')}"
    )


def layer_fields(times: TargetTimes, place: int) -> dict[str, Any]:
    """A layer's record: the same names for every layer and target, empty where it has none."""
    found = times.layer(place)
    known = ("forward", "dx", "dw", "db")
    ran = not found.refused
    return {
        **{f"{part}_cycles": found.cycles.get(part) for part in known},
        "cycles": found.total if ran else None,
        "time_us": times.us(found.total) if ran else None,
        "useful_macs": found.macs,
        "achieved_gflops": times.gflops(found.macs, found.total),
        "share": times.share(found.total),
        "distinct": times.which[place],
        **{f"{name}_bytes": gradient(found.tensors, name) for name in ("dx", "dw", "db")},
        "workspace_bytes": workspace(found.tensors),
        "bound": found.bound,
        "refused": found.refused,
    }
