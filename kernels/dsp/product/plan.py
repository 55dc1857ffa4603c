"""Choosing the tiling of a matrix product: sizes that fit the memories, around those that are given."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from kernels.dsp.places import default_look_ahead, places
from kernels.dsp.product.tiling import GemmTiling, Problem, checked, needs, turn_side
from kernels.errors import TilingError
from simulator.instructions import matmul_cycles
from simulator.timing.links import UNIT

MOST_ROWS = 252
"""Rows of a C tile at most by default, the largest M_A of the published blockings; longer tiles hide less."""

MOST_KERNEL_ROWS = 96
"""Rows of an A tile at most by default: beyond, the cost of a DMA launch is spread thin enough."""

MOST_WIDTHS = 4
"""Columns of a B tile at most by default, in widths of the micro-kernel (the published blockings reach 4)."""

NT_COLUMNS = 64
"""Columns of a B tile for kernels that take B transposed, the widest published blocking: narrower ones read A from GSM
more often than it can give to eight cores."""

PREFERENCE = 1.1
"""How much sooner rows must be done than columns: their panels are smaller, and B is read more often."""


def plan_gemm(problem: Problem, given: Mapping[str, object]) -> GemmTiling:
    """The tiling of a product: `given` fields are kept, the others fit around them.

    Raises:
        TilingError: a given field is not usable, contradicts another, or its tiles do not fit.
    """
    kept = {name: value for name, value in given.items() if (name, value) != ("split", "auto")}
    if kept.get("swap") is True:
        problem = problem.other_way()
    kept = {"kernel": default_kernel(problem), **default_look_ahead(problem.target), **kept}
    probe = checked({**_FILLER, **kept})
    _require_sums(problem, probe)
    _require_kernel(problem, probe)
    tiling = checked({**_Defaults(problem, probe, frozenset(kept)).values(), **kept})
    _require_order(tiling)
    if problem.trans_a and tiling.gsm_holds == "none":
        what = "a transposed A is turned on its way to GSM"
        raise TilingError(
            what, field="gsm_holds", got="none", limit="a", remedy="leave gsm_holds to its default"
        )
    _require_room(problem, tiling, kept)
    return tiling


_FILLER: dict[str, object] = {"M_G": 1, "K_G": 1, "M_A": 1, "K_A": 1, "N_A": 1, "M_S": 1, "split": "n"}


def default_kernel(problem: Problem) -> str:
    """A transposed B is taken as it is where the target has a micro-kernel for that."""
    return "nt" if problem.trans_b and f"{problem.operand.name}_nt" in problem.target.matmul else "nn"


def _require_sums(problem: Problem, probe: GemmTiling) -> None:
    """What is accumulated has the type of the sums."""
    total = problem.sum_type(probe)
    if problem.accumulate and total is not problem.operand:
        what, remedy = (
            "sums of another type than c, to which they are to be added",
            "use fp16_accumulate=fp16",
        )
        raise TilingError(
            what, field="fp16_accumulate", got=total.name, limit=problem.operand.name, remedy=remedy
        )


def _require_kernel(problem: Problem, probe: GemmTiling) -> None:
    """The target has the micro-kernel, and it is one for this product."""
    rate = problem.rate(probe)
    if probe.rows_along_k and not problem.trans_b:
        what = "the micro-kernel takes a transposed b, and b is not"
        raise TilingError(what, field="kernel", got=probe.kernel, limit="nn")
    if rate not in problem.target.matmul:
        what, known = "the target has no such micro-kernel", ", ".join(problem.target.matmul)
        raise TilingError(what, field="kernel", where=problem.target.name, got=rate, limit=known)


def _require_order(tiling: GemmTiling) -> None:
    """Tiles are cut from larger tiles, and those from panels."""
    pairs = (("M_S", tiling.M_S, "M_A", tiling.M_A), ("M_A", tiling.M_A, "M_G", tiling.M_G))
    for name, size, outer, limit in (*pairs, ("K_A", tiling.K_A, "K_G", tiling.K_G)):
        if size > limit:
            what = "a tile is larger than what it is cut from"
            raise TilingError(what, field=name, got=size, limit=f"{outer}={limit}")


def _require_room(problem: Problem, tiling: GemmTiling, given: Mapping[str, object]) -> None:
    """The buffers fit their memories."""
    owners = {"shared": 1 if tiling.together else len(problem.shares(tiling))}
    for role in ("scalar", "array", "shared"):
        memory = problem.target.role[role].memory
        room, align = problem.target.role_bytes(role), problem.target.memory[memory].align_bytes
        rings = [need for need in needs(problem, tiling) if need.role == role]
        wanted = owners.get(role, 1) * sum(need.bytes(align) for need in rings)
        if wanted <= room:
            continue
        levers = LEVERS[role]
        raise TilingError(
            "tiles do not fit a memory",
            field=next((name for name in levers if name in given), levers[0]),
            where=f"{memory} of {problem.target.name}",
            got=f"{wanted} bytes in {', '.join(need.name for need in rings)}",
            limit=f"{room} bytes",
            remedy=f"lower {' or '.join(levers)}",
        )


LEVERS = {
    "scalar": ("M_S", "K_A", "ahead"),
    "array": ("N_A", "M_A", "K_A", "c_buffers", "ahead"),
    "shared": ("M_G", "K_G", "K_A"),
}
"""The fields that a memory's buffers grow with."""


class _Defaults:
    """Sizes that fit a target, each from those that are given or chosen before it.

    As in the published blockings, half of AM is for B and half for C, K_A is as long as B tiles of the
    micro-kernel's width allow, and the panel of A takes all of GSM.
    """

    def __init__(self, problem: Problem, probe: GemmTiling, given: frozenset[str]) -> None:
        """`probe` holds the given fields, and anything for the others."""
        self.problem = problem
        self.probe = probe
        self.given = given
        self.item = problem.operand.size_bytes
        self.spec = problem.spec(probe)
        self.nt = probe.rows_along_k
        self.turns_b = problem.turns_b(probe)
        kernel = self.spec.granule_columns * len(self.spec.granule_cycles)
        self.width = -(-NT_COLUMNS // kernel) * kernel if self.nt else kernel

    def values(self) -> dict[str, object]:
        """All fields."""
        sizes = {
            "M_G": self.m_g,
            "K_G": self.k_g,
            "M_A": self.m_a,
            "K_A": self.k_a,
            "N_A": self.n_a,
            "M_S": self.m_s,
        }
        holds = "none" if self.direct else "a"
        return {**sizes, "split": self.split, "gsm_holds": holds, "c_buffers": self.c_buffers}

    def _or(self, name: str, chosen: int) -> int:
        given: int = getattr(self.probe, name)
        return given if name in self.given else max(1, chosen)

    def _at_most(self, chosen: int, *names: str) -> int:
        """Not larger than those of the named fields that are given."""
        limits: list[int] = [getattr(self.probe, name) for name in names if name in self.given]
        return min([chosen, *limits])

    def _room(self, role: str) -> int:
        """Bytes that a memory's part has, without what alignment may waste."""
        target = self.problem.target
        return target.role_bytes(role) - 16 * target.memory[target.role[role].memory].align_bytes

    @cached_property
    def split(self) -> Literal["n", "m"]:
        """Columns, unless rows are done sooner (where C is too narrow for the cores)."""
        if "split" in self.given:
            return self.probe.split
        return "m" if PREFERENCE * self._estimate("m") < self._estimate("n") else "n"

    def _estimate(self, split: Literal["n", "m"]) -> float:
        """Cycles of the vector unit or of what DDR delivers meanwhile, and before that of panels of A."""
        p = self.problem
        share = max((s for _, s in p.shares(self.probe.model_copy(update={"split": split}))), default=0)
        rows, columns = (p.m, share) if split == "n" else (share, p.n)
        a, b = p.m * p.k * self.item, p.k * p.n * self.item * (1 if split == "n" else p.cores)
        exposed = 0 if split == "m" and p.n <= self.width else a
        where = places(p.target)
        ports = p.cores * p.target.port_units(where.read_port)
        rate = min(p.target.link_units(where.main_link, p.cores), ports) / UNIT
        return max(matmul_cycles(self.spec, 1, rows, columns, p.k), (a + b - exposed) / rate) + exposed / rate

    @cached_property
    def share(self) -> int:
        """Columns or rows of the busiest core."""
        shares = self.problem.shares(self.probe.model_copy(update={"split": self.split}))
        return max((size for _, size in shares), default=1)

    @cached_property
    def owners(self) -> int:
        """Panels of A in GSM at a time."""
        return 1 if self.split == "n" else self.problem.cores

    @property
    def rows(self) -> int:
        """Rows of C that a core walks."""
        return max(1, self.problem.m if self.split == "n" else self.share)

    @property
    def columns(self) -> int:
        """Columns of C that a core walks."""
        return max(1, self.share if self.split == "n" else self.problem.n)

    @property
    def array_bytes(self) -> int:
        """Bytes of AM for B tiles and C tiles."""
        turning = 4 * turn_side(self.problem.operand) ** 2 * self.item if self.problem.trans_a else 0
        return self._room("array") - turning

    @property
    def b_bytes(self) -> int:
        """Bytes of one B tile: half of AM for all of them, or two thirds beside A."""
        room = self.array_bytes * 2 // 3 if self.nt else self.array_bytes // 2
        return room // (1 + self.probe.ahead + self.turns_b)

    @property
    def a_bytes(self) -> int:
        """Bytes of one A tile."""
        room = self.array_bytes // 4 if self.nt else self._room("scalar")
        return room // (1 + self.probe.ahead)

    @property
    def c_bytes(self) -> int:
        """Bytes for all C tiles at least."""
        return self._room("scalar") if self.nt else self.array_bytes // 2

    @cached_property
    def k_a(self) -> int:
        """As long as a B tile of the kernel's width, and an A tile of its rows, allow."""
        granule = self.spec.granule_columns
        wide = self._or("N_A", min(self.width, -(-self.columns // granule) * granule))
        tall = self._or("M_S", min(self.spec.kernel_rows, self.rows))
        most = min(self.b_bytes // (wide * self.item), self.a_bytes // (tall * self.item))
        if "M_G" in self.given:
            tall = min(self.probe.M_G, self.rows)
            most = min(most, self._room("shared") // (self.owners * tall * self.item))
        unit = max(1, places(self.problem.target).ddr(self.problem.target).burst_bytes // self.item)
        return self._or("K_A", self._at_most(even(self.problem.k, most, unit), "K_G"))

    @cached_property
    def n_a(self) -> int:
        """As wide as K_A leaves room for, in whole widths of the micro-kernel."""
        most = min(self.b_bytes // (self.k_a * self.item), (1 if self.nt else MOST_WIDTHS) * self.width)
        if "M_A" in self.given:
            tall = min(self.probe.M_A, self.rows)
            most = min(most, self.c_bytes // (tall * self._c_bytes(self.probe.ahead + 2)))
        unit = self.width if most >= self.width else self.spec.granule_columns
        return self._or("N_A", min(whole(most, unit), self.columns))

    @cached_property
    def m_s(self) -> int:
        """As many rows as SM holds, in whole kernels, and not more than C tiles can have."""
        most = min(self.a_bytes // (self.k_a * self.item), MOST_KERNEL_ROWS)
        buffers = self.probe.c_buffers if "c_buffers" in self.given else 1 + self.probe.ahead
        most = min(most, self._c_rows(buffers))
        most = self._at_most(whole(most, self.spec.kernel_rows), "M_A", "M_G")
        return self._or("M_S", min(most, self.rows))

    @cached_property
    def direct(self) -> bool:
        """Whether A passes by GSM: a core reads its own rows once, so that a panel would only delay them."""
        if "gsm_holds" in self.given:
            return self.probe.gsm_holds == "none"
        return self.split == "m" and self.columns <= self.n_a and not self.problem.trans_a

    @property
    def stationary(self) -> bool:
        """Whether a C tile stays in AM for all of K."""
        return self.direct and self.split == "m" and self.columns <= self.n_a

    @cached_property
    def k_g(self) -> int:
        """One K step, or all of K where a C tile stays in AM."""
        return self._or("K_G", max(self.k_a, self.problem.k) if self.stationary else self.k_a)

    def _c_bytes(self, buffers: int) -> int:
        """Bytes of AM for one element of C tiles."""
        total = self.problem.sum_type(self.probe)
        staged = 0 if total is self.problem.operand else 2 * self.item
        turned = (2 + self.probe.ahead) * total.size_bytes if self.problem.turns_c(self.probe) else 0
        return buffers * total.size_bytes + staged + turned

    def _c_rows(self, buffers: int) -> int:
        """Rows that so many C tiles can have."""
        b = (1 + self.probe.ahead + self.turns_b) * min(self.k_a, self.k_g) * self.n_a * self.item
        room = self.c_bytes if self.nt else max(0, self.array_bytes - b)
        return room // (self.n_a * self._c_bytes(buffers))

    @cached_property
    def c_buffers(self) -> int:
        """One more than loads run ahead; two more where C also comes back, if they fit."""
        least = 1 + self.probe.ahead
        back = self.problem.accumulate or self.problem.k > self.k_g
        more = least + 1 if self.probe.ahead and back else least
        fits = self._c_rows(more) >= self._or("M_A", self.m_s)
        return self._or("c_buffers", more if fits else least)

    @cached_property
    def m_a(self) -> int:
        """Rows of C tiles that fit beside B, equal ones; few where C is stored often, to store it early."""
        most = self._c_rows(self.c_buffers)
        if self.k_g <= self.k_a:
            most = min(most, MOST_ROWS)
        chosen = even(min(self.rows, self._panel_rows), whole(most, self.m_s), self.m_s)
        return self._or("M_A", self._at_most(max(chosen, self.m_s), "M_G"))

    @cached_property
    def _panel_rows(self) -> int:
        """Rows of a panel: as many as GSM holds, equal ones."""
        deep = max(1, min(self.k_g, self.problem.k))
        most = self.rows if self.direct else self._room("shared") // (self.owners * deep * self.item)
        return self._or("M_G", even(self.rows, whole(most, self.m_s), self.m_s))

    @cached_property
    def m_g(self) -> int:
        """A panel, not smaller than a C tile."""
        return self._or("M_G", max(self._panel_rows, self.m_a))


def whole(value: int, unit: int) -> int:
    """The value rounded down to whole units, if it has any."""
    return value // unit * unit or max(1, value)


def even(total: int, most: int, unit: int) -> int:
    """The size of equal pieces of at most `most`, in whole units."""
    if total <= most:
        return max(1, total)
    most = whole(most, unit)
    size = -(-total // -(-total // most))
    return min(most, -(-size // unit) * unit)
