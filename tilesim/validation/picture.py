"""The picture of a validation: predicted against measured."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from simulator.results.files import write_files

PICTURE = "validation.png"


def keep_scatter(directory: Path, rows: Iterable[tuple[str, float, float]], title: str, unit: str) -> Path:
    """Draw rows into `validation.png` of a directory, which is made when it is not there, and return the file.

    A row is its group, what was measured, and the error: predicted over measured, minus 1.

    Raises:
        TilesimError: there is no row, or one that is not above 0.
        RunFileError: the operating system refused.
    """
    from reports.canvas import write_png  # noqa: PLC0415 - matplotlib takes most of a second to load
    from reports.scatter import Pair, draw_scatter  # noqa: PLC0415

    pairs = [Pair(group, measured, measured * (1 + error)) for group, measured, error in rows]
    figure = draw_scatter(pairs, title, unit)
    return write_files(directory, {PICTURE: write_png(figure)})[0]
