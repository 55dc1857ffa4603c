"""The report: files, tables, failures."""

import subprocess
import sys
from pathlib import Path

import pytest

from reports import tables
from reports.load import load
from reports.report import page, report
from reports.utilisation import usage
from simulator.results.files import RunFileError
from targets.errors import TilesimError
from tests.unit.simulator.made import made_run, made_trace


def test_report_writes_its_files(tmp_path: Path) -> None:
    """The pictures and the page lie beside the run, and nothing else."""
    made_run().save(tmp_path)
    pictures = ["timeline.png", "utilisation.png", "traffic.png", "roofline.png"]
    names = [*pictures, "report.html", "trace.pftrace", "report.md"]
    assert report(tmp_path) == [tmp_path / name for name in names]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "run.json", "trace.parquet"])


def test_report_of_a_stretch_says_so(tmp_path: Path) -> None:
    """The page names the stretch of its pictures; a stretch outside the run writes nothing."""
    made_run().save(tmp_path)
    with pytest.raises(TilesimError, match="not a stretch"):
        report(tmp_path, 50, 500)
    assert not (tmp_path / "report.md").exists()
    report(tmp_path, 40, 80)
    text = (tmp_path / "report.md").read_text()
    assert text.count("Of cycles 40 to 80.") == 4
    assert text.count("Of the whole run.") == 5
    assert "of cycles 40 to 80, opens in" in text
    # DMA1's 240 bytes flow at 4 parts to cycle 40 and at 8 to 70, of 352: 80 cycles later there is no store yet
    assert f"| ddr | {round(240 * 240 / 352)} | 0 |" in text
    assert "| core0 | 0 % | 75 % | 0 % | 75 % |" in text


def test_failed_report_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the last file cannot be written, the pictures are the old ones too."""
    made_run().save(tmp_path)
    report(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(RunFileError, match="No space left"):
        report(tmp_path, 40, 80)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_page_of_a_run(tmp_path: Path) -> None:
    """The page begins with cycles and bound, embeds the pictures and has every table."""
    made_run().save(tmp_path)
    text = page(load(tmp_path))
    assert "whole run." not in text
    assert text.startswith(
        "# conv_backward on small: 100 cycles\n\nDMA is busy 24 % of the time; VPU is busy 20 %"
    )
    for picture in ("timeline", "utilisation", "traffic", "roofline"):
        assert f"({picture}.png)" in text
    for heading in ("Figures", "Cores", "Roofline", "Launches", "Instructions", "Numbers of the target"):
        assert f"\n## {heading}\n\n" in text


def test_page_of_an_empty_run(tmp_path: Path) -> None:
    """A run in which nothing happened has a page."""
    made_run(made_trace([]), cycles=0, launches=[], max_error=None, tolerance=None).save(tmp_path)
    assert "Nothing ran." in page(load(tmp_path))


def test_markdown_table() -> None:
    """Columns of numbers are set to the right, bars and line ends in cells do not break the table."""
    assert tables.markdown(("name", "count"), [("a|b\nc", 1234567), ("d", 8)]) == (
        "| name | count |\n| --- | ---: |\n| a\\|b c | 1,234,567 |\n| d | 8 |"
    )


def test_tables_by_hand(tmp_path: Path) -> None:
    """Instructions, traffic, stalls and cores of a run whose figures were computed on paper."""
    made_run().save(tmp_path)
    saved = load(tmp_path)
    assert tables.instructions_table(saved.trace).splitlines()[2:] == [
        "| load | 2 | 88 | 44.0 | 480 B |",
        "| product | 2 | 40 | 20.0 | 0 B |",
        "| store | 1 | 6 | 6.0 | 40 B |",
        "| barrier | 1 | 1 | 1.0 | 0 B |",
    ]
    assert tables.traffic_table(saved).splitlines()[2:] == [
        "| ddr | 480 | 40 | 5.200 |",
        "| am | 40 | 480 | 5.200 |",
    ]
    assert tables.stalls_table(saved).splitlines()[2:4] == ["| busy | 20 % |", "| no work | 50 % |"]
    assert tables.cores_table(usage(saved)).splitlines()[2:] == [
        "| core0 | 1 % | 40 % | 36 % | 58 % |",
        "| core1 | 0 % | 0 % | 0 % | 0 % |",
    ]
    assert tables.launches_table(saved).splitlines()[2:] == ["| conv dx | default | 2 | 0 | 100 | 0.10 us |"]


def test_target_table_has_marks_and_sources(tmp_path: Path) -> None:
    """Each number of the target has its mark and source beside it; a unit that is not used is left out."""
    made_run().save(tmp_path)
    rows = tables.target_table(load(tmp_path).target).splitlines()
    assert "| clock_mhz | 1000.0 | assumed | made for tests |" in rows
    assert "| path.ddr->am.start_cycles | 30 | assumed | made for tests |" in rows
    assert "| link.ddr.bytes_per_cycle | 8.0 | assumed | made for tests |" in rows
    assert not any("gigabytes_per_second" in row for row in rows)


def test_pyplot_is_never_loaded(tmp_path: Path) -> None:
    """Reports leave matplotlib's global state alone, and draw without a display or a warning."""
    made_run().save(tmp_path)
    code = (
        "import sys; from reports.report import report; assert 'matplotlib' not in sys.modules;"
        f"report({str(tmp_path)!r}); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={"PYTHONPATH": ":".join(sys.path), "HOME": str(tmp_path), "MPLCONFIGDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("False\n", "")
