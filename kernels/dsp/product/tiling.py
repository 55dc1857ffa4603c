"""The tiling of a matrix product on a DSP: plain, overridable data, and the buffers it asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernels.dsp.dx.geometry import pieces
from kernels.errors import unusable_tiling
from simulator.values.numerics import DType, dtype
from targets.schema import MatmulSpec, Target

TURN_BYTES = 256
"""Row length of the squares in which a transposed A is turned: whole bursts on both sides."""


class GemmTiling(BaseModel):
    """How gemm walks C[M, N] = A[M, K] B[K, N], with the names of the published blocking.

    Attributes:
        M_G, K_G: the panel of A that GSM holds at a time.
        M_A: rows of a C tile in AM.
        K_A: steps of k of one product; a panel of more is summed in AM before C leaves.
        N_A: columns of a B tile and a C tile in AM.
        M_S: rows of an A tile in SM.
        split: what the cores divide: columns of C (they load A together), or its rows (each loads its own).
        gsm_holds: panels of A, or nothing (A tiles come straight from DDR).
        kernel: the micro-kernel. `nn` has A in SM, B and C in AM; a transposed B is turned on the way. `nt` takes a
            transposed B as it is, A and B in AM and C in SM; `nt_merged` is a faster one for short k.
        swap: compute the transposed result from the operands in the other order, and store it transposed. M, N, A and
            B of the other fields are then those of the product that is computed.
        meet: cores wait for each other at every panel, though they load their own.
        c_buffers: C tiles in AM; loads of C run ahead no further than there are others.
        ahead: steps by which loads run ahead; SM and AM hold one tile of A and of B more than that.
        fp16_accumulate: what fp16 products are summed in.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    M_G: int = Field(ge=1)
    K_G: int = Field(ge=1)
    M_A: int = Field(ge=1)
    K_A: int = Field(ge=1)
    N_A: int = Field(ge=1)
    M_S: int = Field(ge=1)
    split: Literal["n", "m"]
    gsm_holds: Literal["a", "none"] = "a"
    kernel: Literal["nn", "nt", "nt_merged"] = "nn"
    swap: bool = False
    meet: bool = False
    c_buffers: int = Field(2, ge=1, le=10)
    ahead: int = Field(1, ge=0, le=8)
    fp16_accumulate: Literal["fp32", "fp16"] = "fp32"

    @property
    def together(self) -> bool:
        """Whether the cores load panels of A together."""
        return self.split == "n" and self.gsm_holds == "a"

    @property
    def meets(self) -> bool:
        """Whether there are barriers at every panel."""
        return self.together or self.meet

    @property
    def rows_along_k(self) -> bool:
        """Whether the micro-kernel takes B transposed, with A in AM and C in SM."""
        return self.kernel != "nn"


@dataclass(frozen=True)
class Problem:
    """What is multiplied, and on how many cores of what.

    Attributes:
        accumulate: the product is added to c.
        swapped: it is the transposed product of what was asked for: c is [n, m].
    """

    m: int
    n: int
    k: int
    trans_a: bool
    trans_b: bool
    operand: DType
    target: Target
    cores: int
    accumulate: bool = False
    swapped: bool = False

    def other_way(self) -> Problem:
        """The transposed product: the operands in the other order."""
        return replace(
            self,
            m=self.n,
            n=self.m,
            trans_a=not self.trans_b,
            trans_b=not self.trans_a,
            swapped=not self.swapped,
        )

    def turns_b(self, tiling: GemmTiling) -> bool:
        """Whether B tiles are turned in AM, because the micro-kernel cannot take them as they are."""
        return self.trans_b and not tiling.rows_along_k

    def turns_c(self, tiling: GemmTiling) -> bool:
        """Whether C tiles are turned in AM, because the micro-kernel cannot store them in the other order."""
        return self.swapped and not tiling.rows_along_k

    def loads_c(self, tiling: GemmTiling) -> bool:
        """Whether some C tile is read before it is computed."""
        return self.accumulate or self.partial(tiling)

    def sum_type(self, tiling: GemmTiling) -> DType:
        """What products are summed in: fp32, wider where the operands are, fp16 where the tiling says so."""
        if self.operand.name == "fp16":
            return dtype(tiling.fp16_accumulate)
        return self.operand if self.operand.name == "fp64" else dtype("fp32")

    def rate(self, tiling: GemmTiling) -> str:
        """The target's matrix rate."""
        half = self.operand.name == "fp16" and tiling.fp16_accumulate == "fp16"
        kernel = "" if tiling.kernel == "nn" else f"_{tiling.kernel}"
        return self.operand.name + ("_fp16" if half else "") + kernel

    def spec(self, tiling: GemmTiling) -> MatmulSpec:
        """The target's micro-kernel."""
        return self.target.matmul[self.rate(tiling)]

    def shares(self, tiling: GemmTiling) -> list[tuple[int, int]]:
        """(first, number) of the columns (split n) or rows (split m) of each core that has any."""
        if not self.m or not self.n:
            return []
        spec = self.spec(tiling)
        if tiling.split == "n":
            return slices(self.n, self.cores, spec.granule_columns)
        return slices(self.m, self.cores, spec.kernel_rows)

    def partial(self, tiling: GemmTiling) -> bool:
        """Whether C goes out and back between panels of K."""
        return self.k > tiling.K_G


def slices(total: int, cores: int, unit: int) -> list[tuple[int, int]]:
    """(first, number) a core: multiples of `unit`, as equal as they can be, the last one ragged."""
    units = -(-total // unit)
    cuts = pieces(units, -(-units // cores))
    return [(first * unit, min(number * unit, total - first * unit)) for first, number in cuts]


def strips(first: int, total: int, most: int) -> list[tuple[int, int]]:
    """(first, size) of pieces of `most`, the last one ragged."""
    return [(first + at, min(most, total - at)) for at in range(0, total, most)]


class Need(NamedTuple):
    """A ring of buffers that a tiling asks for, and the field to lower when it does not fit."""

    name: str
    role: str
    size: int
    kind: DType
    depth: int
    field: str
    common: bool = False

    def bytes(self, align: int) -> int:
        """Bytes of the ring, each buffer rounded up to the memory's alignment."""
        return self.depth * (-(-self.size * self.kind.size_bytes // align) * align)


def needs(problem: Problem, tiling: GemmTiling) -> Iterator[Need]:
    """The buffers of a core, as large as its largest tiles are."""
    p, t, total = problem, tiling, problem.sum_type(tiling)
    share = max((size for _, size in p.shares(t)), default=0)
    rows, columns = (p.m, share) if t.split == "n" else (share, p.n)
    rows, depth = min(t.M_G, rows), min(t.K_G, p.k)
    m, n, k = min(t.M_A, rows), min(t.N_A, columns), min(t.K_A, depth)
    a_role, c_role = ("array", "scalar") if t.rows_along_k else ("scalar", "array")
    yield Need("a", a_role, min(t.M_S, m) * k, p.operand, 1 + t.ahead, "M_S")
    yield Need("b", "array", k * n, p.operand, 1 if p.turns_b(t) else 1 + t.ahead, "K_A")
    if p.turns_b(t):
        yield Need("b_given", "array", n * k, p.operand, 1 + t.ahead, "K_A")
    yield Need("c", c_role, m * n, total, t.c_buffers, "M_A")
    if total is not p.operand:
        yield Need("c_out", c_role, m * n, p.operand, 2, "M_A")
    if p.turns_c(t):
        yield Need("c_turned", "array", m * n, total, 1, "M_A")
    if p.turns_c(t) and p.loads_c(t):
        yield Need("c_given", "array", m * n, total, 1 + min(t.ahead, t.c_buffers - 1), "M_A")
    if t.gsm_holds == "a":
        yield Need("panel", "shared", rows * depth, p.operand, 1, "M_G", common=t.together)
    if p.trans_a:
        yield Need("turn_in", "array", turn_side(p.operand) ** 2, p.operand, 2, "N_A")
        yield Need("turn_out", "array", turn_side(p.operand) ** 2, p.operand, 2, "N_A")


def turn_side(kind: DType) -> int:
    """Side of the squares in which A is turned, in elements."""
    return TURN_BYTES // kind.size_bytes


def checked(values: Mapping[str, object]) -> GemmTiling:
    """A tiling from plain values.

    Raises:
        TilingError: a field is unknown, of the wrong type or out of range.
    """
    try:
        return GemmTiling.model_validate(values)
    except ValidationError as error:
        raise unusable_tiling(error, GemmTiling.model_fields) from None
