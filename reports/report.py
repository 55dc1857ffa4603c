"""The report of a saved run: pictures, and a page in Markdown around them."""

from os import PathLike
from pathlib import Path

from reports.load import SavedRun, load
from simulator.results.files import write_aside

TIMELINE, UTILISATION, TRAFFIC, ROOFLINE = "timeline.png", "utilisation.png", "traffic.png", "roofline.png"
PAGE = "report.md"


def report(directory: str | PathLike[str], start: int | None = None, end: int | None = None) -> list[Path]:
    """Write the pictures and `report.md` of a saved run into its directory.

    The pictures are `timeline.png`, `utilisation.png`, `traffic.png` and `roofline.png`. The first three and the
    table of cores are of the cycles from `start` to `end`, all else is of the whole run. All files are replaced
    together, once the last is written.

    Returns:
        The files written.

    Raises:
        RunFileError: the directory holds no run that can be read, or cannot be written to.
        TilesimError: the stretch is empty or outside the run.
    """
    # matplotlib takes longer to import than a small run to simulate.
    from reports.canvas import write_png  # noqa: PLC0415
    from reports.roofline_picture import draw_roofline  # noqa: PLC0415
    from reports.timeline import draw_timeline  # noqa: PLC0415
    from reports.traffic import draw_traffic  # noqa: PLC0415
    from reports.utilisation import draw_utilisation  # noqa: PLC0415

    saved = load(directory)
    text = page(saved, start, end)
    draw = {TIMELINE: draw_timeline, UTILISATION: draw_utilisation, TRAFFIC: draw_traffic}
    pictures = {
        saved.directory / name: write_png(function(saved, start, end)) for name, function in draw.items()
    }
    pictures[saved.directory / ROOFLINE] = write_png(draw_roofline(saved))
    path = saved.directory / PAGE
    write_aside({**pictures, path: lambda aside: aside.write_text(text, encoding="utf-8")})
    return [*pictures, path]


def page(saved: SavedRun, start: int | None = None, end: int | None = None) -> str:
    """The text of `report.md`.

    Raises:
        TilesimError: the stretch is empty or outside the run.
    """
    from reports import tables  # noqa: PLC0415
    from reports.utilisation import usage  # noqa: PLC0415

    first, last = saved.window(start, end)
    whole = (first, last) == (0, saved.cycles)
    stretch = "the whole run" if whole else f"cycles {first:,} to {last:,}"
    sections = [
        ("Figures", tables.figures_table(saved)),
        ("Timeline", f"Of {stretch}.\n\n![Timeline]({TIMELINE})"),
        ("Utilisation", f"Of {stretch}.\n\n![Utilisation]({UTILISATION})"),
        ("Where the time went", f"{tables.stalls_table(saved)}\n\n{tables.engines_table(saved)}"),
        ("Cores", f"Busy shares, of {stretch}.\n\n{tables.cores_table(usage(saved, start, end))}"),
        ("Traffic", f"![Traffic]({TRAFFIC})\n\n{tables.traffic_table(saved)}"),
        ("Roofline", f"Of the whole run.\n\n![Roofline]({ROOFLINE})\n\n{tables.roofline_table(saved)}"),
        ("Launches", tables.launches_table(saved)),
        ("Instructions", tables.instructions_table(saved.trace)),
        ("Numbers of the target", tables.target_table(saved.target)),
    ]
    title = f"# {saved.operator} on {saved.target.name}: {saved.cycles:,} cycles"
    body = "\n\n".join(f"## {heading}\n\n{text}" for heading, text in sections)
    return f"{title}\n\n{saved.metrics.bound}.\n\n{body}\n"
