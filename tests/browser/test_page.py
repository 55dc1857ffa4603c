"""The page of a large run in a real browser, opened from disk: 24 cores and over 100,000 instructions.

It needs the package playwright (`pip install -e '.[browser]'`) and Chromium (Debian: `apt-get install chromium`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from kernels.conv_backward import conv_backward
from kernels.shape.shapes import ConvShape
from reports.load import load
from reports.page.page import html_page

playwright = pytest.importorskip(
    "playwright.sync_api", reason="pip install -e '.[browser]' brings playwright"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: apt-get install chromium"),
]

LARGE = ConvShape(n=96, cin=128, size=(28, 28), cout=128, kernel=(3, 3), padding=1)
STEPS = """async (steps) => {
  const frame = () => new Promise(requestAnimationFrame), canvas = document.getElementById("canvas"), took = [];
  const box = canvas.getBoundingClientRect();
  for (let i = 0; i < steps; i++) {
    const begin = performance.now(), before = tilesim.painted;
    canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: i < steps / 2 ? -200 : 200, cancelable: true,
      clientX: box.left + 600, clientY: box.top + 200 }));
    while (tilesim.painted === before) await frame();
    took.push(performance.now() - begin);
  }
  return took;
}"""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the run, alone in its directory."""
    run = conv_backward(
        shape=LARGE, dtype="fp16", grads=("dx", "dw"), target="ascend910b1", cores=24, numerics=False
    )
    assert len(run.trace) > 100_000
    folder = tmp_path_factory.mktemp("run")
    run.save(folder)
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(html_page(load(folder), {}), encoding="utf-8")
    return file


class Opened:
    """A page in a browser, with what the browser complained about and asked for."""

    def __init__(self, page: Any, file: Path) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.asked: list[str] = []
        page.on(
            "console", lambda m: self.complaints.append(m.text) if m.type in {"error", "warning"} else None
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_function("window.tilesim && tilesim.firstPicture > 0")
        self.box = page.locator("#canvas").bounding_box()

    def get(self, expression: str) -> Any:
        """The value of an expression once what was asked for is painted."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        return self.page.evaluate(expression)

    def middle_of(self, row: int) -> tuple[float, float]:
        """Where a visible row is on the screen."""
        x, y = self.get(
            f"(({{view, trace}}) => {{ const x = {row}; const plot = view.width - 152;"
            " return [152 + ((trace.start[x] + trace.end[x]) / 2 - view.from) * plot / (view.to - view.from),"
            " 62 - view.scroll + (trace.lane[x] + 0.5) * view.lane]; })(tilesim)"
        )
        return self.box["x"] + x, self.box["y"] + y


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def opened(browser: Any, page_file: Path) -> Iterator[Opened]:
    """The page, and afterwards: no complaint of the browser, nothing asked for but the file."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    shown = Opened(page, page_file)
    yield shown
    assert shown.complaints == []
    assert {url for url in shown.asked if not url.startswith("data:")} == {page_file.as_uri()}
    page.close()


def cpu_ms(session: Any) -> float:
    """What the page's main thread has worked so far, in milliseconds of processor time."""
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return 1000 * float(metrics["TaskDuration"])


def test_it_opens_and_zooms_fast(browser: Any, page_file: Path) -> None:
    """The first picture within 2 s of opening, a step of the wheel within 100 ms, from the event to the painted frame.

    On a machine that is busy with other things the page's processor time is held against the limits, not the clock.
    """
    rounds = []
    for _ in range(3):
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        shown = Opened(page, page_file)
        opening, first = cpu_ms(session), shown.get("tilesim.firstPicture")
        steps = page.evaluate(STEPS, 40)
        rounds.append((first, median(steps), opening, (cpu_ms(session) - opening) / len(steps)))
        rows = shown.get("tilesim.trace.start.length")
        page.close()
    first, step, opening, own = (min(each) for each in zip(*rounds, strict=True))
    print(  # noqa: T201  (a measurement, for who runs the test)
        f"\n{rows:,} instructions, {page_file.stat().st_size / 1e6:.2f} MB: first picture after {first:.0f} ms "
        f"({opening:.0f} ms of work), a zoom step {step:.0f} ms ({own:.0f} ms of work); best of three, load "
        f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; first pictures "
        + ", ".join(f"{each[0]:.0f}" for each in rounds)
        + " ms, median steps "
        + ", ".join(f"{each[1]:.0f}" for each in rounds)
        + " ms"
    )
    idle = os.getloadavg()[0] < (os.cpu_count() or 1)
    assert rows > 100_000
    assert (first if idle else opening) < 2000
    assert (step if idle else own) < 100


def test_the_wheel_goes_down_to_one_instruction(opened: Opened) -> None:
    """What is under the mouse stays there, and the view ends at a few cycles; zooming out ends at the run."""
    opened.page.mouse.move(opened.box["x"] + 700, opened.box["y"] + 200)
    spans = [opened.get("tilesim.view.to - tilesim.view.from")]
    at = opened.get(
        "tilesim.view.from + (700 - 152) * tilesim.trace.meta.cycles / (tilesim.view.width - 152)"
    )
    for _ in range(40):
        opened.page.mouse.wheel(0, -240)
        spans.append(opened.get("tilesim.view.to - tilesim.view.from"))
    assert spans == sorted(spans, reverse=True)
    assert spans[-1] <= 8
    assert opened.get("tilesim.view.from") - 8 <= at <= opened.get("tilesim.view.to") + 8
    for _ in range(45):
        opened.page.mouse.wheel(0, 240)
    assert opened.get("[tilesim.view.from, tilesim.view.to - tilesim.trace.meta.cycles]") == [0, 0]


def test_the_keyboard_alone_is_enough(opened: Opened) -> None:
    """Zoom, move, select, step, follow a dependency back and forth, clear."""
    page = opened.page
    page.locator("#canvas").focus()
    for _ in range(6):
        page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    assert (
        0
        < opened.get("tilesim.view.from")
        < opened.get("tilesim.view.to")
        < opened.get("tilesim.trace.meta.cycles")
    )
    page.keyboard.press("ArrowDown")  # past the first core's scalar unit, whose issuing depends on nothing
    page.keyboard.press("n")
    row = opened.get("tilesim.view.selected")
    assert row >= 0
    page.keyboard.press("n")
    assert opened.get("tilesim.view.selected") == row + 1
    before = opened.get(f"tilesim.trace.cause[{row + 1}]")
    page.keyboard.press("d")
    assert opened.get("tilesim.view.selected") == before
    assert opened.get(f"tilesim.trace.end[{before}] <= tilesim.trace.end[{row + 1}]")
    page.keyboard.press("f")
    after = opened.get("tilesim.view.selected")
    assert opened.get(f"tilesim.trace.cause[{after}]") == before
    page.keyboard.press("Escape")
    assert opened.get("tilesim.view.selected") == -1
    page.keyboard.press("0")
    assert opened.get("tilesim.view.from") == 0


def test_hovering_and_selecting_say_what_an_instruction_is(opened: Opened) -> None:
    """Name, tile, bytes and what it waited for; a click shows what it depends on, and a link there follows it."""
    page = opened.page
    row = opened.get(
        "(({ bytes, reason, start, end }) => bytes.findIndex((size, row) =>"
        " size > 0 && reason[row] === 2 && end[row] - start[row] > 100))(tilesim.trace)"
    )
    opened.get(f"tilesim.select({row})")
    page.locator("#canvas").focus()
    page.keyboard.press("z")
    x, y = opened.middle_of(row)
    page.mouse.move(x, y)
    assert opened.get("tilesim.view.hover") == row
    text = page.locator("#tip").inner_text()
    name = opened.get(f"tilesim.trace.meta.names[tilesim.trace.name[{row}]]")
    size = opened.get(f"tilesim.trace.bytes[{row}]")
    assert f"instruction: {name}" in text
    assert f"bytes: {size:,} B" in text
    assert "waited for: the result of" in text
    assert "tile: " in text
    page.keyboard.press("Escape")
    page.mouse.click(x, y)
    assert opened.get("tilesim.view.selected") == row
    assert name in page.locator("#detail h3").inner_text()
    page.locator("#detail ol button").first.click()
    assert opened.get("tilesim.view.selected") == opened.get(f"tilesim.trace.cause[{row}]")


def test_the_critical_path_is_one_chain(opened: Opened) -> None:
    """The strip above the lanes has no gap, and the button dims what is not on it."""
    ends, starts = opened.get("[Array.from(tilesim.trace.pathEnd), Array.from(tilesim.trace.pathStart)]")
    assert [0, *ends[:-1]] == starts
    opened.page.get_by_role("button", name="critical path").click()
    assert opened.get("tilesim.view.only")
    assert opened.page.locator("#path").get_attribute("aria-pressed") == "true"


def test_the_page_has_its_tables(opened: Opened) -> None:
    """Utilisation, stalls, traffic, launches, tiling, and numbers of the target with marks and sources."""
    headings = opened.page.locator("h2").all_inner_texts()
    assert {"Critical path", "Where the time went", "Cores", "Traffic", "Roofline", "Launches"} <= set(
        headings
    )
    row = opened.page.locator("#numbers-of-the-target tr", has_text="clock_mhz").first.inner_text()
    assert "documented" in row
    assert "CANN" in row
