"""The roofline of a run: how fast it was, beside what its arithmetic and each shared link allow.

A point lies at the useful operations for each byte that crossed a link, so that a run has a point for each link. What
is attainable there is min(peak, bytes a second x operations a byte): Williams, Waterman and Patterson, "Roofline",
CACM 52(4), 2009; with a line for each level of memory as in Ilic, Pratas and Sousa, IEEE CAL 13(1), 2014.
"""

from dataclasses import dataclass

from reports.links import link_bytes, link_rate, shared_links
from reports.load import SavedRun

ALL = "the run"


@dataclass(frozen=True)
class Point:
    """One piece of work, seen at one link.

    Attributes:
        name: of the launch, or `ALL`.
        link: the link that the bytes crossed.
        flops: useful operations, two a multiply-add.
        cycles: what it took.
        moved: bytes over the link.
    """

    name: str
    link: str
    flops: int
    cycles: int
    moved: int

    @property
    def intensity(self) -> float:
        """Useful operations a byte; infinite when nothing crossed the link."""
        return self.flops / self.moved if self.moved else float("inf")


@dataclass(frozen=True)
class Roofline:
    """The lines and points of a run; rates are of all the cores asked for.

    Attributes:
        clock_mhz: cycles a microsecond.
        peak: operations a cycle of the data type.
        rates: bytes a cycle of each link that can bound.
        points: those of the run first, then those of its launches with useful work.
        without: launches that have no useful work; their time is in the run's point.
    """

    clock_mhz: float
    peak: float
    rates: dict[str, float]
    points: tuple[Point, ...]
    without: tuple[str, ...]

    def gflops(self, flops_per_cycle: float) -> float:
        """A rate in GFLOP/s."""
        return flops_per_cycle * self.clock_mhz / 1e3

    def achieved(self, point: Point) -> float:
        """Useful GFLOP/s of a point."""
        return self.gflops(point.flops / max(1, point.cycles))

    def attainable(self, point: Point) -> float:
        """GFLOP/s that the peak and the point's link allow at its intensity."""
        return self.gflops(min(self.peak, self.rates[point.link] * point.intensity))

    def ceiling(self, name: str) -> tuple[str, float]:
        """The lowest line over the points of one name, "peak" or a link, and its GFLOP/s."""
        lines = [(self.gflops(self.peak), "peak")]
        own = [point for point in self.points if point.name == name]
        lines += [(self.attainable(point), point.link) for point in own]
        height, line = min(lines, key=lambda pair: pair[0])
        return line, height

    @property
    def names(self) -> list[str]:
        """What has points, the run first."""
        return list(dict.fromkeys(point.name for point in self.points))


def roofline(saved: SavedRun) -> Roofline | None:
    """The roofline of a whole run; None when nothing useful was computed or no peak is known.

    A launch of the same name as an earlier one counts with it.
    """
    peak, useful = float(saved.record.get("peak_flops_per_cycle") or 0), int(saved.record["useful_macs"])
    if not peak or not useful or not saved.cycles:
        return None
    links, moved = shared_links(saved.target), link_bytes(saved)
    work: dict[str, tuple[int, int, list[int]]] = {ALL: (useful, saved.cycles, moved.sum(axis=0).tolist())}
    for launch, own in zip(saved.launches, moved.tolist(), strict=False):
        macs, cycles, before = work.get(launch.name, (0, 0, [0] * len(links)))
        if launch.useful_macs:
            sums = [a + b for a, b in zip(before, own, strict=True)]
            work[launch.name] = (macs + launch.useful_macs, cycles + launch.cycles, sums)
    points = tuple(
        Point(name, link, 2 * macs, cycles, size)
        for name, (macs, cycles, sizes) in work.items()
        for link, size in zip(links, sizes, strict=True)
    )
    rates = {link: link_rate(saved.target, link, saved.cores) for link in links}
    without = dict.fromkeys(launch.name for launch in saved.launches if launch.name not in work)
    return Roofline(saved.target.clock_mhz, peak, rates, points, tuple(without))
