"""MT7004 over the convolutions of VGG16: achieved over peak, beside the published efficiencies, and what moves it.

Published for the VGG convolution layers on FT-M7004 (Chen, Li, Liu, Computer Engineering & Science 2024, 46(4):580-589,
abstract): 69.63 % in training (the average over forward, dx and dw) and 86.62 % in inference. Clock, lanes, memories
and DDR of this target are assumed, so that the shares are conditional on them; the table says what moves them most.

    python benchmarks/vgg16.py [--workers 2] [--out DIR]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

import tilesim as ts
from targets.loader import load_target

BATCH = 32
PUBLISHED = {"training": 69.63, "inference": 86.62}


class Layer(NamedTuple):
    """A convolution with a 3x3 kernel and pads of 1, and how often VGG16 has it."""

    name: str
    cin: int
    size: int
    cout: int
    times: int

    @property
    def shape(self) -> ts.ConvShape:
        """Its geometry at the batch of the study."""
        return ts.ConvShape(
            n=BATCH, cin=self.cin, size=(self.size,) * 2, cout=self.cout, kernel=(3, 3), padding=1
        )


LAYERS = (
    Layer("conv1_1", 3, 224, 64, 1),
    Layer("conv1_2", 64, 224, 64, 1),
    Layer("conv2_1", 64, 112, 128, 1),
    Layer("conv2_2", 128, 112, 128, 1),
    Layer("conv3_1", 128, 56, 256, 1),
    Layer("conv3_2", 256, 56, 256, 2),
    Layer("conv4_1", 256, 28, 512, 1),
    Layer("conv4_2", 512, 28, 512, 2),
    Layer("conv5_x", 512, 14, 512, 3),
)


@dataclass(frozen=True)
class Setting:
    """One line of the study: what of the target and of the tiling of dx differs from the default."""

    name: str
    target: Mapping[str, object] = field(default_factory=dict)
    tiling: Mapping[str, object] = field(default_factory=dict)
    outputs: tuple[str, ...] = ("dx", "dw")
    dtypes: tuple[str, ...] = ("fp32",)


def _lanes_halved() -> dict[str, object]:
    """Registers of 512 bits: half the columns of a granule, half the peak."""
    found: dict[str, object] = {"vector.register_bytes": 64}
    for rate, columns, peak in (("fp32", 8, 96), ("fp16", 8, 96), ("fp16_fp16", 16, 192)):
        found |= {f"matmul.{rate}.granule_columns": columns, f"matmul.{rate}.flops_per_cycle": peak}
    return found


BUDGETS = (0x10000, 0x20000, 0x40000, 0x80000)
CURVE = tuple(
    Setting(
        f"column={column} budget={budget:#x}",
        tiling={"column": column, "budget_bytes": budget},
        outputs=("dx",),
    )
    for column in ("rows", "blocks")
    for budget in BUDGETS
)
SETTINGS = (
    Setting("default", outputs=("dx", "dw", "y"), dtypes=("fp32", "fp16")),
    Setting(
        "fp16, sums in fp16", tiling={"fp16_accumulate": "fp16"}, outputs=("dx", "dw", "y"), dtypes=("fp16",)
    ),
    Setting("clock 1000 MHz", {"clock_mhz": 1000.0}),
    Setting("clock 1800 MHz", {"clock_mhz": 1800.0}),
    Setting("lanes halved", _lanes_halved()),
    Setting("DDR 12.8 GB/s", {"link.ddr.gigabytes_per_second": 12.8}),
    Setting("DDR 42.6 GB/s", {"link.ddr.gigabytes_per_second": 42.6}),
    Setting("AM 512 KB", {"memory.am.size_bytes": 524288}),
    Setting("AM 1.5 MB", {"memory.am.size_bytes": 1572864}),
    Setting(
        "GSM bandwidth x 2", {"link.gsm.bytes_per_cycle": 47.2, "link.gsm.bytes_per_cycle_per_core": 10.84}
    ),
    Setting("columns in a DDR workspace", tiling={"column_place": "workspace"}, outputs=("dx",)),
    Setting("no columns", tiling={"column": "none"}, outputs=("dx",)),
    Setting("dy not in GSM", tiling={"gsm_holds": "none"}, outputs=("dx",)),
    *CURVE,
)


class Point(NamedTuple):
    """One layer under one setting: useful operations, seconds, and the peak in operations a second."""

    setting: str
    output: str
    dtype: str
    layer: str
    times: int
    operations: float
    seconds: float
    peak: float


def simulate(setting: Setting, output: str, dtype: str, layer: Layer) -> Point:
    """Time one layer: a gradient, or with output y the forward convolution."""
    target = load_target("mt7004", dict(setting.target))
    prefix = {"dx": "", "dw": "dw.", "y": ""}[output]
    tiling = {prefix + name: value for name, value in setting.tiling.items()}
    if output == "y":
        run = ts.conv_forward(shape=layer.shape, dtype=dtype, target=target, tiling=tiling, numerics=False)
    else:
        run = ts.conv_backward(
            shape=layer.shape, dtype=dtype, grads=(output,), target=target, tiling=tiling, numerics=False
        )
    peak = run.peak_flops_per_cycle * target.clock_mhz * 1e6
    return Point(
        setting.name, output, dtype, layer.name, layer.times, 2.0 * run.useful_macs, run.time_us / 1e6, peak
    )


def share(points: Sequence[Point]) -> float:
    """Achieved over peak, by time, in per cent."""
    done = sum(p.times * p.operations for p in points)
    return 100 * done / sum(p.times * p.seconds * p.peak for p in points)


def _jobs() -> list[tuple[Setting, str, str, Layer]]:
    return [(s, g, d, layer) for s in SETTINGS for g in s.outputs for d in s.dtypes for layer in LAYERS]


def _simulate(job: tuple[Setting, str, str, Layer]) -> Point:
    return simulate(*job)


COLUMNS = [(output, dtype) for dtype in ("fp32", "fp16") for output in ("dx", "dw", "y")]


def table(points: Sequence[Point]) -> list[str]:
    """A Markdown table: one line a setting, a column for each output and data type."""
    columns = COLUMNS
    lines = [
        "| setting | " + " | ".join(f"{o} {d}" for o, d in columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    for name in dict.fromkeys(p.setting for p in points):
        cells = []
        for output, dtype in columns:
            mine = [p for p in points if (p.setting, p.output, p.dtype) == (name, output, dtype)]
            cells.append(f"{share(mine):.1f}" if mine else "")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def layer_table(points: Sequence[Point]) -> list[str]:
    """A Markdown table of the layers under the default setting."""
    columns = COLUMNS
    lines = [
        "| layer | " + " | ".join(f"{o} {d}" for o, d in columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    for layer in LAYERS:
        mine = {
            (p.output, p.dtype): share([p]) for p in points if (p.setting, p.layer) == ("default", layer.name)
        }
        lines.append(f"| {layer.name} | " + " | ".join(f"{mine[c]:.1f}" for c in columns) + " |")
    return lines


def draw(points: Sequence[Point], path: Path) -> None:
    """The share of the peak over the column buffer, whole rows against blocks."""
    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    for column, marker in (("rows", "o"), ("blocks", "s")):
        shares = [
            share([p for p in points if p.setting == f"column={column} budget={budget:#x}"])
            for budget in BUDGETS
        ]
        axes.plot([budget // 1024 for budget in BUDGETS], shares, marker=marker, label=f"column={column}")
    axes.axhline(PUBLISHED["training"], color="grey", linestyle="--", label="published, training 69.6 %")
    axes.set_xscale("log", base=2)
    axes.set_xticks([b // 1024 for b in BUDGETS], [f"{b // 1024}" for b in BUDGETS])
    axes.set(xlabel="column buffer, KB", ylabel="share of the peak, %", ylim=(0, 100))
    axes.set_title("dx of VGG16, batch 32, fp32, MT7004 with 4 cores")
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> int:
    """Run the study; tables go to stdout, and with --out also to files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    points: list[Point] = []
    jobs = _jobs()
    with ProcessPoolExecutor(given.workers) as pool:
        for point in pool.map(_simulate, jobs):
            points.append(point)
            print(f"\r{len(points)} of {len(jobs)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    lines = [*layer_table(points), "", *table(points)]
    print("\n".join(lines))
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "vgg16.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        draw(points, given.out / "vgg16.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
