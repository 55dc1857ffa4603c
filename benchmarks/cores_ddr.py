"""Where more cores of MT7004 stop paying: cores x DDR over the backward convolutions of ResNet-50, and why.

dx and dw of each distinct layer at batch 32, fp16 with sums in fp32, timing only, weighted by how often the network has
it. The times are two sweeps (`tilesim.sweep`), kept below --out, so that a stopped study goes on. The reasons are the
critical paths of the same runs at some of the points, added up over the layers.

    python -m benchmarks.cores_ddr [--workers 2] --out DIR
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import tilesim as ts
from benchmarks.speed import _resnet_layers
from reports.canvas import LEFT, add_axes, add_legend, new_figure, pixels, write_png
from reports.colours import FAINT, INK
from reports.sweeps.scales import GRID, series_colours
from simulator.results.critical.advice import link_cycles
from simulator.results.critical.path import BARRIER, CONTENTION, LAUNCH, SETUP, STREAM, WORK, critical_path
from simulator.results.files import make_directory, write_aside
from tilesim.sweeps.values import Value

GRADS = ("dx", "dw")
DTYPE = "fp16"
GROUPS = (1, 2, 4, 8, 16)
DDR = "link.ddr.gigabytes_per_second"
RATES = (12.8, 25.6, 51.2, 102.4)
WHY: tuple[tuple[int, float], ...] = ((4, 12.8), (16, 12.8), (4, 102.4), (16, 102.4))
"""Points whose critical paths are told."""

PAYS = 1.25
"""Twice the cores pay where they are at least this much faster: a quarter of what they could be."""

Point = tuple[int, float]
"""Cores, and the nominal DDR rate in GB/s."""

REASONS = {
    "VPU": "#d1495b",
    "DDR": "#1d6fa5",
    "GSM": "#3fa7a0",
    "start-up of copies": "#b3b8e6",
    "barriers, launches": "#5f6b76",
    "issue, flags": "#c8bfb0",
}
"""What the time of a critical path goes to, and its colour."""


def layer_rows() -> list[tuple[dict[str, Value], int]]:
    """Each distinct layer as fields of a shape, and how often the network has it."""
    found: list[tuple[dict[str, Value], int]] = []
    for shape, times in _resnet_layers():
        (top, bottom), (left, right) = shape.padding
        sizes = {"cin": shape.cin, "h": shape.size[0], "w": shape.size[1], "cout": shape.cout}
        window = {"kh": shape.kernel[0], "kw": shape.kernel[1], "stride": shape.stride[0]}
        pads = {"pad_top": top, "pad_bottom": bottom, "pad_left": left, "pad_right": right}
        found.append(({f"shape.{key}": value for key, value in {**sizes, **window, **pads}.items()}, times))
    return found


def swept(grad: str, out: Path, workers: int) -> ts.SweepTable:
    """All layers at all points."""

    def told(done: int, total: int, _: object) -> None:
        print(f"\r{grad}: {done} of {total}", end="", file=sys.stderr, flush=True)

    table = ts.sweep(
        "conv_backward",
        target="mt7004",
        shape="n=32",
        points=[row for row, _ in layer_rows()],
        vary={"groups": GROUPS, DDR: RATES},
        dtype=DTYPE,
        grads=(grad,),
        out=out / f"{grad}.parquet",
        workers=workers,
        on_row=told,
    )
    print(file=sys.stderr)
    assert not table.failed, table.failed[0]
    return table


def network_total(tables: Sequence[ts.SweepTable], column: str = "time_ms") -> dict[Point, float]:
    """A column of the network's backward convolutions at each point, by default milliseconds."""
    layers = [(set(row.items()), times) for row, times in layer_rows()]
    total: Counter[Point] = Counter()
    for table in tables:
        for row in table.rows:
            times = next(times for layer, times in layers if layer <= set(row.items()))
            total[row["groups"], row[DDR]] += times * row[column]
    return dict(total)


def layer_reasons(job: tuple[int, float, str, int]) -> tuple[Point, dict[str, float]]:
    """What the critical path of one layer's gradient goes to, in milliseconds, weighted by the layer's number."""
    groups, rate, grad, number = job
    shape, times = _resnet_layers()[number]
    chip = ts.load_target("mt7004", {"groups": groups, DDR: rate})
    run = ts.conv_backward(shape=shape, dtype=DTYPE, grads=(grad,), target=chip, numerics=False)
    path = critical_path(run.trace, chip, run.launches, run.cycles)
    spent: Counter[str] = Counter()
    for (_, reason), cycles in path.table().items():
        spent[reason] += cycles
    links = link_cycles(path)
    named = {
        "VPU": spent[WORK],
        "DDR": links.get("link.ddr", 0),
        "GSM": links.get("link.gsm", 0),
        "start-up of copies": spent[SETUP],
        "barriers, launches": spent[BARRIER] + spent[LAUNCH],
    }
    assert links.keys() <= {"link.ddr", "link.gsm"}
    assert sum(links.values()) == spent[STREAM] + spent[CONTENTION]
    named["issue, flags"] = run.cycles - sum(named.values())
    return (groups, rate), {name: times * chip.us(cycles) / 1e3 for name, cycles in named.items()}


def reasons(workers: int) -> dict[Point, dict[str, float]]:
    """What the critical paths of all layers and gradients go to at the points of `WHY`, in milliseconds."""
    layers = range(len(_resnet_layers()))
    jobs = [(groups, rate, grad, number) for groups, rate in WHY for grad in GRADS for number in layers]
    total: dict[Point, Counter[str]] = {point: Counter() for point in WHY}
    with ProcessPoolExecutor(workers) as pool:
        for done, (point, spent) in enumerate(pool.map(layer_reasons, jobs), 1):
            total[point].update(spent)
            print(f"\rcritical paths: {done} of {len(jobs)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {point: dict(spent) for point, spent in total.items()}


def last_that_pays(ms: Mapping[Point, float], rate: float) -> int:
    """The cores beyond which twice as many are not `PAYS` times as fast."""
    for few, many in itertools.pairwise(GROUPS):
        if ms[few, rate] / ms[many, rate] < PAYS:
            return few
    return GROUPS[-1]


def time_table(ms: Mapping[Point, float]) -> list[str]:
    """A Markdown table: a line a rate; milliseconds, and how many times as fast as one core of that rate."""
    heads = [f"{groups} core" + ("s" if groups > 1 else "") for groups in GROUPS]
    lines = [f"| DDR | {' | '.join(heads)} | pays up to |", "|---|" + "---|" * (len(GROUPS) + 1)]
    for rate in RATES:
        cells = [f"{ms[g, rate]:,.0f} ms ({ms[1, rate] / ms[g, rate]:.2f} x)" for g in GROUPS]
        lines.append(f"| {rate:g} GB/s | {' | '.join(cells)} | {last_that_pays(ms, rate)} |")
    return lines


def traffic_table(tables: Mapping[str, ts.SweepTable]) -> list[str]:
    """A Markdown table: a line a gradient; gigabytes that copies moved over the link of the DDR."""
    lines = [
        "| GB over the DDR, at 25.6 GB/s | " + " | ".join(map(str, GROUPS)) + " |",
        "|---|" + "---|" * len(GROUPS),
    ]
    for grad, table in tables.items():
        moved = network_total([table], "bytes.ddr")
        lines.append(f"| {grad} | " + " | ".join(f"{moved[g, 25.6] / 1e9:.2f}" for g in GROUPS) + " |")
    return lines


def reason_table(why: Mapping[Point, Mapping[str, float]]) -> list[str]:
    """A Markdown table: a line a point; shares of the critical paths in per cent."""
    lines = ["| DDR | cores | " + " | ".join(REASONS) + " |", "|---|---|" + "---|" * len(REASONS)]
    for (groups, rate), spent in why.items():
        whole = sum(spent.values())
        cells = " | ".join(f"{100 * spent[name] / whole:.1f} %" for name in REASONS)
        lines.append(f"| {rate:g} GB/s | {groups} | {cells} |")
    return lines


def draw(ms: Mapping[Point, float], why: Mapping[Point, Mapping[str, float]]) -> Figure:
    """On the left the time over the cores, a curve a rate; on the right what the critical paths go to."""
    figure = new_figure(560)
    axes = add_axes(figure, 0, 560, width=620)
    colours = series_colours(RATES)
    for rate in RATES:
        times = [ms[g, rate] for g in GROUPS]
        axes.plot(GROUPS, times, color=colours[rate], marker="o", ms=5, lw=1.8)
        axes.annotate(
            f"{rate:g} GB/s",
            (GROUPS[-1], times[-1]),
            (6, -3),
            textcoords="offset points",
            fontsize=8,
            color=INK,
        )
    ideal = [ms[1, RATES[-1]] / g for g in GROUPS]
    axes.plot(GROUPS, ideal, color=FAINT, lw=1, ls=(0, (3, 2)))
    axes.set(xscale="log", yscale="log")
    axes.minorticks_off()
    axes.set_xticks(GROUPS, [str(g) for g in GROUPS])
    ticks = [t for t in (200, 500, 1000, 2000, 5000, 10000) if min(ideal) / 1.2 < t < 1.2 * max(ms.values())]
    axes.set_yticks(ticks, [f"{t:,}" for t in ticks])
    axes.grid(color=GRID, zorder=0)
    axes.set_xlabel("cores", fontsize=9, color=INK)
    axes.set_ylabel("ms of ResNet-50's backward convolutions; dashed: ideal", fontsize=9, color=INK)
    _draw_reasons(figure, why)
    height, x = pixels(figure)[1], LEFT / pixels(figure)[0]
    what = "MT7004 with more cores and another DDR: dx and dw of ResNet-50, batch 32, fp16"
    figure.text(x, 1 - 26 / height, what, fontsize=12, fontweight="bold", color=INK, va="center")
    below = "left: the time; right: milliseconds of the critical paths, by what they wait for"
    figure.text(x, 1 - 50 / height, below, fontsize=9, color=FAINT, va="center")
    return figure


def _draw_reasons(figure: Figure, why: Mapping[Point, Mapping[str, float]]) -> None:
    axes = add_axes(figure, 0, 560, left=LEFT + 790, width=600)
    for place, spent in enumerate(why.values()):
        below = 0.0
        for name, colour in REASONS.items():
            axes.bar(place, spent[name], 0.7, bottom=below, color=colour)
            below += spent[name]
    labels = [f"{groups} at {rate:g}" for groups, rate in why]
    axes.set_xticks(range(len(why)), labels)
    axes.set_xlabel("cores, at GB/s of the DDR", fontsize=9, color=INK)
    axes.set_ylabel("ms", fontsize=9, color=INK)
    axes.grid(axis="y", color=GRID, zorder=0)
    axes.set_axisbelow(True)
    add_legend(figure, REASONS, "critical path")


def main() -> int:
    """Run the study; the tables go to stdout, and with the picture to files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    given: Any = parser.parse_args()
    make_directory(given.out)
    tables = {grad: swept(grad, given.out, given.workers) for grad in GRADS}
    ms = network_total(list(tables.values()))
    why = reasons(given.workers)
    parts = [time_table(ms), *(time_table(network_total([table])) for table in tables.values())]
    text = (
        "\n\n".join("\n".join(lines) for lines in [*parts, traffic_table(tables), reason_table(why)]) + "\n"
    )
    print(text, end="")
    picture, page = given.out / "cores-ddr.png", given.out / "cores-ddr.md"
    write_aside(
        {picture: write_png(draw(ms, why)), page: lambda path: path.write_text(text, encoding="utf-8")}
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
