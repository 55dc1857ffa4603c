"""A run: what a call of an operator returns, and how it is saved."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib import metadata
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.results.critical.advice import advice
from simulator.results.files import text_writer, write_files
from simulator.results.metrics import Metrics, measure
from simulator.results.summary import Summary
from simulator.results.trace import Trace
from targets.schema import Target

FORMAT = "tilesim-run"
FORMAT_VERSION = 1
RUN_FILE = "run.json"
TRACE_FILE = "trace.parquet"


@dataclass
class LaunchRecord:
    """One launch of a call.

    Attributes:
        name: what it does ("MemSet", "conv dx").
        kind: the key of the target's launch costs.
        start, end: cycles on the run's clock; the launch's own cost is inside.
        cores: groups it was launched on.
        useful_macs: multiply-adds of the formula that it does; 0 where it only moves or adds.
    """

    name: str
    kind: str
    start: int
    end: int
    cores: int
    useful_macs: int = 0

    @property
    def cycles(self) -> int:
        """How long it took."""
        return self.end - self.start


@dataclass(eq=False)
class Run:
    """What a call returns: outputs, cycles, trace and tiling.

    Attributes:
        operator: name of the operator.
        target: the chip, overrides included.
        cores: groups asked for.
        dtype: what the chip computed in.
        cycles: length of the call.
        launches: its launches, in order.
        tiling: sizes, order and placement that it was run with; plain values.
        trace: what every engine did.
        outputs: the gradients by name ("dx", "dw", "db", "doffset", "dmask"), or "y"; empty when only timed.
        macs: multiply-adds executed, padding included.
        useful_macs: multiply-adds of the formula.
        peak_flops_per_cycle: of the data type, of all the cores asked for.
        shape: the problem; plain values.
        max_error: greatest error of each output against the float64 reference; None when not checked.
        tolerance: what each error is allowed to be; None when not checked.
        numerics: whether values were computed.
        call: what makes the call again, beside the above: plain values; empty where that is not known.
    """

    operator: str
    target: Target
    cores: int
    dtype: str
    cycles: int
    launches: list[LaunchRecord]
    tiling: dict[str, object]
    trace: Trace
    outputs: dict[str, NDArray[Any]]
    macs: int
    useful_macs: int
    peak_flops_per_cycle: float
    shape: dict[str, object]
    max_error: dict[str, float] | None = None
    tolerance: dict[str, float] | None = None
    numerics: bool = True
    call: dict[str, object] = field(default_factory=dict)

    @property
    def dx(self) -> NDArray[Any] | None:
        """Gradient of the input, None when it was not computed."""
        return self.outputs.get("dx")

    @property
    def dw(self) -> NDArray[Any] | None:
        """Gradient of the weights, None when it was not computed."""
        return self.outputs.get("dw")

    @property
    def db(self) -> NDArray[Any] | None:
        """Gradient of the bias, None when it was not computed."""
        return self.outputs.get("db")

    @property
    def doffset(self) -> NDArray[Any] | None:
        """The gradient of a deformable convolution's offsets, if it was asked for."""
        return self.outputs.get("doffset")

    @property
    def dmask(self) -> NDArray[Any] | None:
        """The gradient of its masks, if it was asked for."""
        return self.outputs.get("dmask")

    @property
    def y(self) -> NDArray[Any] | None:
        """Output of a forward convolution, None when it was not computed."""
        return self.outputs.get("y")

    @property
    def time_us(self) -> float:
        """How long the call took, in microseconds."""
        return self.target.us(self.cycles)

    @property
    def achieved_gflops(self) -> float:
        """Useful GFLOP/s: 2 x useful MACs / time; 0 for a call that took no time."""
        return 2 * self.useful_macs / self.time_us / 1e3 if self.cycles else 0.0

    @property
    def peak_gflops(self) -> float:
        """GFLOP/s that the cores asked for reach at most in the run's data type."""
        return self.peak_flops_per_cycle * self.target.clock_mhz / 1e3

    @cached_property
    def metrics(self) -> Metrics:
        """The figures of the trace, computed once."""
        return measure(self.trace, self.target, self.cores, self.cycles, self.launches)

    def summary(self) -> Summary:
        """What the run cost and what bounds it."""
        target, tip = self.target, advice(self.trace, self.target, self.launches, self.cycles)
        return Summary(
            self.to_dict(), target.title, target.clock_mhz, target.groups, self.metrics.balance, tip
        )

    def to_dict(self) -> dict[str, Any]:
        """The figures of the run, as `--json` prints them: plain values that JSON has.

        `time_us` is in microseconds, `traffic_bytes` is {memory: {read, write}}, `utilisation` and `stalls`
        are shares of 1; errors that are not finite numbers become strings.
        """
        figures = self.metrics
        record = {
            "operator": self.operator,
            "target": self.target.name,
            "cores": self.cores,
            "dtype": self.dtype,
            "shape": self.shape,
            "tiling": self.tiling,
            "cycles": self.cycles,
            "time_us": self.time_us,
            "macs": self.macs,
            "useful_macs": self.useful_macs,
            "achieved_gflops": self.achieved_gflops,
            "peak_gflops": self.peak_gflops,
            "cores_active": figures.cores_active,
            "utilisation": figures.utilisation,
            "traffic_bytes": figures.traffic_bytes,
            "bound": figures.bound,
            "stalls": figures.stalls,
            "launches": [self._launch(launch) for launch in self.launches],
            "max_error": self.max_error,
            "tolerance": self.tolerance,
        }
        return {key: plain(value) for key, value in record.items()}

    def _launch(self, launch: LaunchRecord) -> dict[str, object]:
        return {**asdict(launch), "cycles": launch.cycles, "time_us": self.target.us(launch.cycles)}

    def save(self, directory: str | PathLike[str]) -> None:
        """Write `run.json` and `trace.parquet` into a directory, which is made when it is not there.

        Both are written aside and then moved into place; the outputs are not saved.

        Raises:
            RunFileError: the path is a file, or the operating system refused.
        """
        text = json.dumps(self._saved(), indent=1, allow_nan=False) + "\n"
        write_files(Path(directory), {TRACE_FILE: self.trace.write_in_place, RUN_FILE: text_writer(text)})

    def _saved(self) -> dict[str, Any]:
        """The contents of `run.json`: the figures, and what is needed to read the directory again."""
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "tilesim_version": _version(),
            **self.to_dict(),
            "numerics": self.numerics,
            "call": plain(self.call),
            "peak_flops_per_cycle": plain(self.peak_flops_per_cycle),
            "trace": {"file": TRACE_FILE, "rows": len(self.trace), "hash": self.trace.hash()},
            "target_numbers": self.target.model_dump(mode="json"),
        }


def plain(value: object) -> Any:
    """A value in the types of JSON: NumPy's numbers and arrays unpacked, tuples as lists, others as text.

    Numbers that are not finite, which JSON lacks, become "nan", "inf" and "-inf".
    """
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _version() -> str | None:
    """The version of tilesim, None when it is not installed."""
    try:
        return metadata.version("tilesim")
    except metadata.PackageNotFoundError:
        return None
