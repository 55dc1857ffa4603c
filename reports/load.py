"""Reading the directory of a saved run."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from simulator.results.critical.advice import advice
from simulator.results.files import RunFileError
from simulator.results.issue import with_issue
from simulator.results.metrics import Metrics, measure
from simulator.results.run import FORMAT, FORMAT_VERSION, RUN_FILE, LaunchRecord
from simulator.results.summary import Summary
from simulator.results.trace import Trace
from targets.errors import TilesimError
from targets.schema import Target


@dataclass(frozen=True, eq=False)
class SavedRun:
    """A run as it was saved, without its outputs.

    Attributes:
        directory: where it was read from.
        record: all of `run.json`: the keys of `Run.to_dict`, and those that begin with format or target.
        target: the chip, overrides included.
        launches: its launches, in order.
        trace: what every engine did.
    """

    directory: Path
    record: Mapping[str, Any]
    target: Target
    launches: tuple[LaunchRecord, ...]
    trace: Trace

    @property
    def operator(self) -> str:
        """Name of the operator."""
        return str(self.record["operator"])

    @property
    def cores(self) -> int:
        """Groups of cores that were asked for."""
        return int(self.record["cores"])

    @property
    def cycles(self) -> int:
        """Length of the run."""
        return int(self.record["cycles"])

    @cached_property
    def shown(self) -> Trace:
        """The trace with the scalar unit's time, as lanes show it."""
        return with_issue(self.trace)

    @cached_property
    def metrics(self) -> Metrics:
        """The figures of the trace, computed once."""
        return measure(self.trace, self.target, self.cores, self.cycles, self.launches)

    def summary(self) -> Summary:
        """What the run cost and what bounded it."""
        target, tip = self.target, advice(self.trace, self.target, self.launches, self.cycles)
        return Summary(self.record, target.title, target.clock_mhz, target.groups, self.metrics.balance, tip)

    def window(self, start: int | None = None, end: int | None = None) -> tuple[int, int]:
        """A stretch of cycles of the run; by default all of it.

        Raises:
            TilesimError: it is empty or outside the run.
        """
        first, last = 0 if start is None else start, self.cycles if end is None else end
        if not 0 <= first <= last <= self.cycles or (first == last and self.cycles):
            raise TilesimError(
                "not a stretch of the run",
                got=f"cycles {first} to {last}",
                limit=f"0 to {self.cycles}",
                remedy="give a start below the end, both within the run",
            )
        return first, last


def load(directory: str | PathLike[str]) -> SavedRun:
    """Read a directory that `Run.save` wrote.

    Raises:
        RunFileError: there is no run, it is not tilesim's, a newer version wrote it, or its files are damaged
            or do not belong together.
    """
    folder = Path(directory)
    path = folder / RUN_FILE
    record = _record(path)
    _check_format(record, path)
    try:
        trace_file, target = record["trace"], _target(record["target_numbers"])
        launches = tuple(_launch(launch) for launch in record["launches"])
        trace = Trace.read(folder / trace_file["file"])
        matching = trace.hash() == trace_file["hash"]
    except (KeyError, TypeError, ValidationError) as error:
        got = f"{type(error).__name__} {error}"
        raise RunFileError(
            "the saved run is damaged", where=str(path), got=got, remedy="save it again"
        ) from error
    last = max((launch.end for launch in launches), default=0)
    if record["cycles"] < last:
        got, limit = f"cycles={record['cycles']}", f"at least the end of its last launch, {last}"
        raise RunFileError("the saved run is damaged", where=str(path), got=got, limit=limit)
    if not matching:
        raise RunFileError(
            "the trace belongs to another run",
            where=str(folder / trace_file["file"]),
            got=f"{len(trace)} rows",
            limit=f"the {trace_file['rows']} rows that {RUN_FILE} was written with",
            remedy="save the run again",
        )
    return SavedRun(folder, record, target, launches, trace)


def _record(path: Path) -> dict[str, Any]:
    """The object in a file."""
    remedy = "name a directory that a run was saved in"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RunFileError("there is no saved run", where=str(path), remedy=remedy) from error
    except OSError as error:
        raise RunFileError("cannot read", where=str(path), got=error.strerror or error) from error
    except ValueError as error:
        raise RunFileError("not a file of JSON", where=str(path), got=error, remedy=remedy) from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise RunFileError("not a saved run of tilesim", where=str(path), remedy=remedy)
    return record


NEEDED = ("operator", "target", "cores", "dtype", "shape", "tiling", "cycles", "time_us", "launches", "trace")
"""Keys without which nothing can be shown."""


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


_FITTING: dict[str, Callable[[Any], bool]] = {
    "cycles": lambda value: _whole(value, 0),
    "cores": lambda value: _whole(value, 1),
    "time_us": lambda value: isinstance(value, int | float) and math.isfinite(value) and value >= 0,
    "tiling": lambda value: isinstance(value, dict),
    "shape": lambda value: isinstance(value, dict),
}
"""What the values of these keys must be."""


def _check_format(record: Mapping[str, Any], path: Path) -> None:
    missing = [key for key in NEEDED if key not in record]
    if missing:
        raise RunFileError("the saved run is damaged", where=str(path), got=f"no {', '.join(missing)}")
    wrong = [key for key, fits in _FITTING.items() if not fits(record[key])]
    if wrong:
        got = ", ".join(f"{key}={record[key]!r}" for key in wrong)
        raise RunFileError("the saved run is damaged", where=str(path), got=got, remedy="save it again")
    version = record.get("format_version")
    if not isinstance(version, int):
        raise RunFileError("the saved run is damaged", where=str(path), got=f"format_version {version!r}")
    if version > FORMAT_VERSION:
        raise RunFileError(
            "the run was saved by a newer tilesim",
            where=str(path),
            got=f"format {version} (tilesim {record.get('tilesim_version') or 'unknown'})",
            limit=f"format {FORMAT_VERSION}",
            remedy="update tilesim",
        )


def _target(numbers: Mapping[str, Any]) -> Target:
    # Through JSON, where lists are the tuples that strict validation would ask for in Python.
    return Target.model_validate_json(json.dumps(numbers))


def _launch(record: Mapping[str, Any]) -> LaunchRecord:
    name, kind, start, end, cores = (record[key] for key in ("name", "kind", "start", "end", "cores"))
    return LaunchRecord(name, kind, start, end, cores, record.get("useful_macs", 0))
