"""The report of a saved run: pictures, a page in Markdown around them, and one in HTML that needs no other file."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from reports.load import SavedRun, load
from reports.perfetto import PERFETTO, left_out, perfetto_in_place
from simulator.results.files import text_writer, write_aside

TIMELINE, UTILISATION, TRAFFIC, ROOFLINE = "timeline.png", "utilisation.png", "traffic.png", "roofline.png"
PAGE, HTML = "report.md", "report.html"


def report(
    directory: str | PathLike[str],
    start: int | None = None,
    end: int | None = None,
    perfetto: bool | None = None,
) -> list[Path]:
    """Write the report of a saved run into its directory: pictures, pages, the trace for ui.perfetto.dev.

    The pictures are `timeline.png`, `utilisation.png`, `traffic.png` and `roofline.png`. The first three, the table
    of cores in `report.md` and `trace.pftrace` are of the cycles from `start` to `end`, all else, `report.html` too,
    is of the whole run. All files are replaced together, once the last is written.

    Args:
        directory: of the run.
        start: first cycle of the stretch; default: the run's first.
        end: cycle after its last; default: the run's end.
        perfetto: whether `trace.pftrace` is written; by default when its package is installed and the trace is not
            very long.

    Returns:
        The files written.

    Raises:
        RunFileError: the directory holds no run that can be read, or cannot be written to.
        TilesimError: the stretch is empty or outside the run, or a package is missing.
    """
    # matplotlib takes longer to import than a small run to simulate.
    from reports.canvas import png_of, write_png  # noqa: PLC0415
    from reports.page.page import html_page  # noqa: PLC0415
    from reports.roofline_picture import draw_roofline  # noqa: PLC0415
    from reports.timeline import draw_timeline  # noqa: PLC0415
    from reports.traffic import draw_traffic  # noqa: PLC0415
    from reports.utilisation import draw_utilisation  # noqa: PLC0415

    saved = load(directory)
    missing = left_out(saved, perfetto)
    text = page(saved, start, end, missing)
    draw = {TIMELINE: draw_timeline, UTILISATION: draw_utilisation, TRAFFIC: draw_traffic}
    files: dict[Path, Callable[[Path], object]] = {
        saved.directory / name: write_png(function(saved, start, end)) for name, function in draw.items()
    }
    roofline = png_of(draw_roofline(saved))
    html = html_page(saved, {"Roofline": roofline})
    files[saved.directory / ROOFLINE] = lambda aside: aside.write_bytes(roofline)
    files[saved.directory / HTML] = text_writer(html)
    if not missing:
        files[saved.directory / PERFETTO] = perfetto_in_place(saved, start, end)
    path = saved.directory / PAGE
    write_aside({**files, path: text_writer(text)})
    return [*files, path]


def page(saved: SavedRun, start: int | None = None, end: int | None = None, no_trace: str = "") -> str:
    """The text of `report.md`; `no_trace` is why there is no trace for ui.perfetto.dev, empty where there is one.

    Raises:
        TilesimError: the stretch is empty or outside the run.
    """
    from reports import tables  # noqa: PLC0415
    from reports.utilisation import usage  # noqa: PLC0415

    first, last = saved.window(start, end)
    part = (first, last) != (0, saved.cycles)
    stretch = f"cycles {first:,} to {last:,}" if part else "the whole run"
    of_part, of_all = (f"Of {stretch}.\n\n", "Of the whole run.\n\n") if part else ("", "")
    sections = [
        ("Figures", of_all + tables.figures_table(saved)),
        ("Timeline", f"{of_part}![Timeline]({TIMELINE})\n\n[{HTML}]({HTML}) zooms to one instruction."),
        ("Utilisation", f"{of_part}![Utilisation]({UTILISATION})"),
        ("Where the time went", f"{of_all}{tables.stalls_table(saved)}\n\n{tables.engines_table(saved)}"),
        ("Cores", f"{of_part}Busy shares.\n\n{tables.cores_table(usage(saved, start, end))}"),
        ("Traffic", f"{of_part}![Traffic]({TRAFFIC})\n\n{tables.traffic_table(saved, start, end)}"),
        ("Roofline", f"{of_all}![Roofline]({ROOFLINE})\n\n{tables.roofline_table(saved)}"),
        ("Launches", of_all + tables.launches_table(saved)),
        ("Instructions", of_all + tables.instructions_table(saved.trace)),
        ("Trace", _trace(stretch, no_trace)),
        ("Numbers of the target", tables.target_table(saved.target)),
    ]
    title = f"# {saved.operator} on {saved.target.name}: {saved.cycles:,} cycles"
    body = "\n\n".join(f"## {heading}\n\n{text}" for heading, text in sections)
    return f"{title}\n\n{saved.metrics.bound}.\n\n{body}\n"


def _trace(stretch: str, missing: str) -> str:
    if missing:
        return f"There is no `{PERFETTO}`: {missing}."
    return (
        f"[{PERFETTO}]({PERFETTO}), of {stretch}, opens in <https://ui.perfetto.dev>, which reads it in the browser "
        "and sends it nowhere. A process is a core, a thread an engine, a slice an instruction, with tile and bytes, "
        "and what it waited for; the launches have a track, each link its bandwidth and active transfers. What the "
        "memories hold is not in it."
    )
