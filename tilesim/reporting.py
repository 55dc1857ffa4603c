"""The door to the reports, which load matplotlib: only a caller who asks for a report pays for that."""

from __future__ import annotations

from os import PathLike
from pathlib import Path


def report(
    directory: str | PathLike[str],
    start: int | None = None,
    end: int | None = None,
    perfetto: bool | None = None,
) -> list[Path]:
    """Write pictures, a trace for ui.perfetto.dev and the page `report.md` of a saved run into its directory.

    Args:
        directory: where `Run.save` wrote `run.json` and `trace.parquet`.
        start: first cycle that the timeline shows; default: the run's first.
        end: cycle at which the timeline stops; default: the run's end.
        perfetto: whether to write `trace.pftrace`, which needs the extra `perfetto`; default: where the extra is
            installed and the run has no more than 200,000 instructions.

    Returns:
        The files written.

    Raises:
        TilesimError: the directory holds no saved run, or the extra is wanted and missing.
    """
    from reports.report import report as write_report  # noqa: PLC0415 - matplotlib takes most of a second to load

    return write_report(Path(directory), start=start, end=end, perfetto=perfetto)
