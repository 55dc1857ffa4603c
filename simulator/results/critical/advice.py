"""One sentence on what a faster link would save, for summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simulator.results.critical.path import CONTENTION, STREAM, CriticalPath, critical_path
from simulator.results.critical.streams import cache_of, paths_of
from simulator.results.critical.what_if import LINK, Change, Estimate, shared_rates, what_if
from simulator.results.metrics import percent
from simulator.results.trace import COST_COLUMNS, Trace
from targets.schema import Target

if TYPE_CHECKING:
    from simulator.results.run import LaunchRecord

MOST_ROWS = 50_000
"""Instructions up to which a summary says it: a second of time."""


def advice(trace: Trace, target: Target, launches: Sequence[LaunchRecord], cycles: int) -> str:
    """What 20 % more of the link on which the critical path spends most would save; "" where that is not known.

    It is not said of very long traces, nor of those without costs.
    """
    known = COST_COLUMNS.keys() <= trace.columns().keys()
    if not known or not len(trace) or len(trace) > MOST_ROWS:
        return ""
    spent = link_cycles(critical_path(trace, target, launches, cycles))
    if not spent:
        return ""
    return sentence(what_if(trace, target, launches, cycles, Change(max(spent, key=spent.__getitem__), 1.2)))


def sentence(estimate: Estimate) -> str:
    """An estimate as in "ddr 20 % faster would save about 7 %"."""
    if estimate.saved < 0:
        return f"{estimate.change} would cost about {percent(-estimate.saved)} more time"
    return f"{estimate.change} would save about {percent(estimate.saved)}"


def link_cycles(path: CriticalPath) -> dict[str, int]:
    """Cycles of the path in which bytes flowed over each link to a memory of the chip, by the change that names it."""
    trace, target = path.trace, path.target
    link_of = {}
    for key, rows in paths_of(trace, target).items():
        near, far = cache_of(target, key), target.path[key].link
        for row in rows.tolist():
            missed = near is None or trace["fetched"][row] + trace["evicted"][row] > 0
            link_of[row] = far if missed or near is None else near.link
    total: Counter[str] = Counter()
    for segment in path.segments:
        if segment.reason in (STREAM, CONTENTION) and link_of.get(segment.row):
            total[LINK + link_of[segment.row]] += segment.end - segment.start
    return {link: total[link] for link in shared_rates(target) if total[link]}
