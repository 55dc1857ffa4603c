"""The HTML page of a run: whole, by itself, and the same figures as the trace."""

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.conv_backward import conv_backward
from kernels.shape.shapes import ConvShape
from reports.load import SavedRun, load
from reports.page.columns import columns, path_of
from reports.page.markup import slug, to_html
from reports.page.page import html_page
from tests.unit.simulator.made import made_run

SHAPE = ConvShape(n=1, cin=32, size=(8, 8), cout=32, kernel=(3, 3), padding=1)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> SavedRun:
    """A small run of several kinds of cores."""
    folder = tmp_path_factory.mktemp("run")
    conv_backward(
        shape=SHAPE, dtype="fp16", grads=("dx", "dw"), target="ascend910b1", cores=2, numerics=False
    ).save(folder)
    return load(folder)


@pytest.fixture(scope="module")
def page(saved: SavedRun) -> str:
    """Its page."""
    return html_page(saved, {"Roofline": b"a picture"})


def element(page: str, name: str) -> str:
    """The text of a script element."""
    found = re.search(rf'<script type="[^"]*" id="{name}">(.*?)</script>', page, re.DOTALL)
    assert found
    return found[1]


def unpacked(meta: dict[str, Any], packed: str) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays, read as a browser reads them."""
    block = zlib.decompress(base64.b64decode(packed))
    return {name: np.frombuffer(block, f"<{kind}", n, at) for name, kind, at, n in meta["columns"]}


def test_the_page_needs_nothing_else(page: str) -> None:
    """Nothing in it is loaded: no source or link but data and places of the page; its styles and scripts are inside."""
    loaded = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert loaded
    assert all(target.startswith(("data:", "#")) for target in loaded)
    assert not re.search(r"@import|url\(|<script[^>]* src|fetch\(|XMLHttpRequest|import\(", page)
    assert "{{" not in page.split("<script>", maxsplit=1)[0]


def test_links_of_the_contents_lead_somewhere(page: str) -> None:
    """Each has a section."""
    links = re.findall(r'href="#([^"]*)"', page)
    assert len(links) == len(set(links)) > 8
    assert set(links) == set(re.findall(r'<section id="([^"]*)"', page))


def test_the_arrays_are_the_trace(saved: SavedRun, page: str) -> None:
    """Every row once, the scalar unit's too, by lane and start: times, bytes, coordinates, what it waited for."""
    meta = json.loads(element(page, "meta"))
    arrays, trace = unpacked(meta, element(page, "columns").strip()), saved.shown
    order = np.lexsort((trace["end"], trace["start"], trace["engine"], trace["core"]))
    for name in ("start", "end", "issued", "flow", "bytes"):
        np.testing.assert_array_equal(arrays[name], trace[name][order])
    assert [meta["names"][code] for code in arrays["name"]] == [trace.names[c] for c in trace["name"][order]]
    for i, axis in enumerate(trace.axes):
        np.testing.assert_array_equal(arrays[f"axis{i}"], trace[axis][order])
    waited = trace["waited_row"][order]
    known = waited >= 0
    np.testing.assert_array_equal(order[arrays["cause"]][known], waited[known])
    assert [lane["last"] for lane in meta["lanes"]][-1] == len(trace)
    for place, lane in enumerate(meta["lanes"]):
        rows = slice(lane["first"], lane["last"])
        assert set(arrays["lane"][rows]) == {place}
        assert {trace.engines[code] for code in trace["engine"][order][rows]} == {lane["name"]}


def test_the_strip_is_the_critical_path(saved: SavedRun, page: str) -> None:
    """From cycle 0 to the end; the rows on it are marked."""
    meta = json.loads(element(page, "meta"))
    arrays = unpacked(meta, element(page, "columns").strip())
    path = path_of(saved)
    assert path is not None
    assert arrays["pathStart"][0] == 0
    assert arrays["pathEnd"][-1] == saved.cycles
    np.testing.assert_array_equal(arrays["pathStart"][1:], arrays["pathEnd"][:-1])
    assert arrays["onPath"].sum() == len(path.rows())


def test_a_trace_without_costs_has_a_page_too(tmp_path: Path) -> None:
    """One made by hand: no critical path, but all else."""
    made_run().save(tmp_path)
    saved = load(tmp_path)
    assert path_of(saved) is None
    page = html_page(saved, {})
    arrays = unpacked(json.loads(element(page, "meta")), element(page, "columns").strip())
    assert len(arrays["pathStart"]) == 0
    assert "run the call again" in page


def test_large_cycles_are_kept(saved: SavedRun) -> None:
    """Times beyond 32 bits are written as floats, which hold them exactly."""
    late = 1 << 40
    moved = {name: saved.trace[name] + late for name in ("issued", "ready", "start", "flow", "end")}
    later = SavedRun(
        saved.directory, saved.record, saved.target, saved.launches, saved.trace.replaced(**moved)
    )
    found = columns(later, None)
    arrays = unpacked(found.meta, found.packed)
    assert arrays["start"].dtype == np.float64
    assert arrays["start"].min() == int(saved.shown["start"].min()) + late


def test_text_of_a_run_cannot_end_an_element(saved: SavedRun) -> None:
    """Names with tags in them stay text, in tables and in the data."""
    bad = "</script><b>"
    record = {**saved.record, "operator": bad, "tiling": {bad: bad}}
    page = html_page(SavedRun(saved.directory, record, saved.target, saved.launches, saved.trace), {})
    assert bad not in page


def test_markdown_tables_become_html() -> None:
    """Numbers to the right, bars and tags as they are, marks with their class."""
    text = "Words <b>.\n\n| a | mark |\n| ---: | --- |\n| 1,000 | assumed |\n| 2 \\| 3 |  |"
    assert to_html(text) == (
        "<p>Words &lt;b&gt;.</p>\n"
        '<div class="scroll"><table><thead><tr><th class="number">a</th><th>mark</th></tr></thead>\n'
        '<tbody><tr><td class="number">1,000</td><td class="mark-assumed">assumed</td></tr>\n'
        '<tr><td class="number">2 | 3</td><td></td></tr></tbody></table></div>'
    )


def test_headings_have_names_for_links() -> None:
    """Lower case, words joined by hyphens."""
    assert slug("Numbers of the target") == "numbers-of-the-target"
