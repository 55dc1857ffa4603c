"""Predicted against measured: each row, and the errors of groups of rows."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from kernels.dsp.product.tiling import GemmTiling
from kernels.gemm import gemm
from simulator.instructions import matmul_cycles
from simulator.values.numerics import dtype as named
from targets.errors import TilesimError
from targets.schema import Target
from tilesim.validation.blocking import accumulates, planned
from tilesim.validation.rows import MICROKERNEL, Row
from tilesim.validation.steady import MOST_TILES, Sizes, repeats_of, steady_cycles, tiles

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
    """Run every row that has a rate or cycles; `done` hears of each."""
    scores, predictor = [], Predictor(target)
    for row in rows:
        published = _published(row, target)
        if published is None:
            continue
        score = Score(
            row.name,
            group_of(row),
            row.label,
            published,
            _gflops(row, target, predictor.cycles(row)),
            _gflops(row, target, roofline_cycles(row, target)),
        )
        scores.append(score)
        done(score)
    return scores


def _published(row: Row, target: Target) -> float | None:
    """GFLOPS a core: as measured, or by the published cycles."""
    if row.gflops_per_core is not None or row.cycles is None:
        return row.gflops_per_core
    return _gflops(row, target, row.cycles)


def group_of(row: Row) -> str:
    """What a row is summed up with; of some micro-kernels only the formula was published."""
    if row.kind == MICROKERNEL:
        return MICROKERNEL if row.gflops_per_core is not None else f"{MICROKERNEL}, formula"
    if row.kind == "gemm":
        return f"blocked {row.mode}"
    if row.kind == "gemm-skinny":
        return f"skinny, {'1 core' if row.cores == 1 else 'all cores'}"
    return row.kind.removeprefix("gemm-")


def summaries(scores: Sequence[Score]) -> list[Summary]:
    """One a group, and the last of all products (micro-kernels are not counted there)."""
    groups = list(dict.fromkeys(score.group for score in scores))
    made = [_summary(group, [s for s in scores if s.group == group]) for group in groups]
    products = [s for s in scores if not s.group.startswith(MICROKERNEL)]
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


def formula_cycles(row: Row, target: Target) -> int:
    """Cycles of one micro-kernel by the target's table, without the software around it.

    Raises:
        TilesimError: the table lacks the micro-kernel.
    """
    table = row.dtype + MICRO_KERNELS.get(row.mode, f" {row.mode}")
    if table not in target.matmul:
        what, known = "the target has no such micro-kernel", ", ".join(target.matmul)
        raise TilesimError(what, where=f"row {row.name} on {target.name}", got=table, limit=known)
    spec = target.matmul[table].model_copy(update={"call_cycles": 0})
    return matmul_cycles(spec, 1, row.m, row.n, row.k)


class Predictor:
    """Cycles of rows on a target; products that several rows are made of are simulated once."""

    def __init__(self, target: Target, most_tiles: float = MOST_TILES) -> None:
        """Simulate a product as it is up to so many A tiles of a core, and extend it beyond."""
        self._target = target
        self._most_tiles = most_tiles
        self._known: dict[Hashable, int] = {}

    def cycles(self, row: Row) -> float:
        """Of a micro-kernel its formula and, if it was measured, the call; of a product a simulation."""
        if row.kind == MICROKERNEL:
            call = self._target.issue.matmul_cycles if row.gflops_per_core is not None else 0
            return formula_cycles(row, self._target) + call
        problem, tiling = planned(row, self._target)
        whole = problem.m, problem.n, problem.k
        if tiles(problem, tiling) <= self._most_tiles:
            return self._run(row, tiling, whole)
        return steady_cycles(lambda each: self._run(row, tiling, each), whole, repeats_of(problem, tiling))

    def _run(self, row: Row, tiling: GemmTiling, sizes: Sizes) -> int:
        """Cycles of a row's product with other sizes, those that its tiling speaks of."""
        key = (row.dtype, row.cores, row.trans_a, row.trans_b, tiling, sizes)
        if key not in self._known:
            self._known[key] = self._simulated(row, tiling, sizes)
        return self._known[key]

    def _simulated(self, row: Row, tiling: GemmTiling, sizes: Sizes) -> int:
        m, n, k = sizes
        return gemm(
            shape=(n, m, k) if tiling.swap else sizes,
            trans_a=row.trans_a,
            trans_b=row.trans_b,
            accumulate=accumulates(row),
            target=self._target,
            cores=row.cores,
            dtype=row.dtype,
            tiling=tiling.model_dump(),
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
