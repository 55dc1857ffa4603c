"""The pictures of a sweep: which there are, and of what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from reports.canvas import shortened, write_heading, write_png
from reports.sweeps.curves import draw_curves
from reports.sweeps.front import Row, best_by, chosen_costs, is_number, require_numbers, values_of
from reports.sweeps.heat_map import draw_heat_map
from reports.sweeps.pareto import draw_pareto
from reports.sweeps.table import SweepTable
from reports.sweeps.words import call_text, title
from simulator.results.files import write_files
from targets.errors import TilesimError

CURVES, HEAT_MAP, PARETO = "curves.png", "heat-map.png", "pareto-{}.png"

MOST_CURVES = 12
MOST_CELLS = 40
"""Curves of a picture, and cells of a heat map along an axis, up to which it is drawn."""


@dataclass(frozen=True)
class View:
    """What is drawn: a column over a varied field, by another one, the best over all others.

    Attributes:
        x: the field along the axis; empty where none is a number.
        series: the field with a curve, or a line of the heat map, a value; empty where there is none.
        value: the column.
        others: fields over which the best is taken.
    """

    x: str
    series: str
    value: str
    others: tuple[str, ...]


def draw_sweep(
    table: SweepTable,
    out: Path,
    *,
    x: str | None = None,
    series: str | None = None,
    value: str = "time_ms",
    cost: str | None = None,
) -> list[Path]:
    """Draw the pictures that a sweep has into a directory: curves, a heat map of two fields, Pareto fronts.

    Args:
        table: the sweep.
        out: the directory.
        x: a varied field; default: the one with the most numbers.
        series: another one; default: of the others the one with the most values.
        value: a column of numbers.
        cost: what the time is set against; default: each cost that varies, a picture each.

    Returns:
        The files written.

    Raises:
        TilesimError: no point has figures, a field or column is not there, or nothing can be drawn.
    """
    if not table.done:
        raise TilesimError(
            "a sweep without results", got=f"{len(table)} points", remedy="run one that has some"
        )
    view = chosen_view(table, x, series, value)
    figures = {
        CURVES: _curves(table, view),
        HEAT_MAP: _heat_map(table, view),
        **{_front_file(name): _pareto(table, name) for name in chosen_costs(table.done, cost)},
    }
    drawn = {name: write_png(figure) for name, figure in figures.items() if figure is not None}
    if not drawn:
        raise TilesimError("nothing to draw", got="no field of numbers and no cost that varies")
    return write_files(out, drawn)


def chosen_view(table: SweepTable, x: str | None, series: str | None, value: str) -> View:
    """What to draw, where it is not said.

    Raises:
        TilesimError: a field is not varied, or the column has no numbers.
    """
    rows = table.done
    for name in filter(None, (x, series)):
        if name not in table.varied:
            raise TilesimError("no such field", got=name, limit=", ".join(table.varied))
    require_numbers(
        rows, value, [name for name in table.columns if any(is_number(row.get(name)) for row in rows)]
    )
    count = {name: len(values_of(rows, name)) for name in table.varied}
    several = sorted((name for name in table.varied if count[name] > 1), key=lambda name: -count[name])
    numbers = [name for name in several if name != series and _numeric(rows, name)]
    along = x or next(iter(numbers), "")
    by = series or next((name for name in several if name != along and count[name] <= MOST_CURVES), "")
    others = tuple(name for name in several if name not in (along, by))
    return View(along, by, value, others)


def _numeric(rows: Sequence[Row], name: str) -> bool:
    return all(is_number(row[name]) for row in rows)


def _curves(table: SweepTable, view: View) -> Figure | None:
    if not view.x or not _numeric(table.done, view.x):
        return None
    fields = [view.x, *filter(None, [view.series])]
    best = best_by(table.done, fields, view.value)
    figure = draw_curves(list(best.values()), view.x, view.series, view.value, lines=_joined(table, view))
    by = f", by {view.series}" if view.series else ""
    return _titled(figure, table, f"{title(view.value)} over {view.x}{by}", _best_note(view.others))


def _joined(table: SweepTable, view: View) -> bool:
    """Whether the points of a curve differ in x alone: those of a sample do not."""
    cells = len(values_of(table.rows, view.x)) * (
        len(values_of(table.rows, view.series)) if view.series else 1
    )
    return 2 * len(best_by(table.done, [view.x, *filter(None, [view.series])], view.value)) > cells


def _heat_map(table: SweepTable, view: View) -> Figure | None:
    if not view.x or not view.series or not _joined(table, view):
        return None
    if max(len(values_of(table.rows, name)) for name in (view.x, view.series)) > MOST_CELLS:
        return None
    best = best_by(table.done, [view.x, view.series], view.value)
    figure = draw_heat_map(table.rows, best, view.x, view.series, view.value)
    return _titled(
        figure, table, f"{title(view.value)} by {view.x} and {view.series}", _best_note(view.others)
    )


def _front_file(cost: str) -> str:
    return PARETO.format(re.sub(r"\W+", "-", cost.removeprefix("cost.")))


def _pareto(table: SweepTable, cost: str) -> Figure:
    labels = [name for name in table.varied if len(values_of(table.done, name)) > 1]
    note = f"on the line: nothing is faster and no dearer; labels: {', '.join(labels)}"
    return _titled(draw_pareto(table.done, cost, labels), table, f"Time against {title(cost)}", note)


def _best_note(others: Sequence[str]) -> str:
    return f"the best over {', '.join(others)}" if others else ""


def _titled(figure: Figure, table: SweepTable, what: str, note: str) -> Figure:
    call = table.call
    head = f"{what[0].upper()}{what[1:]}: {call['operator']} on {call['target']}"
    failed = f"{len(table.failed)} of {len(table)} points failed" if table.failed else f"{len(table)} points"
    below = "; ".join(filter(None, [call_text(call), failed, note]))
    write_heading(figure, shortened(head, 130), shortened(below, 230))
    return figure
