"""Several images: what a caller of the page's call has to do, which takes one.

dweight and dbias are assigned by each call, so that a caller gives every image but the first a place of its own for
them and adds them up.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kernels.nx.call import launch, nx_f32_conv2d_backward, nx_f32_conv2d_backward_fast, record
from kernels.nx.elements import ELEMENT
from kernels.nx.geometry import ERR_ARGS, OK, checked
from kernels.nx.operands import Pointer, device_for, located
from kernels.nx.steps import add
from kernels.nx.work import Counter
from simulator.device.arrays import DeviceArray
from simulator.device.device import Device


def backward_batch(
    input: Pointer,  # noqa: A002  # as in the page's call
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
    serial: bool = False,
) -> int:
    """The gradients of N images: N calls, and N - 1 sums of dweight and of dbias, image after image.

    Arguments are those of the call, for N images: input [N, C_in, H, W], dout [N, C_out, OH, OW], dinput as input.
    `serial` makes the serial call, which has no workers.

    Returns:
        0, or 4 as the call, and for N below 1. The runs are the last ones of `Device.runs`: of each image, and behind
        each but the first that of its sums ("accumulate").

    Raises:
        TilesimError: as the call.
    """
    g = checked(1, C_in, H, W, C_out, KH, KW, stride, pad)
    if g is None or N < 1:
        return ERR_ARGS
    whole = {"input": input, "dout": dout, "dinput": dinput}
    totals = {"dweight": dweight, "dbias": dbias}
    device = device_for({**whole, **totals, "weight": weight})
    sizes = g.elements()
    parts = {name: device.array("ddr", max(1, sizes[name]), ELEMENT.name) for name in totals} if N > 1 else {}
    try:
        for image in range(N):
            at = {name: _moved(pointer, image * sizes[name]) for name, pointer in whole.items()}
            to: Mapping[str, Pointer] = parts if image else totals
            operands = (at["dout"], at["dinput"], to["dweight"], to["dbias"])
            shape = (C_in, H, W, weight, C_out, KH, KW, stride, pad)
            if serial:
                nx_f32_conv2d_backward(at["input"], 1, *shape, *operands)
            else:
                nx_f32_conv2d_backward_fast(at["input"], 1, *shape, *operands, workers=workers)
            if image:
                _accumulate(device, totals, parts, sizes)
    finally:
        for array in parts.values():
            device.free(array)
    return OK


def _moved(pointer: Pointer, elements: int) -> Pointer:
    """The pointer so many elements on."""
    if isinstance(pointer, np.ndarray):
        return pointer.reshape(-1)[elements:]
    address = pointer.address if isinstance(pointer, DeviceArray) else pointer
    return address + ELEMENT.size_bytes * elements


def _accumulate(
    device: Device,
    totals: Mapping[str, Pointer],
    parts: Mapping[str, DeviceArray],
    sizes: Mapping[str, int],
) -> None:
    """Totals += parts, by one process."""
    machine = device.machine((0,))
    counts = {name: sizes[name] for name in totals}
    to = located(device, machine, totals, counts)
    given = {name: to.also(device, name, parts[name], counts[name]) for name in to.operands}
    count = Counter.of(device.target)
    launch(machine, [add(count, to.operands[name], part) for name, part in given.items()])
    to.write_back()
    device.keep(record("accumulate", machine, dict(counts), {}, 0), machine.cores)
