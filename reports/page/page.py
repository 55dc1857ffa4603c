"""The page itself: the file's frame, its sections, and the script and style that it carries."""

import base64
import json
from collections.abc import Iterator, Mapping
from html import escape
from importlib import resources

from reports import tables
from reports.load import SavedRun
from reports.page.columns import columns, path_of
from reports.page.markup import slug, to_html
from reports.utilisation import usage
from simulator.results.critical.advice import sentence
from simulator.results.critical.path import CriticalPath
from simulator.results.critical.what_if import usual_changes, what_if
from simulator.results.metrics import percent

SCRIPTS = ("data.js", "view.js", "draw.js", "panel.js", "main.js")
"""In the order in which they are read."""

MOST_ROWS = 500_000
"""Instructions up to which the page says what better numbers would save: some ten seconds of a report."""


def html_page(saved: SavedRun, pictures: Mapping[str, bytes]) -> str:
    """The page of a saved run as the text of one HTML file.

    Args:
        saved: the run.
        pictures: PNG files by the heading of the section that shows them.
    """
    path = path_of(saved)
    found = columns(saved, path)
    sections = list(_sections(saved, path))
    title = f"{saved.operator} on {saved.target.name}: {saved.cycles:,} cycles"
    parts = {
        "title": escape(title),
        "lead": escape(f"{saved.target.title}, {saved.record['dtype']}. {saved.metrics.bound}."),
        "contents": _contents(heading for heading, _ in sections),
        "sections": "\n".join(_section(heading, text, pictures.get(heading)) for heading, text in sections),
        "version": escape(str(saved.record.get("tilesim_version") or "")),
        "style": _asset("page.css"),
        "script": '"use strict";\n(() => {\n' + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();",
        # "</" would end the element that holds it.
        "meta": json.dumps(found.meta, separators=(",", ":")).replace("</", "<\\/"),
        "columns": found.packed,
    }
    return _filled(_asset("page.html"), parts)


def _filled(frame: str, parts: Mapping[str, str]) -> str:
    """The frame with its parts in place; what looks like a place inside a part stays as it is."""
    first, *rest = frame.split("{{")
    pieces = [piece.split("}}", 1) for piece in rest]
    return first + "".join(parts[name] + after for name, after in pieces)


def _asset(name: str) -> str:
    return resources.files("reports.page").joinpath("assets", name).read_text(encoding="utf-8")


def _sections(saved: SavedRun, path: CriticalPath | None) -> Iterator[tuple[str, str]]:
    """Headings and texts in Markdown."""
    yield "Figures", tables.figures_table(saved)
    yield "Critical path", _critical(saved, path)
    yield "Where the time went", f"{tables.stalls_table(saved)}\n\n{tables.engines_table(saved)}"
    yield "Cores", f"Busy shares.\n\n{tables.cores_table(usage(saved))}"
    yield "Traffic", tables.traffic_table(saved)
    yield "Roofline", tables.roofline_table(saved)
    yield "Launches", tables.launches_table(saved)
    yield "Instructions", tables.instructions_table(saved.trace)
    yield "Tiling", tables.markdown(("field", "value"), saved.record["tiling"].items())
    yield "Numbers of the target", tables.target_table(saved.target)


def _critical(saved: SavedRun, path: CriticalPath | None) -> str:
    """What set the end of the run, and what better numbers of the chip would save."""
    if path is None:
        return "The trace does not say what its instructions cost: run the call again."
    rows = [(*key, cycles, percent(cycles / max(1, saved.cycles))) for key, cycles in path.table().items()]
    table = tables.markdown(("engine", "reason", "cycles", "share"), rows)
    if not len(saved.trace) or len(saved.trace) > MOST_ROWS:
        return table
    trace, target = saved.trace, saved.target
    found = [what_if(trace, target, saved.launches, saved.cycles, change) for change in usual_changes(target)]
    return f"{table}\n\nEstimates from these waits: {'; '.join(sentence(each) for each in found)}."


def _contents(headings: Iterator[str]) -> str:
    return "".join(f'<a href="#{slug(heading)}">{escape(heading)}</a>' for heading in ("Timeline", *headings))


def _section(heading: str, markdown: str, picture: bytes | None) -> str:
    image = ""
    if picture:
        data = base64.b64encode(picture).decode("ascii")
        image = f'<p><img alt="{escape(heading)}" src="data:image/png;base64,{data}"></p>\n'
    return (
        f'<section id="{slug(heading)}">\n<h2>{escape(heading)}</h2>\n{image}'
        f'<div class="pair">{to_html(markdown)}</div>\n</section>'
    )
