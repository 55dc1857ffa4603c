"""Runs: figures, summaries, saved directories."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.results.files import RunFileError
from simulator.results.run import LaunchRecord, plain
from simulator.results.trace import Trace
from tests.unit.simulator.made import TWO_TILES, made_run, made_trace

KEYS = [
    *("operator", "target", "cores", "dtype", "shape", "tiling", "cycles", "time_us", "macs", "useful_macs"),
    *("achieved_gflops", "peak_gflops", "cores_active", "utilisation", "traffic_bytes", "bound", "stalls"),
    *("launches", "max_error", "tolerance"),
]

SUMMARY = """\
conv_backward on small (a small DSP), 2 of 4 cores, fp32
  shape      n=1 cin=16 kernel=3x3
  tiling     rows=4 order=n,h column=blocks
  time       100 cycles = 0.10 us at 1000 MHz
  work       1.8 k MACs of the formula, taps in the padding included; 2 k executed
  speed      36.0 of 384.0 GFLOP/s (9.4 % of the peak)
  bound      DMA is busy 24 % of the time; VPU is busy 20 % and loses most to having no work (50 %)
  busy       SCALAR 0.5 %, VPU 20 %, DMA 24 %
  lost       no work 50 %, waits for DMA0 15 %, launch 10 %, waits for DMA1 5 %
  traffic    ddr 480 B read, 40 B written; am 40 B read, 480 B written
  cores      1 of 2 active; VPU busy 0 % (core 1) to 40 % (core 0), mean 20 %
  launches   1: conv dx 100 (cycles)
  error      dx 1e-06 (tolerance 1e-05)"""


def test_record_has_the_promised_keys() -> None:
    """The object that `--json` prints has these keys and no others."""
    assert list(made_run().to_dict()) == KEYS


def test_record_figures() -> None:
    """The figures of a run of 100 cycles at 1,000 MHz, computed by hand."""
    record = made_run().to_dict()
    assert record["time_us"] == 0.1
    assert record["achieved_gflops"] == pytest.approx(2 * 1800 / 100)  # a cycle is a nanosecond
    assert record["peak_gflops"] == 384.0
    assert record["cores_active"] == 1
    assert record["launches"] == [
        {
            "name": "conv dx",
            "kind": "default",
            "start": 0,
            "end": 100,
            "cores": 2,
            "useful_macs": 1800,
            "cycles": 100,
            "time_us": 0.1,
        }
    ]
    assert record["utilisation"] == {"SCALAR": 0.005, "VPU": 0.2, "DMA": 0.235}
    assert record["traffic_bytes"]["ddr"] == {"read": 480, "write": 40}
    assert next(iter(record["stalls"].items())) == ("no work", 0.5)


def test_record_is_json() -> None:
    """NumPy numbers, tuples and infinities of a tiling or an error do not break the object."""
    run = made_run(tiling={"rows": np.int32(4), "split": (1, 2)}, max_error={"dx": float("nan")})
    record = json.loads(json.dumps(run.to_dict(), allow_nan=False))
    assert record["tiling"] == {"rows": 4, "split": [1, 2]}
    assert record["max_error"] == {"dx": "nan"}


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (np.float32(0.5), 0.5),
        (np.arange(3), [0, 1, 2]),
        ({1: (True, None)}, {"1": [True, None]}),
        (float("inf"), "inf"),
        (Path("a"), "a"),
    ],
)
def test_plain(value: object, result: object) -> None:
    """Values become those of JSON."""
    assert plain(value) == result


def test_summary_text() -> None:
    """The summary reads as it is shown here."""
    assert str(made_run().summary()) == SUMMARY


def test_summary_leaves_out_what_is_not_known() -> None:
    """A timing run without a reference has no line on errors; its record says None."""
    summary = made_run(max_error=None, tolerance=None, outputs={}, numerics=False).summary()
    assert "error" not in str(summary)
    assert summary.to_dict()["max_error"] is None


def test_summary_folds_long_lines() -> None:
    """Many tiling fields and launches stay within 104 columns and three lines each."""
    tiling: dict[str, object] = {f"field_{i}": i for i in range(60)}
    launches = [LaunchRecord(f"part {i}", "default", i, i + 1, 2) for i in range(100)]
    lines = str(made_run(tiling=tiling, launches=launches).summary()).splitlines()
    assert max(len(line) for line in lines) <= 104
    assert len(lines) <= 17
    assert "94 more" in str(made_run(launches=launches).summary())


def test_the_summary_shows_the_launches_that_take_longest() -> None:
    """Those of one name together, in their order; the short ones are counted."""
    cycles = {"turn": 3, "pack": 1, "conv dx": 50, "cast": 2, "sum": 4, "place": 5, "scatter": 900}
    launches = [LaunchRecord(name, "default", 0, length, 2) for name, length in cycles.items()]
    launches.append(LaunchRecord("conv dx", "default", 0, 10, 2))
    shown = "8: turn 3, 2 x conv dx 60, cast 2, sum 4, place 5, scatter 900 and 1 more (cycles)"
    assert shown in str(made_run(launches=launches).summary())


def test_summary_of_an_empty_run() -> None:
    """A call that did nothing can be printed."""
    run = made_run(made_trace([]), cycles=0, macs=0, useful_macs=0, launches=[])
    assert "nothing ran on any engine" in str(run.summary())


def test_gradients_by_name() -> None:
    """Outputs are attributes, None when absent."""
    run = made_run()
    assert run.dx is run.outputs["dx"]
    assert run.dw is None
    assert run.db is None


def test_save_writes_record_trace_and_target(tmp_path: Path) -> None:
    """The directory holds the figures, the trace and the target's numbers with marks, and nothing else."""
    run = made_run()
    run.save(tmp_path / "new" / "out")
    saved = json.loads((tmp_path / "new" / "out" / "run.json").read_text())
    assert {key: saved[key] for key in KEYS} == run.to_dict()
    assert (saved["format"], saved["format_version"]) == ("tilesim-run", 1)
    assert saved["tilesim_version"] is None or saved["tilesim_version"][0].isdigit()
    assert saved["target_numbers"]["clock_mhz"] == 1000.0
    assert saved["target_numbers"]["provenance"]["clock_mhz"] == {
        "mark": "assumed",
        "source": "made for tests",
    }
    assert saved["trace"] == {"file": "trace.parquet", "rows": 6, "hash": run.trace.hash()}
    assert Trace.read(tmp_path / "new" / "out" / "trace.parquet") == run.trace
    assert sorted(path.name for path in (tmp_path / "new" / "out").iterdir()) == ["run.json", "trace.parquet"]


def test_save_is_reproducible(tmp_path: Path) -> None:
    """Two equal runs are saved as equal bytes, the second over the first too."""
    for name in ("a", "b", "a"):
        made_run().save(tmp_path / name)
    for file in ("run.json", "trace.parquet"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_save_refuses_a_file(tmp_path: Path) -> None:
    """A path that is a file, or leads through one, is refused by name and left alone."""
    (tmp_path / "out").write_text("precious")
    for path in (tmp_path / "out", tmp_path / "out" / "below"):
        with pytest.raises(RunFileError, match=r"is saved in a directory: .*out.*; name a directory"):
            made_run().save(path)
    assert (tmp_path / "out").read_text() == "precious"


@pytest.mark.parametrize("failing", ["trace.parquet", "run.json"])
def test_failed_save_leaves_the_old_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """When either file cannot be written, both old files stay, whole, and no temporary one remains."""
    made_run().save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*_: object, **__: object) -> Any:
        raise OSError(28, "No space left on device")

    owner, method = (Trace, "write_in_place") if failing == "trace.parquet" else (Path, "write_text")
    monkeypatch.setattr(owner, method, fail)
    with pytest.raises(RunFileError, match="No space left"):
        made_run(made_trace(TWO_TILES[:3]), cycles=70).save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_metrics_are_computed_once() -> None:
    """Summary, record and saving share one pass over the trace."""
    run = made_run()
    assert run.metrics is run.metrics
