"""Runs of one problem beside each other: what each cost, what it reached, and what bounds it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from simulator.results.files import write_aside
from simulator.results.metrics import SCALAR, percent
from simulator.results.run import Run, plain
from simulator.results.summary import amount, duration
from targets.errors import TilesimError

HEADINGS = (
    *("run", "type", "cores", "cycles", "time", "GFLOP/s", "peak", "of peak", "bounding engine"),
    *("memory", "read", "written"),
)


@dataclass(frozen=True)
class Compared:
    """The figures of one run.

    Attributes:
        label: what it is called in the comparison.
        target, dtype, cores, cycles, time_us, achieved_gflops, peak_gflops: as of the run.
        share_of_peak: achieved over peak, a share of 1; 0 without a peak.
        engine: the kind of engine, SCALAR left out, that is busy for the greatest share of the time; empty when
            nothing ran.
        engine_busy: that share.
        memory: the memory that holds the tensors of a call (DDR, GM).
        read_bytes, written_bytes: its traffic.
        bound: one sentence.
    """

    label: str
    target: str
    dtype: str
    cores: int
    cycles: int
    time_us: float
    achieved_gflops: float
    peak_gflops: float
    share_of_peak: float
    engine: str
    engine_busy: float
    memory: str
    read_bytes: int
    written_bytes: int
    bound: str

    def cells(self) -> list[str]:
        """The row of a table, as `HEADINGS`."""
        return [
            self.label,
            self.dtype,
            str(self.cores),
            f"{self.cycles:,}",
            duration(self.time_us),
            f"{self.achieved_gflops:,.1f}",
            f"{self.peak_gflops:,.1f}",
            percent(self.share_of_peak),
            f"{self.engine} {percent(self.engine_busy)}" if self.engine else "none",
            self.memory,
            amount(self.read_bytes, "B"),
            amount(self.written_bytes, "B"),
        ]


@dataclass(frozen=True)
class Comparison:
    """Runs of one problem: `str` is a table, `save` draws the picture.

    Attributes:
        operator: of all runs.
        shape: the problem of all runs; plain values.
        rows: one a run, in the order given.
    """

    operator: str
    shape: dict[str, object]
    rows: tuple[Compared, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON has."""
        record = {"operator": self.operator, "shape": self.shape, "runs": [asdict(row) for row in self.rows]}
        return {key: plain(value) for key, value in record.items()}

    def __str__(self) -> str:
        table = [list(HEADINGS), *(row.cells() for row in self.rows)]
        widths = [max(len(row[i]) for row in table) for i in range(len(HEADINGS))]
        lines = (
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table
        )
        return "\n".join(line.rstrip() for line in lines)

    def save(self, path: Path | str) -> None:
        """Draw the comparison into a PNG file, written aside and then moved into place.

        Raises:
            RunFileError: the operating system refused.
        """
        from reports.canvas import write_png  # noqa: PLC0415 - matplotlib takes most of a second to load
        from reports.comparison_picture import draw_comparison  # noqa: PLC0415

        write_aside({Path(path): write_png(draw_comparison(self))})


def compare(runs: Sequence[Run] | Mapping[str, Run]) -> Comparison:
    """Put runs of one problem beside each other, by the names given or else by those of their targets.

    Raises:
        TilesimError: there is no run, or they are not of one operator, shape and work.
    """
    listed = list(runs.values()) if isinstance(runs, Mapping) else list(runs)
    if not listed:
        raise TilesimError("no run to compare", remedy="give at least one")
    for run in listed:
        if not isinstance(run, Run):
            raise TilesimError(
                "not a run to compare", got=repr(run), limit="what conv_backward and the like return"
            )
    labels = list(runs) if isinstance(runs, Mapping) else _labels(listed)
    first = listed[0]
    for run in listed[1:]:
        _check_same("operator", first.operator, run.operator)
        _check_same("shape", plain(first.shape), plain(run.shape))
        _check_same("useful work", first.useful_macs, run.useful_macs)
    rows = tuple(_row(label, run) for label, run in zip(labels, listed, strict=True))
    return Comparison(first.operator, plain(first.shape), rows)


def _check_same(what: str, first: object, other: object) -> None:
    if first != other:
        raise TilesimError(
            f"runs of different {what}",
            got=f"{first} and {other}",
            remedy="compare runs of one operator, shape and set of gradients",
        )


def _labels(runs: Sequence[Run]) -> list[str]:
    """Names of the targets; where one comes twice, with what else differs, then with a number."""
    names = [run.target.name for run in runs]
    for part in ("cores", "dtype"):
        if len(set(names)) == len(names):
            return names
        values = [f"{run.cores} cores" if part == "cores" else run.dtype for run in runs]
        if len(set(values)) > 1:
            names = [f"{name}, {value}" for name, value in zip(names, values, strict=True)]
    if len(set(names)) == len(names):
        return names
    return [f"{name} #{i + 1}" for i, name in enumerate(names)]


def _row(label: str, run: Run) -> Compared:
    used = {kind: share for kind, share in run.metrics.utilisation.items() if kind != SCALAR and share}
    engine = max(used, key=used.__getitem__, default="")
    memory = run.target.main_memory
    moved = run.metrics.traffic_bytes.get(memory, {"read": 0, "write": 0})
    return Compared(
        label=label,
        target=run.target.name,
        dtype=run.dtype,
        cores=run.cores,
        cycles=run.cycles,
        time_us=run.time_us,
        achieved_gflops=run.achieved_gflops,
        peak_gflops=run.peak_gflops,
        share_of_peak=run.achieved_gflops / run.peak_gflops if run.peak_gflops else 0.0,
        engine=engine,
        engine_busy=used.get(engine, 0.0),
        memory=memory,
        read_bytes=moved["read"],
        written_bytes=moved["write"],
        bound=run.metrics.bound,
    )
