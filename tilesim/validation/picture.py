"""The picture of a validation: predicted against measured."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from simulator.results.files import make_directory, write_aside

PICTURE = "validation.png"


class Scored(Protocol):
    """A row that was measured and predicted, in one unit."""

    @property
    def group(self) -> str:
        """What the row is summed up with."""

    @property
    def measured(self) -> float:
        """As published."""

    @property
    def predicted(self) -> float:
        """As simulated."""


def keep_scatter(directory: Path, scores: Iterable[Scored], title: str, unit: str) -> Path:
    """Draw rows into `validation.png` of a directory, which is made when it is not there, and return the file.

    Raises:
        TilesimError: there is no row, or one that is not above 0.
        RunFileError: the operating system refused.
    """
    from reports.canvas import write_png  # noqa: PLC0415 - matplotlib takes most of a second to load
    from reports.scatter import Pair, draw_scatter  # noqa: PLC0415

    pairs = [Pair(score.group, score.measured, score.predicted) for score in scores]
    figure = draw_scatter(pairs, title, unit)
    make_directory(directory)
    write_aside({directory / PICTURE: write_png(figure)})
    return directory / PICTURE
