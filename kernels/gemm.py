"""gemm: a matrix product, c = a x b, on a target of the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from kernels.davinci.gemm import DavinciGemm
from kernels.davinci.product_rules import Matrices
from kernels.dsp.product.kernel import Gemm, GemmTensors
from kernels.dsp.product.plan import plan_gemm
from kernels.dsp.product.tiling import GemmTiling, Problem
from kernels.errors import OperandError, ShapeError
from kernels.families import stored_in
from kernels.gradient_fields import SEARCHED, given_fields
from kernels.host_memory import require_host_memory
from kernels.operand_arrays import SHAPED, require_floating, require_given, require_shapes
from kernels.placement import chosen_cores, chosen_dtype, resolved_target
from kernels.reference.checking import seen
from kernels.reference.comparison import UNIT_ROUNDOFF, Comparison, compare, error_bound
from kernels.reference.references import gemm_reference
from kernels.search.products import subject_on_cubes, subject_on_dsp
from kernels.search.search import search
from simulator.machine import Checks, Machine
from simulator.memory.memories import fill_from
from simulator.results.run import Run
from simulator.values.numerics import Array
from simulator.values.numerics import dtype as named
from targets.schema import Target

FAMILIES = ("dsp", "davinci")
"""Families of targets that have the kernel."""

Sizes = tuple[int, int, int]


def gemm(
    a: npt.ArrayLike | None = None,
    b: npt.ArrayLike | None = None,
    *,
    c: npt.ArrayLike | None = None,
    accumulate: bool | None = None,
    trans_a: bool = False,
    trans_b: bool = False,
    shape: Sequence[int] | None = None,
    target: str | Target = "mt7004",
    cores: int | Sequence[int] | None = None,
    dtype: str | None = None,
    tiling: Mapping[str, object] | Literal["auto"] | None = None,
    numerics: bool = True,
    checks: Checks | None = None,
) -> Run:
    """A matrix product, c = a x b or c += a x b, and what it costs on a target.

    Args:
        a: [M, K], or [K, M] with trans_a.
        b: [K, N], or [N, K] with trans_b.
        c: [M, N], what the product is added to; it is not changed.
        accumulate: whether the product is added to c; default: where c is given.
        trans_a: whether a is given transposed.
        trans_b: whether b is given transposed.
        shape: (M, N, K); with numerics=False, no arrays are needed.
        target: a target's name, a TOML file, or a Target.
        cores: how many cores (the first ones), or which; default all.
        dtype: what the chip computes in and c has; default the arrays' own, "native" the chip's best.
        tiling: fields of the tiling to keep (`GemmTiling`; split may be "auto"); the others are chosen. "auto": what a
            search of timed runs finds best.
        numerics: compute c, or only time it.
        checks: how the run is watched.

    Returns:
        The Run: outputs {"c": [M, N]}, cycles, trace.

    Raises:
        ShapeError, OperandError, TilingError, TargetError, CapacityError: an argument is refused.
    """
    chip = _supported(resolved_target(target))
    given = {"a": a, "b": b, "c": c}
    arrays = {name: _matrix(name, value) for name, value in given.items() if value is not None}
    m, n, k = _sizes(arrays, trans_a, trans_b, shape)
    adds = c is not None if accumulate is None else accumulate
    if numerics:
        require_given(("a", "b", *("c" * adds)), arrays)
    computed = chosen_dtype(chip, dtype, arrays)
    fields = {} if tiling == "auto" else given_fields(tiling, SEARCHED)
    machine = Machine(chip, chosen_cores(chip, cores), numerics=numerics, checks=checks)
    sizes = (m, n, k, bool(trans_a), bool(trans_b), stored_in(computed))
    time = partial(_timed, (m, n, k), chip, machine.cores, computed, trans_a, trans_b, adds)
    if chip.family == "davinci":
        matrices = Matrices(*sizes, computed, chip, len(machine.cores))
        chosen = search([subject_on_cubes(matrices, time)], {}).tiling if tiling == "auto" else fields
        return _on_cubes(matrices, machine, arrays, chosen, adds)
    problem = Problem(*sizes, chip, len(machine.cores), adds)
    chosen = search([subject_on_dsp(problem, time)], {}).tiling if tiling == "auto" else fields
    return _on_dsp(problem, machine, arrays, chosen)


def _timed(
    sizes: Sizes,
    target: Target,
    cores: Sequence[int],
    dtype: str,
    trans_a: bool,
    trans_b: bool,
    adds: bool,
    given: Mapping[str, object],
) -> tuple[dict[str, object], int]:
    """A run of a search, timed only: all fields, and the cycles."""
    run = gemm(
        shape=sizes, target=target, cores=cores, dtype=dtype, trans_a=trans_a, trans_b=trans_b, accumulate=adds,
        tiling=given, numerics=False,
    )  # fmt: skip
    return run.tiling, run.cycles


def _on_dsp(
    problem: Problem, machine: Machine, arrays: Mapping[str, Array], given: Mapping[str, object] | None
) -> Run:
    """The product on the DSP family."""
    chosen = plan_gemm(problem, given or {})
    problem = problem.other_way() if chosen.swap else problem
    tensors = _allocate(problem, chosen, machine)
    if machine.numerics:
        require_host_memory(_host_bytes(tensors))
        _put_operands(problem, tensors, arrays)
    tensors.a.constant = tensors.b.constant = True
    machine.launch(Gemm(problem, chosen, tensors)).useful_macs = problem.m * problem.n * problem.k
    return _collect(problem, chosen, machine, tensors)


def require_capacity(
    shape: Sizes,
    target: Target,
    dtype: str,
    cores: Sequence[int],
    tiling: Mapping[str, object] | None = None,
    *,
    check: bool = False,
) -> None:
    """Refuse a product whose matrices fit neither the target's DDR nor this computer, before any is made.

    Raises:
        CapacityError: a memory is too small.
        TilingError: a field is not usable.
    """
    machine = Machine(target, cores, numerics=False)
    if target.family == "davinci":
        matrices = Matrices(*shape, False, False, stored_in(dtype), dtype, target, len(cores))
        require_host_memory(DavinciGemm.of(matrices, machine, tiling or {}).host_bytes)
        return
    problem = Problem(*shape, False, False, named(dtype), target, len(cores))
    chosen = plan_gemm(problem, tiling or {})
    tensors = _allocate(problem.other_way() if chosen.swap else problem, chosen, machine)
    m, n, k = shape
    require_host_memory(_host_bytes(tensors) + (16 * (m * k + k * n + 2 * m * n) if check else 0))


def check_gemm(
    run: Run, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike | None = None
) -> dict[str, Comparison]:
    """The product of a run against the reference, within the bound of rounding; also noted in the run.

    a, b and c are the operands as they were given; the reference takes them as the chip does, in its data type.

    Raises:
        OperandError: they are no matrices that fit each other and the run.
    """
    turned = {"trans_a": bool(run.shape["trans_a"]), "trans_b": bool(run.shape["trans_b"])}
    storage = stored_in(run.dtype).storage
    left, right = (seen(run.dtype, np.asarray(each).astype(storage, copy=False)) for each in (a, b))
    reference = gemm_reference(left, right, **turned)
    magnitude = gemm_reference(np.abs(left), np.abs(right), **turned)
    if c is not None:
        added = np.asarray(c).astype(storage, copy=False).astype(np.float64)
        reference, magnitude = reference + added, magnitude + np.abs(added)
    bound = error_bound(magnitude, reference, run.dtype, longest_chain(run), _unit(run))
    found = {name: compare(got, reference, bound) for name, got in run.outputs.items()}
    run.max_error = {name: c.max_error for name, c in found.items()}
    run.tolerance = {name: c.tolerance for name, c in found.items()}
    return found


def longest_chain(run: Run) -> int:
    """The additions that one element of c has been through, at most: a K step, the steps, the cores."""
    if run.target.family == "davinci":
        depth, length = int(str(run.shape["k"])), int(str(run.tiling["k"]))
        chunks = -(-depth // int(str(run.tiling["chunk"]))) + int(str(run.tiling["split_k"]))
        return (
            bool(run.shape.get("accumulate")) + min(length, depth) + -(-depth // length) + chunks + run.cores
        )
    k, panel, step = (int(str(value)) for value in (run.shape["k"], run.tiling["K_G"], run.tiling["K_A"]))
    if _unit(run) > UNIT_ROUNDOFF["fp32"]:
        return k + run.cores  # an accumulator of the operands' type rounds at every step of k
    full, rest = divmod(k, panel)
    return (
        bool(run.shape.get("accumulate"))
        + min(step, k)
        + full * -(-panel // step)
        + -(-rest // step)
        + run.cores
    )


def _unit(run: Run) -> float:
    """Unit roundoff of the sums of a run."""
    if run.dtype == "fp16" and "fp16_accumulate" in run.tiling:
        return UNIT_ROUNDOFF[str(run.tiling["fp16_accumulate"])]
    return UNIT_ROUNDOFF["fp64" if run.dtype == "fp64" else "fp32"]


def _supported(target: Target) -> Target:
    if target.family not in FAMILIES:
        what = "gemm is not computed on this family of targets"
        raise OperandError(
            what, argument="target", where=target.name, got=target.family, limit=", ".join(FAMILIES)
        )
    return target


def _matrix(name: str, value: npt.ArrayLike) -> Array:
    array = np.asarray(value)
    require_floating(name, array)
    if array.ndim != 2:
        raise OperandError(
            "an operand that is no matrix", argument=name, where=name, got=array.shape, limit="two axes"
        )
    return array


def _sizes(arrays: Mapping[str, Array], trans_a: bool, trans_b: bool, shape: Sequence[int] | None) -> Sizes:
    """(M, N, K), as said or as the arrays imply; the arrays must agree."""
    if shape is not None:
        m, n, k = _checked(shape)
    else:
        require_given(("a", "b"), arrays, SHAPED)
        (m, k), n = arrays["a"].shape[:: -1 if trans_a else 1], arrays["b"].shape[0 if trans_b else 1]
    wanted = {"a": (k, m) if trans_a else (m, k), "b": (n, k) if trans_b else (k, n), "c": (m, n)}
    require_shapes(arrays, wanted)
    return m, n, k


def _checked(shape: Sequence[int]) -> Sizes:
    if len(shape) != 3 or not all(type(size) is int and size >= 0 for size in shape):
        what = "sizes of a product that cannot be"
        raise ShapeError(what, argument="shape", got=repr(shape), limit="(M, N, K), each an integer from 0")
    m, n, k = shape
    return m, n, k


def _allocate(problem: Problem, tiling: GemmTiling, machine: Machine) -> GemmTensors:
    """Addresses in DDR for all that the product needs, before a number is made.

    Raises:
        CapacityError: DDR is too small.
    """
    p = problem
    left, right = ("b", "a") if p.swapped else ("a", "b")
    a = machine.tensor(left, (p.k, p.m) if p.trans_a else (p.m, p.k), p.operand)
    b = machine.tensor(right, (p.n, p.k) if p.trans_b else (p.k, p.n), p.operand)
    shape = (p.n, p.m) if p.swapped else (p.m, p.n)
    c = machine.tensor("c", shape, p.operand)
    total = p.sum_type(tiling)
    if total is p.operand or not p.partial(tiling):
        return GemmTensors(a, b, c, c)
    return GemmTensors(a, b, c, machine.tensor("c_partial", shape, total))


def _host_bytes(tensors: GemmTensors) -> int:
    """Bytes of this computer's memory: the operands as given and as stored, c twice, and partial sums."""
    scratch = 0 if tensors.partial is tensors.c else tensors.partial.bytes
    return 3 * (tensors.a.bytes + tensors.b.bytes + tensors.c.bytes) + scratch


def _put_operands(problem: Problem, tensors: GemmTensors, arrays: Mapping[str, Array]) -> None:
    left, right = ("b", "a") if problem.swapped else ("a", "b")
    fill_from(tensors.a, arrays[left])
    fill_from(tensors.b, arrays[right])
    if problem.accumulate:
        fill_from(tensors.c, arrays["c"].copy())


def _asked(problem: Problem) -> dict[str, object]:
    """The sizes of what was asked for."""
    p = problem.other_way() if problem.swapped else problem
    shape: dict[str, object] = {"m": p.m, "n": p.n, "k": p.k, "trans_a": p.trans_a, "trans_b": p.trans_b}
    return {**shape, "accumulate": True} if p.accumulate else shape


def _on_cubes(
    matrices: Matrices,
    machine: Machine,
    arrays: Mapping[str, Array],
    given: Mapping[str, object] | None,
    adds: bool,
) -> Run:
    """The product on the Da Vinci family."""
    made = DavinciGemm.of(matrices, machine, given or {}, adds=adds)
    if machine.numerics:
        require_host_memory(made.host_bytes)
        made.put(arrays)
    made.run()
    p = matrices
    asked: dict[str, object] = {"m": p.m, "n": p.n, "k": p.k, "trans_a": p.trans_a, "trans_b": p.trans_b}
    return Run(
        operator="gemm",
        target=p.target,
        cores=p.cores,
        dtype=p.rate,
        cycles=machine.cycles,
        launches=machine.launches,
        tiling=made.tiling.model_dump(),
        trace=machine.trace(),
        outputs={"c": made.take()} if machine.numerics else {},
        macs=machine.macs,
        useful_macs=p.m * p.n * p.k,
        peak_flops_per_cycle=made.flops_per_cycle * p.cores,
        shape={**asked, "accumulate": True} if adds else asked,
        numerics=machine.numerics,
    )


def _collect(problem: Problem, tiling: GemmTiling, machine: Machine, tensors: GemmTensors) -> Run:
    p = problem
    return Run(
        operator="gemm",
        target=p.target,
        cores=p.cores,
        dtype=p.operand.name,
        cycles=machine.cycles,
        launches=machine.launches,
        tiling=tiling.model_dump(),
        trace=machine.trace(),
        outputs={"c": tensors.c.numbers()} if machine.numerics else {},
        macs=machine.macs,
        useful_macs=p.m * p.n * p.k,
        peak_flops_per_cycle=p.spec(tiling).flops_per_cycle * p.cores,
        shape=_asked(p),
        numerics=machine.numerics,
    )
