"""The search of a call by its operator: gradients and products by their own fields, other operators by runs alone."""

from __future__ import annotations

from dataclasses import replace

from kernels.davinci.product_rules import Matrices
from kernels.dsp.product.tiling import Problem
from kernels.registry import Call, Function
from kernels.search.convolutions import subjects_of
from kernels.search.products import subject_on_cubes, subject_on_dsp
from kernels.search.search import BUDGET, TileSearch, search
from kernels.search.subject import Fields, Given, Subject
from kernels.search.values import plain_options

GRADIENTS = ("dx", "dw", "db")


def search_call(call: Call, function: Function, budget: int = BUDGET) -> TileSearch:
    """The best tiling of a call; the fields of its tiling are kept.

    Args:
        call: what is to be run.
        function: runs a call.
        budget: runs at most.

    Raises:
        TilesimError: the call is refused whatever the tiling.
    """
    return search(_subjects(call, function), call.tiling, budget)


def _subjects(call: Call, function: Function) -> list[Subject]:
    """What is searched, each for itself."""

    def time(given: Given, grads: tuple[str, ...] = ()) -> tuple[Fields, int]:
        run = function(
            replace(call, tiling=dict(given), grads=grads or call.grads, numerics=False, check=False)
        )
        return run.tiling, run.cycles

    if call.operator in ("conv_backward", "conv_forward"):
        grads = ("y",) if call.operator == "conv_forward" else call.grads or GRADIENTS
        return subjects_of(call.shape, call.computed, call.target, call.cores, grads, time)
    if call.operator == "gemm":
        (m, n, k), cores = call.shape, len(call.cores)
        if call.target.family == "davinci":
            matrices = Matrices(m, n, k, False, False, call.kind, call.computed, call.target, cores)
            return [subject_on_cubes(matrices, time)]
        return [subject_on_dsp(Problem(m, n, k, False, False, call.kind, call.target, cores), time)]
    return [Subject(call.operator, time, lambda tiling: plain_options(tiling, ()))]
