"""The search for a tiling: all of a small space, else the planner's own candidates and steps from the best ones.

1. The default rule's tiling is run: the others are compared with it.
2. If the fields' values span few tilings, all are checked; if those that are legal are within the budget, all are run,
   and the result is exhaustive.
3. Seeds: tilings that the kernel's planner knows, by their estimate, a few of each class of words (split, places),
   and first of all its choice for an array memory of half the size: more memory is then not worse.
4. Steps: from the best tiling, one field after the other takes its neighbouring values, then those further away, with
   the other fields as they are; where the kernel refuses that, with those that were moved before, and its rule
   chooses the rest. A better tiling is where the next step starts. When no field helps, the search starts again from
   the next best tiling of another class.
5. A tiling that cannot beat the best (a true bound, where a kernel has one) is pruned. One whose estimate is far beyond
   the best tiling's waits until no step is left, and is run then, by its estimate, if the budget allows.
6. What is left of the budget goes to tilings spread evenly over the space (about half of the fields at a value, the
   others by the rule), four at a time, and to steps from the best of each four.

Nothing is drawn at random: the same call finds the same tiling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import count, islice, product
from math import prod
from typing import Any

from kernels.search.bench import Bench, Key, SpentError, key_of
from kernels.search.subject import Fields, Given, Options, Subject
from simulator.results.run import plain

BUDGET = 60
"""Runs that a search takes at most, unless it is told otherwise."""

MOST_CHECKED = 4096
"""Tilings that are checked one by one, where there are no more."""

SEED_SHARE = 3
"""One of so many runs may be spent on seeds."""

REACH = (1, 3, 1 << 30)
"""How far a step goes among the values of a field: further only where no nearer one helps."""

LOOKED_AT, TOGETHER = 100, 4
"""Far places that are looked at for new tilings, and how many are run before steps are taken from the best of them."""

PRIMES = tuple(n for n in range(2, 108) if all(n % divisor for divisor in range(2, n)))

A_CLASS = 2
"""Seeds of one class of words."""


@dataclass(frozen=True)
class Found:
    """The best tiling of one kernel, and how it was found.

    Attributes:
        name: of the kernel's result.
        best: every field of it.
        cycles: of the best.
        default_cycles: of the default rule's tiling.
        space: how many assignments the values of the fields have.
        legal: distinct tilings that the kernel allows, as far as they were looked at.
        refused: assignments that it refuses.
        pruned: legal tilings that were not run because of their bound or estimate.
        simulated: runs.
        exhaustive: whether every legal tiling of the space was run.
    """

    name: str
    best: Fields
    cycles: int
    default_cycles: int
    space: int
    legal: int
    refused: int
    pruned: int
    simulated: int
    exhaustive: bool

    @property
    def default_excess(self) -> float:
        """How much longer the default rule's tiling takes, as a share of the best."""
        return self.default_cycles / self.cycles - 1 if self.cycles else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {key: plain(value) for key, value in asdict(self).items()} | {
            "default_excess": self.default_excess
        }

    def __str__(self) -> str:
        looked = f"{self.simulated} simulated of {self.legal:,} legal tilings looked at"
        how = f"exhaustive: {self.simulated} simulated" if self.exhaustive else looked
        return (
            f"{self.name}: {self.cycles:,} cycles; the default rule takes {self.default_cycles:,},"
            f" {100 * self.default_excess:.1f} % more ({how}, {self.pruned:,} pruned, {self.refused:,} refused,"
            f" {self.space:,} assignments)"
        )


@dataclass(frozen=True)
class TileSearch:
    """The best tiling of a call, by the parts that are searched for themselves: `str` says how each was found.

    Attributes:
        tiling: every field, as the call takes them.
        parts: one a kernel.
    """

    tiling: Fields
    parts: tuple[Found, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"tiling": plain(self.tiling), "parts": [part.to_dict() for part in self.parts]}

    def __str__(self) -> str:
        return "\n".join(str(part) for part in self.parts)


def search(subjects: Iterable[Subject], fixed: Given, budget: int = BUDGET) -> TileSearch:
    """The best tiling of each subject; fields in `fixed` are kept, with the prefix of their subject.

    Raises:
        TilesimError: the call is refused whatever the tiling.
    """
    every, tiling, parts = list(subjects), dict[str, object](), []
    for number, subject in enumerate(every):
        share = budget // len(every) + (number < budget % len(every))
        mine = _own(subject, fixed, every)
        found = find(subject, mine, max(1, share))
        parts.append(found)
        tiling |= {subject.prefix + name: value for name, value in found.best.items() if name != "rule"}
    return TileSearch(tiling, tuple(parts))


def _own(subject: Subject, fixed: Given, every: Iterable[Subject]) -> Fields:
    """The fixed fields of a subject, without its prefix."""
    others = tuple(s.prefix for s in every if s.prefix and s is not subject)
    names = [
        name
        for name in fixed
        if name.startswith(subject.prefix) and not (not subject.prefix and name.startswith(others))
    ]
    return {name.removeprefix(subject.prefix): fixed[name] for name in names}


def find(subject: Subject, fixed: Given, budget: int) -> Found:
    """The best tiling of a subject within a budget of runs.

    Raises:
        TilesimError: the call is refused with the fixed fields.
    """
    bench = Bench(subject, budget)
    default = bench.start(fixed)
    options = subject.options(bench.best)
    options = {name: values for name, values in options.items() if name not in fixed}
    space, exhaustive = prod(len(values) for values in options.values()), False
    try:
        if space <= (MOST_CHECKED if subject.plan is not None else budget):
            exhaustive = _whole(bench, fixed, options)
        if not exhaustive:
            _steps(bench, fixed, options)
    except SpentError:
        pass
    return Found(
        subject.name, bench.best, bench.least, default, space, bench.legal, bench.refused, bench.pruned + bench.waiting,
        bench.simulated, exhaustive,
    )  # fmt: skip


def _whole(bench: Bench, fixed: Given, options: Options) -> bool:
    """Run every legal tiling of the space, if they are within the budget; returns whether it was all."""
    assigned = [dict(zip(options, values, strict=True)) for values in product(*options.values())]
    legal = [given for each in assigned if bench.tiling(given := {**fixed, **each}) is not None]
    if len({key_of(bench.tiling(given) or {}) for given in legal}) + 1 > bench.budget:
        return False
    for given in legal:
        bench.run(given, sure=True)
    return True


def _steps(bench: Bench, fixed: Given, options: Options) -> None:
    """Seeds, then steps from the best, then from the best of other classes, until nothing is left to try."""
    words = [name for name, values in options.items() if any(isinstance(v, str | bool) for v in values)]
    for seed in _seeds(bench.subject, fixed, words, bench.budget // SEED_SHARE):
        bench.run(seed)
    started: set[tuple[object, ...]] = set()
    while True:
        while (start := _next_start(bench, words, started)) is not None:
            _descend(bench, start, fixed, options)
        least = bench.least
        if not bench.run_waiting():
            break
        if bench.least < least:
            _descend(bench, bench.best, fixed, options)
    _elsewhere(bench, fixed, options)


def _elsewhere(bench: Bench, fixed: Given, options: Options) -> None:
    """Spend what is left on places far from the others: a few at a time, and steps from the best of them."""
    places = spread(options)
    for _ in range(bench.budget):
        found: list[tuple[int, Key]] = []
        for place in islice(places, LOOKED_AT):
            given = {**fixed, **place}
            tiling = bench.tiling(given)
            if tiling is None or key_of(tiling) in bench.cycles:
                continue
            cycles = bench.run(given)
            found += [(cycles, key_of(tiling))] if cycles is not None else []
            if len(found) == TOGETHER:
                break
        if not found:
            return
        _descend(bench, dict(min(found)[1]), fixed, options)


def spread(options: Options) -> Iterator[Fields]:
    """Assignments of about half of the fields, evenly over all of them: multiples of irrational numbers, modulo 1."""
    for number in count(1):
        place = {}
        for at, (name, values) in enumerate(options.items()):
            if (number * PRIMES[2 * at % len(PRIMES)] ** 0.5) % 1 < 0.5:
                share = (number * PRIMES[(2 * at + 1) % len(PRIMES)] ** 0.5) % 1
                place[name] = values[int(share * len(values))]
        yield place


def _seeds(subject: Subject, fixed: Given, words: list[str], most: int) -> Iterator[Fields]:
    """The planner's tilings by their estimate, a few of each class."""
    ranked = sorted(subject.seeds(fixed), key=lambda each: (each[0], key_of(each[1])))
    taken: dict[tuple[object, ...], int] = {}

    def chosen() -> Iterator[Fields]:
        for _, fields in ranked:
            kind = tuple(fields.get(name) for name in words)
            taken[kind] = taken.get(kind, 0) + 1
            if taken[kind] <= A_CLASS:
                yield fields

    return islice(chosen(), most)


def _next_start(bench: Bench, words: list[str], started: set[tuple[object, ...]]) -> Fields | None:
    """The best tiling of a class from which no steps were taken yet."""
    ranked = sorted((cycles, key) for key, cycles in bench.cycles.items() if cycles is not None)
    for _, key in ranked:
        fields = dict(key)
        kind = tuple(fields.get(name) for name in words)
        if kind not in started:
            started.add(kind)
            return fields
    return None


def _descend(bench: Bench, start: Fields, fixed: Given, options: Options) -> None:
    """Steps of one field at a time, to its neighbours first, as long as one helps."""
    walk, radius = _Walk(bench, start, bench.run(start) or 0, fixed), 0
    while radius < len(REACH):
        better = [walk.along(name, values, REACH[radius]) for name, values in options.items()]
        radius = 0 if any(better) else radius + 1


@dataclass
class _Walk:
    """Where a descent stands, and the fields that it moved."""

    bench: Bench
    here: Fields
    cycles: int
    fixed: Given
    moved: Fields = field(default_factory=dict)

    def along(self, name: str, values: list[object], reach: int) -> bool:
        """Step along a field while that helps; returns whether it did."""
        steps = 0
        while self._once(name, values, reach):
            steps += 1
        return steps > 0

    def _once(self, name: str, values: list[object], reach: int) -> bool:
        for value in _nearest(values, self.here.get(name), reach):
            found = _step(self.bench, self.here, {**self.fixed, **self.moved, name: value}, name)
            if found is not None and found[1] < self.cycles:
                self.here, self.cycles = found
                self.moved = {**self.moved, name: value}
                return True
        return False


def _step(bench: Bench, here: Fields, loose: Fields, name: str) -> tuple[Fields, int] | None:
    """The tiling with one field changed, or with the moved fields only where that is refused, and its cycles."""
    for given in ({**here, name: loose[name]}, loose):
        cycles = bench.run(given)
        tiling = bench.tiling(given)
        if cycles is not None and tiling is not None:
            return tiling, cycles
        if bench.subject.plan is None:
            return None
    return None


def _nearest(values: list[object], here: object, reach: int) -> list[object]:
    """Other values that are no further away, the neighbours first; words have no distance."""
    if here not in values:
        return values
    at = values.index(here)
    ordered = sorted(range(len(values)), key=lambda i: (abs(i - at), -i))
    far = reach if type(here) is int else len(values)
    return [values[i] for i in ordered if 0 < abs(i - at) <= far]
