"""What changed between two saved runs: what was asked for, the target, the tiling, the time, and where it went."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reports.load import SavedRun
from simulator.results.metrics import kind_cycles, percent
from simulator.results.run import plain
from simulator.results.summary import amount, duration
from targets.schema import Target

ABSENT = "(none)"

_ASKED = ("operator", "shape", "dtype", "cores")


@dataclass(frozen=True)
class Change:
    """One thing that is not the same.

    Attributes:
        part: asked, target, tiling, time, launch, engine, traffic or lost.
        name: of the field, number, launch, engine lane, memory or reason.
        before, after: as plain values; None where one run does not have it.
        unit: of numbers; empty for other values.
    """

    part: str
    name: str
    before: object
    after: object
    unit: str = ""

    @property
    def ratio(self) -> float | None:
        """After over before, minus 1; None where these are no numbers, or before is 0."""
        if isinstance(self.before, bool) or isinstance(self.after, bool):
            return None
        if isinstance(self.before, int | float) and isinstance(self.after, int | float) and self.before:
            return self.after / self.before - 1
        return None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "part": self.part,
            "name": self.name,
            "before": plain(self.before),
            "after": plain(self.after),
            "unit": self.unit,
            "change": self.ratio,
        }

    def cells(self) -> list[str]:
        """The row of a table: part, name, before, after, change in percent."""
        ratio = self.ratio if self.unit or self.part == "target" else None
        change = "" if ratio is None else f"{100 * ratio:+.2f} %"
        return [self.part, self.name, _text(self.before, self.unit), _text(self.after, self.unit), change]


@dataclass(frozen=True)
class Difference:
    """All changes from one run to another.

    Attributes:
        changes: what was asked, target, tiling and time first, then where the time went; the greatest first.
        before_us, after_us: time of the runs.
    """

    changes: tuple[Change, ...]
    before_us: float
    after_us: float

    @property
    def time_change(self) -> float:
        """Time after over time before, minus 1; infinite when it was 0 and is not."""
        if not self.before_us:
            return float("inf") if self.after_us else 0.0
        return self.after_us / self.before_us - 1

    def beyond(self, threshold: float) -> bool:
        """Whether the time changed by more than a share, either way."""
        return abs(self.time_change) > threshold

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON has."""
        record = {"time_change": self.time_change, "before_us": self.before_us, "after_us": self.after_us}
        return {**plain(record), "changes": [change.to_dict() for change in self.changes]}


def diff(before: SavedRun, after: SavedRun) -> Difference:
    """What changed from one saved run to another.

    Engines are compared by their busy cycles over all cores, traffic by bytes, and what the main compute engine lost
    by the cycles of all its lanes.
    """
    a, b = before.record, after.record
    changes = [
        *_changes("asked", _asked(a), _asked(b)),
        *_changes("target", _numbers(before.target), _numbers(after.target)),
        *_changes("tiling", a["tiling"], b["tiling"]),
        *_changes("time", {"cycles": before.cycles}, {"cycles": after.cycles}, "cycles"),
        *_changes("time", {"time": a["time_us"]}, {"time": b["time_us"]}, "us"),
        *_by_size("launch", _launches(before), _launches(after), "cycles"),
        *_by_size("engine", _engines(before), _engines(after), "cycles"),
        *_by_size("lost", _lost(before), _lost(after), "cycles"),
        *_by_size("traffic", _traffic(before), _traffic(after), "B"),
    ]
    return Difference(tuple(changes), float(a["time_us"]), float(b["time_us"]))


def _changes(
    part: str, before: Mapping[str, Any], after: Mapping[str, Any], unit: str = ""
) -> Iterator[Change]:
    """A change for each key whose value is not the same."""
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        if old != new:
            yield Change(part, name, old, new, unit)


def _by_size(part: str, before: Mapping[str, int], after: Mapping[str, int], unit: str) -> list[Change]:
    """Changes of numbers, the greatest first; what a run does not have is 0."""
    names = dict.fromkeys([*before, *after])
    both = [
        Change(part, name, before.get(name, 0), after.get(name, 0), unit)
        for name in names
        if before.get(name, 0) != after.get(name, 0)
    ]
    return sorted(both, key=lambda change: -abs(after.get(change.name, 0) - before.get(change.name, 0)))


def _numbers(target: Target) -> dict[str, object]:
    """Name and every value of a target by dotted path; what is not set is left out."""
    return dict(_leaves(target.model_dump(mode="json", exclude={"provenance"})))


def _leaves(table: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{key}.")
        elif value is not None:
            yield f"{above}{key}", value


def _asked(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: record[key] for key in _ASKED}


def _engines(saved: SavedRun) -> dict[str, int]:
    return kind_cycles(saved.trace, saved.target)


def _launches(saved: SavedRun) -> dict[str, int]:
    return _sums((launch.name, launch.cycles) for launch in saved.launches)


def _lost(saved: SavedRun) -> dict[str, int]:
    table = saved.metrics.stall_table
    if table is None:
        return {}
    return dict(zip(table.reasons, (int(cycles) for cycles in table.lost.sum(axis=0)), strict=True))


def _traffic(saved: SavedRun) -> dict[str, int]:
    sides = saved.metrics.traffic_bytes.items()
    return {f"{memory} {side}": size for memory, moved in sides for side, size in moved.items()}


def _sums(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for name, value in pairs:
        total[name] = total.get(name, 0) + value
    return total


def _text(value: object, unit: str) -> str:
    if value is None:
        return ABSENT
    if unit == "us" and isinstance(value, int | float):
        return duration(float(value))
    if unit == "B" and isinstance(value, int):
        return amount(value, "B")
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def sentence(difference: Difference) -> str:
    """One sentence: by how much the time changed, and which launch has most of it."""
    if not difference.changes:
        return "no difference"
    change = difference.time_change
    times = f"{duration(difference.before_us)} to {duration(difference.after_us)}"
    if not change:
        return f"the time is the same, {duration(difference.after_us)}"
    how = f"{percent(abs(change))} {'longer' if change > 0 else 'shorter'}"
    launch = next((c for c in difference.changes if c.part == "launch"), None)
    most = f"; {launch.name} changed most, {launch.cells()[4] or 'it is new'}" if launch else ""
    return f"{times}, {how}{most}"
