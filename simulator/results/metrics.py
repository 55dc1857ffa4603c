"""What a trace says about a run: busy times, traffic, what bounds it. Pure functions of its columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.results.intervals import busy_cycles
from simulator.results.issue import with_issue
from simulator.results.stalls import LAUNCH, NO_WORK, Span, StallTable, stall_table
from simulator.results.trace import Trace
from targets.schema import EngineSpec, Target

SCALAR = "SCALAR"


@dataclass(frozen=True)
class Balance:
    """How evenly the main compute engine is busy over the cores asked for.

    Attributes:
        engine: kind of the engine.
        least, mean, most: busy shares of the time of the cores with the least, the mean and the most.
        least_core, most_core: which cores these are.
        evenness: mean / most; 1 when all cores are busy for the same time.
    """

    engine: str
    least: float
    mean: float
    most: float
    least_core: int
    most_core: int
    evenness: float


@dataclass(frozen=True)
class Metrics:
    """All figures of one run; shares are of 1.

    Attributes:
        cycles: length of the run.
        cores_active: groups in which an engine other than SCALAR did something.
        main_engine: kind of the main compute engine, None when nothing ran.
        utilisation: busy share of each kind of engine of the target.
        traffic_bytes: {memory: {"read": bytes, "write": bytes}}; of a memory with a cache also those of the cache's
            link and of the link behind it.
        stalls: share of the main engine's time lost to each reason, the greatest first.
        stall_table: the same in cycles and by core; None when nothing ran.
        bound: one sentence.
        balance: None when nothing ran.
    """

    cycles: int
    cores_active: int
    main_engine: str | None
    utilisation: dict[str, float]
    traffic_bytes: dict[str, dict[str, int]]
    stalls: dict[str, float]
    stall_table: StallTable | None
    bound: str
    balance: Balance | None


@dataclass(frozen=True)
class _Whole:
    start: int
    end: int


def measure(trace: Trace, target: Target, cores: int, cycles: int, launches: Sequence[Span] = ()) -> Metrics:
    """All figures of a run on `cores` groups that took `cycles`; without launches, one lasts all the time.

    Raises:
        TilesimError: the trace has an engine that the target lacks, or a launch that is not in `launches`.
    """
    used = utilisation(trace, target, cores, cycles)
    table = stalls(trace, target, cores, cycles, launches)
    main, shares = (None, {}) if table is None else (table.engine, table.shares())
    return Metrics(
        cycles=cycles,
        cores_active=cores_active(trace, target),
        main_engine=main,
        utilisation=used,
        traffic_bytes={**traffic(trace), **cache_traffic(trace, target)},
        stalls=shares,
        stall_table=table,
        bound=bound(main, used, shares, {} if table is None else table.awaited),
        balance=None if table is None else balance(table),
    )


def engine_kinds(target: Target) -> list[str]:
    """Kinds of engines of a target, SCALAR first."""
    return list(dict.fromkeys(target.kind_of(lane) for lane in target.lanes()))


def utilisation(trace: Trace, target: Target, cores: int, cycles: int) -> dict[str, float]:
    """Busy cycles / (cycles x engines of that kind in the cores asked for), for each kind of engine."""
    busy = kind_cycles(trace, target)
    return {kind: n / max(1, cycles * _lanes(target, kind, cores)) for kind, n in busy.items()}


def kind_cycles(trace: Trace, target: Target) -> dict[str, int]:
    """Busy cycles of all lanes of each kind of engine of the target, summed over the cores.

    The scalar unit is busy while it issues, and at barriers.
    """
    total = dict.fromkeys(engine_kinds(target), 0)
    for lane, cycles in zip(trace.engines, busy_cycles(with_issue(trace)).sum(axis=0).tolist(), strict=True):
        total[target.kind_of(lane)] += cycles
    return total


def cores_per_group(target: Target) -> int:
    """Cores of all kinds in one group."""
    return target.cores_per_group


def _spec(target: Target, kind: str) -> EngineSpec:
    return next(spec for name, spec in target.engine.items() if name.upper() == kind)


def _cores_with(target: Target, kind: str, groups: int) -> int:
    if kind == SCALAR:
        return len(target.units(range(groups)))
    spec = _spec(target, kind)
    return len(target.units(range(groups), spec.kinds))


def _lanes(target: Target, kind: str, groups: int) -> int:
    """How many lanes of a kind of engine so many groups have."""
    return _cores_with(target, kind, groups) * (1 if kind == SCALAR else _spec(target, kind).count)


def traffic(trace: Trace) -> dict[str, dict[str, int]]:
    """Bytes that copies read from and wrote to each memory of the trace."""
    size = trace["bytes"]
    return {
        memory: {
            "read": int(size[trace["source"] == code].sum()),
            "write": int(size[trace["destination"] == code].sum()),
        }
        for code, memory in enumerate(trace.memories)
    }


def cache_traffic(trace: Trace, target: Target) -> dict[str, dict[str, int]]:
    """Bytes that were resident by direction, under the name of the cache's link, and what it fetched and wrote back.

    The latter go by the name of the link to the cached memory.
    """
    found: dict[str, dict[str, int]] = {}
    for memory, cache in target.cache.items():
        if memory not in trace.memories or "hit" not in trace.columns():
            continue
        code = trace.memories.index(memory)
        read, write = trace["source"] == code, trace["destination"] == code
        far = next(path.link for key, path in target.path.items() if memory in key.split("->"))
        hit, both = trace["hit"], read | write
        found[cache.link] = {"read": int(hit[read].sum()), "write": int(hit[write].sum())}
        found[far] = {"read": int(trace["fetched"][both].sum()), "write": int(trace["evicted"][both].sum())}
    return found


def main_engine(trace: Trace, target: Target) -> str | None:
    """The kind of engine, except SCALAR, with the most busy cycles of those that carry no bytes.

    When all carry bytes, the busiest; when nothing ran, None.
    """
    carried = np.bincount(trace["engine"], weights=trace["bytes"], minlength=len(trace.engines))
    carriers = {
        target.kind_of(lane) for lane, got in zip(trace.engines, carried.tolist(), strict=True) if got
    }
    busy = {kind: n for kind, n in kind_cycles(trace, target).items() if n and kind != SCALAR}
    candidates = {kind: n for kind, n in busy.items() if kind not in carriers} or busy
    return max(candidates, key=candidates.__getitem__, default=None)


def stalls(
    trace: Trace, target: Target, cores: int, cycles: int, launches: Sequence[Span] = ()
) -> StallTable | None:
    """What the main compute engine of `cores` groups waited for, by core and reason; None when nothing ran.

    Raises:
        TilesimError: the trace has a launch that is not in `launches`.
    """
    main = main_engine(trace, target)
    if main is None:
        return None
    codes = [code for code, lane in enumerate(trace.engines) if target.kind_of(lane) == main]
    looked_at = _cores_of(trace, target, main, codes, cores)
    spans = launches or [_Whole(0, cycles)]
    return stall_table(trace, main, codes, looked_at, _spec(target, main).count, cycles, spans)


def _cores_of(trace: Trace, target: Target, kind: str, codes: Sequence[int], groups: int) -> list[int]:
    """Cores that used an engine of a kind, and as many idle ones as make up those that have it."""
    used = set(np.unique(trace["core"][np.isin(trace["engine"], codes)]).tolist())
    kinds = None if kind == SCALAR else _spec(target, kind).kinds
    having = {unit.number for unit in target.units(range(target.groups), kinds)}
    idle = [core for core in asked_cores(trace, target, groups) if core in having - used]
    missing = max(0, _cores_with(target, kind, groups) - len(used))
    return sorted([*used, *idle[:missing]])


def asked_cores(trace: Trace, target: Target, groups: int) -> list[int]:
    """Ids of the cores that a run on so many groups asked for: those of the trace, then the lowest others."""
    seen, size = trace.cores(), target.cores_per_group
    used = {core // size for core in seen if core < target.groups * size}
    idle = [group for group in range(target.groups) if group not in used]
    asked = sorted([*used, *idle[: max(0, groups - len(used))]])
    return sorted({*seen, *(unit.number for unit in target.units(asked))})


def cores_active(trace: Trace, target: Target) -> int:
    """Groups in which an engine other than SCALAR did something; cores of a group have ids that follow.

    Cores in no group do not count.
    """
    scalar = [code for code, lane in enumerate(trace.engines) if lane == SCALAR]
    working = trace["core"][~np.isin(trace["engine"], scalar)]
    in_groups = working < target.groups * cores_per_group(target)
    return len(np.unique(working[in_groups] // cores_per_group(target)))


def balance(table: StallTable) -> Balance:
    """How evenly the engine of a stall table is busy over its cores."""
    shares = table.busy / max(1, table.cycles)
    least, most = int(shares.argmin()), int(shares.argmax())
    mean, peak = float(shares.mean()), float(shares[most])
    return Balance(
        engine=table.engine,
        least=float(shares[least]),
        mean=mean,
        most=peak,
        least_core=table.cores[least],
        most_core=table.cores[most],
        evenness=mean / peak if peak else 1.0,
    )


def bound(
    main: str | None,
    utilisation: Mapping[str, float],
    stalls: Mapping[str, float],
    awaited: Mapping[str, str] | None = None,
) -> str:
    """One sentence on what bounds a run: who is busiest, and what the main engine waits for most.

    `awaited`: the instruction that is meant by a wait for a lane, by the reason in `stalls`.
    """
    if main is None:
        return "nothing ran on any engine"
    others = {kind: share for kind, share in utilisation.items() if kind not in (SCALAR, main)}
    busiest = max(others, key=others.__getitem__, default=main)
    waits = _most_waited(stalls, awaited or {})
    if others.get(busiest, 0.0) <= utilisation[main]:
        return f"{main} is busy {percent(utilisation[main])} of the time" + (f"; {waits}" if waits else "")
    opening = f"{busiest} is busy {percent(others[busiest])} of the time"
    verb = waits.removeprefix("it ")
    return f"{opening}; {main} is busy {percent(utilisation[main])}" + (f" and {verb}" if waits else "")


def _most_waited(stalls: Mapping[str, float], awaited: Mapping[str, str]) -> str:
    """A clause on the greatest loss, empty when there is none."""
    if not stalls:
        return ""
    reason = max(stalls, key=stalls.__getitem__)
    share = percent(stalls[reason])
    if reason.startswith("waits for "):
        lane = reason.removeprefix("waits for ")
        what = f"{awaited[reason]} on {lane}" if reason in awaited else lane
        return f"it waits most for {what} ({share})"
    return f"it {_CLAUSES[reason]} ({share})"


_CLAUSES = {
    "a result": "waits most for results of other engines",
    "issue": "waits most for the issue of instructions",
    "engine": "waits most for its own previous instruction",
    "barrier": "waits most at barriers",
    "flag": "waits most for flags",
    LAUNCH: "loses most to the cost of launches",
    NO_WORK: "loses most to having no work",
}


def percent(share: float) -> str:
    """A share as text: "86 %", with a decimal below 10 unless it is whole."""
    value = 100 * share
    return f"{value:.1f} %".replace(".0 %", " %") if value < 9.95 else f"{value:.0f} %"
