"""The summary of a run: what it cost and what bounds it, for people and for programs."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulator.results.metrics import Balance, percent

_WIDTH = 104
_LABEL = 11  # characters of the column of labels
_MOST_LAUNCHES = 6
"""Names of launches up to which all are shown."""


@dataclass(frozen=True)
class Summary:
    """A run in about 15 lines of text, `str(summary)`, or as the object of `--json`, `to_dict()`.

    Attributes:
        record: the figures, as `Run.to_dict` makes them.
        title: the target's line for people.
        clock_mhz: the target's clock.
        groups: how many groups of cores the target has.
        balance: how evenly the cores are busy; None when nothing ran.
        advice: what a faster link would save, a sentence; empty where it is not known.
    """

    record: Mapping[str, Any]
    title: str
    clock_mhz: float
    groups: int
    balance: Balance | None = field(default=None)
    advice: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The figures by name; a copy."""
        return dict(self.record)

    def __str__(self) -> str:
        r = self.record
        where = f"{r['target']} ({self.title}), {r['cores']} of {self.groups} cores"
        head = f"{r['operator']} on {where}, {r['dtype']}"
        return "\n".join([head, *(line for label, text in self._lines() for line in _line(label, text))])

    def _lines(self) -> Iterator[tuple[str, str]]:
        r = self.record
        yield "shape", _pairs(r["shape"])
        yield "tiling", _pairs(r["tiling"])
        yield "time", f"{r['cycles']:,} cycles = {duration(r['time_us'])} at {self.clock_mhz:g} MHz"
        yield "work", _work(r["useful_macs"], r["macs"])
        yield "speed", speed(r["achieved_gflops"], r["peak_gflops"])
        yield "bound", r["bound"]
        yield "what if", self.advice
        yield "busy", ", ".join(f"{kind} {percent(share)}" for kind, share in r["utilisation"].items())
        yield "lost", ", ".join(f"{reason} {percent(share)}" for reason, share in r["stalls"].items())
        yield "traffic", _traffic(r["traffic_bytes"])
        yield "cores", cores_line(r["cores_active"], r["cores"], self.balance)
        yield "launches", _launches(r["launches"])
        yield "error", _errors(r["max_error"], r["tolerance"])


def _line(label: str, text: str) -> list[str]:
    """A labelled line, continued below the text; none for an empty one."""
    if not text:
        return []
    opening, below = f"  {label:<{_LABEL}}", " " * (_LABEL + 2)
    glued = re.sub(r"(?<=\d) (?=%|[TGMk]?B\b)", "\xa0", text)  # a number stays with its unit
    wrapper = textwrap.TextWrapper(_WIDTH, opening, below, break_on_hyphens=False)
    lines = [line.replace("\xa0", " ") for line in wrapper.wrap(glued)]
    if len(lines) > 3:
        lines = [*lines[:2], f"{lines[2]} ..."]
    return lines


def _pairs(values: Mapping[str, object]) -> str:
    return " ".join(f"{key}={_short(value)}" for key, value in values.items())


def _short(value: object) -> str:
    """A value without blanks; sizes as 3x3, names as n,h."""
    if isinstance(value, list) and value and not any(isinstance(item, list | dict) for item in value):
        return ("x" if all(isinstance(item, int) for item in value) else ",").join(map(str, value))
    return str(value).replace(" ", "")


def duration(us: float) -> str:
    """A time as text, in us, ms or s."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if us >= 10 * size:
            return f"{us / size:,.4g} {unit}"
    return f"{us:,.2f} us"


def amount(count: float, unit: str = "") -> str:
    """A number with four figures and a decimal prefix: "12.35 M", "1.5 GB"."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(count) >= size:
            return f"{count / size:.4g} {prefix}{unit}"
    return f"{count:.4g} {unit}".rstrip()


def _work(useful: int, executed: int) -> str:
    if not executed:
        return ""
    return f"{amount(useful)} MACs of the formula, taps in the padding included; {amount(executed)} executed"


def speed(achieved: float, peak: float) -> str:
    """The achieved rate against the peak, in GFLOP/s; empty when there is no peak."""
    if not peak:
        return ""
    return f"{achieved:,.1f} of {peak:,.1f} GFLOP/s ({percent(achieved / peak)} of the peak)"


def _traffic(traffic: Mapping[str, Mapping[str, int]]) -> str:
    parts = [
        f"{memory} {amount(moved['read'], 'B')} read, {amount(moved['write'], 'B')} written"
        for memory, moved in traffic.items()
        if moved["read"] or moved["write"]
    ]
    return "; ".join(parts)


def cores_line(active: int, asked: int, balance: Balance | None) -> str:
    """How many cores worked, and how evenly."""
    line = f"{active} of {asked} active"
    if balance is None or asked == 1:
        return line
    if percent(balance.least) == percent(balance.most):
        return f"{line}; {balance.engine} busy {percent(balance.mean)} on each"
    return (
        f"{line}; {balance.engine} busy {percent(balance.least)} (core {balance.least_core}) to "
        f"{percent(balance.most)} (core {balance.most_core}), mean {percent(balance.mean)}"
    )


def _launches(launches: Sequence[Mapping[str, Any]]) -> str:
    """Launches in their order, those of one name together; of too many names, those that take longest."""
    count = Counter[str](launch["name"] for launch in launches)
    cycles: Counter[str] = Counter()
    for launch in launches:
        cycles[launch["name"]] += launch["cycles"]
    longest = {name for name, _ in cycles.most_common(_MOST_LAUNCHES)}
    shown = [
        (f"{count[name]} x {name}" if count[name] > 1 else name) + f" {total:,}"
        for name, total in cycles.items()
        if name in longest
    ]
    rest = sum(times for name, times in count.items() if name not in longest)
    more = f" and {rest} more" if rest else ""
    return f"{len(launches)}: {', '.join(shown)}{more} (cycles)" if launches else ""


def _errors(errors: Mapping[str, float | str] | None, tolerance: Mapping[str, float | str] | None) -> str:
    limits = tolerance or {}
    parts = [
        f"{name} {_figure(error)}" + (f" (tolerance {_figure(limits[name])})" if name in limits else "")
        for name, error in (errors or {}).items()
    ]
    return ", ".join(parts)


def _figure(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"
