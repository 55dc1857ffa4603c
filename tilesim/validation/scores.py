"""Predicted against measured: each row, and the errors of groups of rows."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any

from kernels.gemm import gemm
from simulator.instructions import matmul_cycles
from simulator.values.numerics import dtype as named
from targets.schema import Target
from tilesim.validation.blocking import tiling_of
from tilesim.validation.rows import MICROKERNEL, Row

MOST_TILES = 300_000
"""A tiles of a core beyond which a row is run with a quarter and an eighth of its columns, and extended: cores that
divide the columns do the same for each tile of columns, panel by panel."""

MICRO_KERNELS = {"NN": "", "NT": "_nt", "NT-merged": "_nt_merged"}
"""Endings of the rate tables, by the mode of a row."""


@dataclass(frozen=True)
class Score:
    """One row: GFLOPS of a core as measured, as predicted, and by the bare roofline.

    Attributes:
        error, roofline_error: predicted over measured, minus 1.
    """

    name: str
    group: str
    label: str
    measured: float
    predicted: float
    roofline: float

    @property
    def error(self) -> float:
        """Of the model."""
        return self.predicted / self.measured - 1

    @property
    def roofline_error(self) -> float:
        """Of max(operations / peak, bytes / nominal bandwidth)."""
        return self.roofline / self.measured - 1

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "error": self.error, "roofline_error": self.roofline_error}


@dataclass(frozen=True)
class Summary:
    """Absolute errors of a group: median, mean and what nine of ten rows are within; the same of the roofline."""

    group: str
    rows: int
    median: float
    mean: float
    within_90: float
    roofline_median: float
    roofline_mean: float
    roofline_within_90: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def score_rows(
    rows: Iterable[Row], target: Target, done: Callable[[Score], None] = lambda _: None
) -> list[Score]:
    """Run every row that has a measured rate; `done` hears of each."""
    scores = []
    for row in rows:
        if row.gflops_per_core is None:
            continue
        score = Score(
            row.name,
            group_of(row),
            row.label,
            row.gflops_per_core,
            _gflops(row, target, predicted_cycles(row, target)),
            _gflops(row, target, roofline_cycles(row, target)),
        )
        scores.append(score)
        done(score)
    return scores


def group_of(row: Row) -> str:
    """What a row is summed up with."""
    if row.kind == "gemm":
        return f"blocked {row.mode}"
    if row.kind == "gemm-skinny":
        return f"skinny, {'1 core' if row.cores == 1 else 'all cores'}"
    return row.kind.removeprefix("gemm-")


def summaries(scores: Sequence[Score]) -> list[Summary]:
    """One a group, and the last of all products (micro-kernels are not counted there)."""
    groups = list(dict.fromkeys(score.group for score in scores))
    made = [_summary(group, [s for s in scores if s.group == group]) for group in groups]
    products = [s for s in scores if s.group != MICROKERNEL]
    return [*made, _summary("all products", products)] if products else made


def _summary(group: str, scores: Sequence[Score]) -> Summary:
    ours = sorted(abs(score.error) for score in scores)
    bare = sorted(abs(score.roofline_error) for score in scores)
    place = ceil(0.9 * len(scores)) - 1
    return Summary(
        group,
        len(scores),
        statistics.median(ours),
        statistics.fmean(ours),
        ours[place],
        statistics.median(bare),
        statistics.fmean(bare),
        bare[place],
    )


def predicted_cycles(row: Row, target: Target) -> float:
    """Cycles of a row: of a micro-kernel its formula and the call, of a product a run of the simulator."""
    if row.kind == MICROKERNEL:
        spec = target.matmul[row.dtype + MICRO_KERNELS[row.mode]].model_copy(update={"call_cycles": 0})
        return matmul_cycles(spec, 1, row.m, row.n, row.k) + target.issue.matmul_cycles
    tiling = tiling_of(row, target, named(row.dtype).size_bytes)
    if tiling["split"] == "m" or _tiles(row, tiling) <= MOST_TILES:
        return _run(row, target, tiling)
    short, longer = (row.n // part // row.cores * row.cores for part in (8, 4))
    first, second = (_run(replace(row, n=n), target, tiling) for n in (short, longer))
    return second + (second - first) * (row.n - longer) / (longer - short)


def _tiles(row: Row, tiling: dict[str, object]) -> float:
    """A tiles that a core multiplies, about."""
    width, height, step = (int(str(tiling[name])) for name in ("N_A", "M_S", "K_A"))
    return row.m / height * row.n / width * row.k / step / row.cores


def _run(row: Row, target: Target, tiling: dict[str, object]) -> int:
    return gemm(
        shape=(row.m, row.n, row.k),
        trans_a=row.trans_a,
        trans_b=row.trans_b,
        accumulate=True,
        target=target,
        cores=row.cores,
        dtype=row.dtype,
        tiling=tiling,
        numerics=False,
    ).cycles


def roofline_cycles(row: Row, target: Target) -> float:
    """max(operations / peak, bytes / nominal bandwidth): a, b and c once, and c once more."""
    peak = target.matmul[row.dtype].flops_per_cycle * row.cores
    operations = 2 * row.m * row.n * row.k / peak
    if row.kind == MICROKERNEL:
        return operations
    moved = named(row.dtype).size_bytes * (row.m * row.k + row.k * row.n + 2 * row.m * row.n)
    return max(operations, moved / float(target.link["ddr"].exact_bytes_per_cycle(target.clock_mhz)))


def _gflops(row: Row, target: Target, cycles: float) -> float:
    return 2 * row.m * row.n * row.k / cycles * target.clock_mhz / 1000 / row.cores
