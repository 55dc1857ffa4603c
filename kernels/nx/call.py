"""The page's calls: its checks decide the return code, then its steps are launched one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from kernels.errors import OperandError
from kernels.host_memory import require_host_memory
from kernels.nx.elements import ELEMENT
from kernels.nx.geometry import ERR_ARGS, OK, Geometry, checked, runs
from kernels.nx.matmul_t import ForkedProduct
from kernels.nx.operands import Operand, Pointer, device_for, located
from kernels.nx.serial import backward
from kernels.nx.steps import Step, bias, col2im, im2col, transpose, zero
from kernels.nx.work import Counter
from simulator.device.device import Device
from simulator.errors import ProgramError
from simulator.machine import Machine
from simulator.results.run import Run
from simulator.values.numerics import Array

Steps = Iterator[Step | ForkedProduct]


def nx_f32_conv2d_backward_fast(
    input: Pointer,  # noqa: A002  # the page's name
    N: int,
    C_in: int,
    H: int,
    W: int,
    weight: Pointer,
    C_out: int,
    KH: int,
    KW: int,
    stride: int,
    pad: int,
    dout: Pointer,
    dinput: Pointer,
    dweight: Pointer,
    dbias: Pointer,
    *,
    workers: int | None = None,
) -> int:
    """The gradients of a convolution of one image, by im2col and two products that forked workers share.

    Arrays are packed: input and dinput [C_in, H, W], weight and dweight [C_out, C_in, KH, KW], dout [C_out, OH, OW],
    dbias [C_out], with OH = (H + 2 pad - KH) / stride + 1, divided as C does. Elements are 8 bytes that hold fp32.
    All three outputs are assigned. `workers` is how many are forked for a product, by default one a core.

    Returns:
        0, or 4 where the page's checks refuse: a stride below 1, N other than 1, an output without rows or columns.
        Nothing was written then. The run is the last of `Device.runs`.

    Raises:
        TilesimError: what a C caller cannot do, or would crash at: an argument that is no i64, a pointer at which no
            such array lies, an array that is too short. Nothing was written.
    """
    given = _named(input, weight, dout, dinput, dweight, dbias)
    sizes = (N, C_in, H, W, C_out, KH, KW, stride, pad)
    return _call("conv2d_backward_fast", _fast, given, sizes, workers)


def nx_f32_conv2d_backward(
    input: Pointer,  # noqa: A002  # the page's name
    N: int,
    C_in: int,
    H: int,
    W: int,
    weight: Pointer,
    C_out: int,
    KH: int,
    KW: int,
    stride: int,
    pad: int,
    dout: Pointer,
    dinput: Pointer,
    dweight: Pointer,
    dbias: Pointer,
) -> int:
    """The same gradients by one process, in a direct loop; arguments, checks and return codes are the fast one's.

    Raises:
        TilesimError: as the fast one.
    """
    given = _named(input, weight, dout, dinput, dweight, dbias)
    sizes = (N, C_in, H, W, C_out, KH, KW, stride, pad)
    return _call("conv2d_backward", _serial, given, sizes, 1)


def _named(*pointers: object) -> dict[str, object]:
    return dict(zip(("input", "weight", "dout", "dinput", "dweight", "dbias"), pointers, strict=True))


def _call(
    name: str,
    steps: Callable[[Geometry, Machine, dict[str, Operand]], Steps],
    given: Mapping[str, object],
    sizes: tuple[int, int, int, int, int, int, int, int, int],
    workers: int | None,
) -> int:
    """Check, locate, launch, note."""
    g = checked(*sizes)
    if g is None:
        return ERR_ARGS
    device = device_for(given)
    if device.target.host is None:
        raise OperandError(
            f"{name} does not run on this chip",
            argument="target",
            where=device.target.name,
            got=device.target.family,
            limit="targets of the family host",
        )
    machine = device.machine(range(_workers(device, workers)))
    if machine.numerics:
        require_host_memory(4 * (3 * runs(g.k) * g.m + 2 * sum(g.elements().values())))
    pointers = located(device, machine, given, g.elements())
    launch(machine, list(steps(g, machine, pointers.operands)))
    pointers.write_back()
    device.keep(_run(name, g, machine, pointers.operands), machine.cores)
    return OK


def _workers(device: Device, asked: object) -> int:
    """How many workers a product forks.

    Raises:
        OperandError: it is no number from 1 to that of the cores.
        ProgramError: the call is made inside `Device.spmd`.
    """
    if device.team is not None:
        raise ProgramError(
            "a call that forks workers of its own inside a team", where="spmd", remedy="call it outside"
        )
    most = device.target.groups
    if asked is None:
        return most
    if not isinstance(asked, int | np.integer) or isinstance(asked, bool) or not 1 <= asked <= most:
        raise OperandError(
            "a number of workers that the target has no cores for",
            argument="workers",
            where=device.target.name,
            got=repr(asked),
            limit=f"1 to {most}",
        )
    return int(asked)


def launch(machine: Machine, steps: Sequence[Step | ForkedProduct]) -> None:
    """Launch steps one after another."""
    for step in steps:
        record = machine.launch(step)
        record.useful_macs = step.useful_macs


def _fast(g: Geometry, machine: Machine, operands: dict[str, Operand]) -> Steps:
    """The page's steps; what its loops would not do even once is left out."""
    count, k, m, c_out = Counter.of(machine.target), runs(g.k), g.m, runs(g.c_out)
    scratch = {
        "colT": (k, m),
        "doutT": (m, c_out),
        "weightT": (k, c_out),
        "dcol": (m, k),
    }
    mapped = {name: mapping(machine, name, *shape) for name, shape in scratch.items() if 0 not in shape}
    if k and c_out:
        yield transpose("transpose weight", count, mapped["weightT"], operands["weight"], c_out, k)
    if c_out:
        yield transpose("transpose dout", count, mapped["doutT"], operands["dout"], c_out, m)
    if g.has_taps:
        yield im2col(g, count, mapped["colT"], operands.get("input"))
    if k and c_out:
        sizes = (c_out, m, k)
        yield ForkedProduct(
            "matmul_t dweight",
            count,
            operands["dweight"],
            operands["dout"],
            mapped["colT"],
            sizes,
            fresh=False,
        )
    if k:
        left, right = mapped.get("doutT"), mapped.get("weightT")
        yield ForkedProduct("matmul_t dcol", count, mapped["dcol"], left, right, (m, c_out, k), fresh=True)
    if c_out:
        yield bias(count, operands["dbias"], operands["dout"], c_out, m)
    if "dinput" in operands:
        yield zero("zero dinput", count, [operands["dinput"]])
    if g.reads_input:
        yield col2im(g, count, operands["dinput"], mapped["dcol"])


def mapping(machine: Machine, name: str, *shape: int) -> Operand:
    """A fresh mapping of the system, which is zero."""
    size = int(np.prod(shape, dtype=object))
    buffer = machine.tensor(name, (size,), ELEMENT)
    if machine.numerics:
        buffer.data = np.zeros(size, np.float32)
    return Operand(buffer, 0, size)


def _serial(g: Geometry, machine: Machine, operands: dict[str, Operand]) -> Steps:
    count = Counter.of(machine.target)
    outputs = [operands[name] for name in ("dinput", "dweight", "dbias") if name in operands]
    if outputs:
        yield zero("zero outputs", count, outputs)
    if g.c_out > 0:
        yield backward(g, count, operands)


def _run(name: str, g: Geometry, machine: Machine, operands: Mapping[str, Operand]) -> Run:
    """The record of the call; its outputs are copies."""
    shapes = {
        "dx": ("dinput", (1, g.c_in, g.h, g.w)),
        "dw": ("dweight", (g.c_out, g.c_in, g.kh, g.kw)),
        "db": ("dbias", (g.c_out,)),
    }
    outputs = {}
    for output, (name_of, shape) in shapes.items():
        if machine.numerics and name_of in operands:
            made = operands[name_of].view((operands[name_of].count,)).array().copy()
            outputs[output] = made.reshape(tuple(map(abs, shape)))  # two sizes may be negative
    return record(name, machine, g.to_dict(), outputs, 2 * runs(g.c_out) * runs(g.k) * g.m)


def record(
    name: str, machine: Machine, shape: dict[str, object], outputs: dict[str, Array], useful_macs: int
) -> Run:
    """What a machine has done for a call."""
    spec, workers = machine.target.host_core, len(machine.cores)
    return Run(
        operator=name,
        target=machine.target,
        cores=workers,
        dtype="fp32",
        cycles=machine.cycles,
        launches=machine.launches,
        tiling={"workers": workers},
        trace=machine.trace(),
        outputs=outputs,
        macs=machine.macs,
        useful_macs=useful_macs,
        peak_flops_per_cycle=2 / (spec.multiply_cycles + spec.add_cycles) * workers,
        shape=shape,
        numerics=machine.numerics,
    )
