"""Tables of a saved run in Markdown."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from reports.load import SavedRun
from reports.rates import traffic_between
from reports.roofline import roofline
from reports.utilisation import Usage
from simulator.results.metrics import percent
from simulator.results.summary import amount, cores_line, duration, speed
from simulator.results.trace import Trace
from targets.schema import Target


def markdown(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; columns that hold only numbers are set to the right, bars in cells are escaped."""
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [_all_numbers([row[column] for row in cells]) for column in range(len(headings))]
    rule = ["---:" if right else "---" for right in numeric]
    return "\n".join(f"| {' | '.join(row)} |" for row in [list(headings), rule, *cells])


def _cell(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")


def _all_numbers(cells: Sequence[str]) -> bool:
    """Whether what stands in a column are numbers, at least one."""
    return any(cells) and all(_is_number(cell) for cell in cells if cell)


def _is_number(text: str) -> bool:
    digits = text.removesuffix(" %").replace(",", "").replace(".", "").removeprefix("-")
    return digits.isdigit()


def figures_table(saved: SavedRun) -> str:
    """What was run, what it cost and how fast it was."""
    r, target = saved.record, saved.target
    rows = [
        ("operator", r["operator"]),
        ("target", f"{target.name}: {target.title}, {target.clock_mhz:g} MHz"),
        ("shape", _pairs(r["shape"])),
        ("data type", r["dtype"]),
        ("tiling", _pairs(r["tiling"])),
        ("cycles", r["cycles"]),
        ("time", duration(r["time_us"])),
        ("useful MACs", r["useful_macs"]),
        ("executed MACs", r["macs"]),
        ("speed", speed(r["achieved_gflops"], r["peak_gflops"])),
        ("bound", saved.metrics.bound),
        ("cores", cores_line(r["cores_active"], saved.cores, saved.metrics.balance)),
        *(
            ("error of " + name, _error(name, value, r["tolerance"]))
            for name, value in _known(r["max_error"])
        ),
        ("saved by", f"tilesim {r['tilesim_version'] or '(version unknown)'}"),
    ]
    return markdown(("figure", "value"), rows)


def _known(values: Mapping[str, object] | None) -> Iterable[tuple[str, object]]:
    return (values or {}).items()


def _error(name: str, value: object, tolerance: Mapping[str, object] | None) -> str:
    limit = (tolerance or {}).get(name)
    return f"{value}" if limit is None else f"{value} (tolerance {limit})"


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())


def launches_table(saved: SavedRun) -> str:
    """The launches of a run, in order."""
    rows = [
        (
            launch.name,
            launch.kind,
            launch.cores,
            launch.start,
            launch.cycles,
            duration(saved.target.us(launch.cycles)),
        )
        for launch in saved.launches
    ]
    return markdown(("launch", "kind", "cores", "from cycle", "cycles", "time"), rows)


def stalls_table(saved: SavedRun) -> str:
    """Where all the time of the main compute engine went, the cores asked for together."""
    main = saved.metrics.main_engine
    if main is None:
        return "Nothing ran."
    rows = [("busy", percent(saved.metrics.utilisation[main])), *_shares(saved.metrics.stalls)]
    return markdown((f"time of {main}", "share"), rows)


def _shares(shares: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    return ((name, percent(share)) for name, share in shares.items())


def engines_table(saved: SavedRun) -> str:
    """The busy share of each kind of engine, over the cores asked for."""
    return markdown(("engine", "busy"), _shares(saved.metrics.utilisation))


def traffic_table(saved: SavedRun, start: int | None = None, end: int | None = None) -> str:
    """What was read from and written to each memory in a stretch of the run, and the mean rate.

    Raises:
        TilesimError: the stretch is empty or outside the run.
    """
    first, last = saved.window(start, end)
    whole = (first, last) == (0, saved.cycles)
    moved = saved.metrics.traffic_bytes if whole else traffic_between(saved, first, last)
    rows = [
        (memory, sides["read"], sides["write"], f"{sum(sides.values()) / max(1, last - first):.3f}")
        for memory, sides in moved.items()
    ]
    return markdown(("memory", "bytes read", "bytes written", "bytes a cycle, both"), rows)


def roofline_table(saved: SavedRun) -> str:
    """Speed of the run and of its launches with useful work, beside what the peak and each link allow."""
    found = roofline(saved)
    if found is None:
        return "No useful work was done."
    rows = []
    for name in found.names:
        line, height = found.ceiling(name)
        own = [point for point in found.points if point.name == name]
        achieved = found.achieved(own[0]) if own else 0.0
        bytes_and_work = (
            cell for p in own for cell in (amount(p.moved, "B"), f"{p.intensity:,.4g}" if p.moved else "")
        )
        rows.append(
            (name, f"{achieved:,.1f}", *bytes_and_work, line, f"{height:,.1f}", percent(achieved / height))
        )
    heads = [head for link in found.rates for head in (f"over {link}", f"FLOP/byte of {link}")]
    table = markdown(("work", "GFLOP/s", *heads, "lowest line", "allows GFLOP/s", "reached"), rows)
    if not found.without:
        return table
    return f"{table}\n\nWithout useful work, but in the run's time: {', '.join(found.without)}."


def cores_table(usage: Usage) -> str:
    """The busy share of each engine lane, a row a core."""
    rows = (
        [label, *("" if np.isnan(share) else percent(float(share)) for share in shares)]
        for label, shares in zip(usage.labels, usage.busy, strict=True)
    )
    return markdown(("core", *usage.lanes), rows)


def instructions_table(trace: Trace) -> str:
    """Count, cycles and bytes of each instruction by name, those with the most cycles first."""
    names = len(trace.names)
    count = np.bincount(trace["name"], minlength=names)
    length = trace["end"] - trace["start"]
    cycles = np.bincount(trace["name"], weights=length, minlength=names).astype(np.int64)
    moved = np.bincount(trace["name"], weights=trace["bytes"], minlength=names).astype(np.int64)
    rows = [
        (
            trace.names[i],
            int(count[i]),
            int(cycles[i]),
            f"{cycles[i] / count[i]:.1f}",
            amount(int(moved[i]), "B"),
        )
        for i in np.argsort(-cycles, kind="stable")
        if count[i]
    ]
    return markdown(("instruction", "count", "cycles, summed", "cycles each", "moved"), rows)


def target_table(target: Target) -> str:
    """All numbers of a target by dotted path, with their marks and sources."""
    numbers = target.model_dump(mode="json", exclude={"provenance", "name", "title", "family"})
    rows = []
    for path, value in _leaves(numbers):
        mark = target.provenance.get(path)
        if value is not None:
            rows.append((path, str(value), mark.mark if mark else "", mark.source if mark else ""))
    return markdown(("number", "value", "mark", "source"), rows)


def _leaves(table: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    """The values below a table with their dotted paths."""
    for key, value in table.items():
        path = f"{above}{key}"
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}.")
        else:
            yield path, value
