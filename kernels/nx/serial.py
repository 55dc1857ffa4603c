"""The serial backward, of which the page only says that the fast one agrees with it on integer values.

It is the direct loop: outputs set to zero, then for each output channel, output position and tap inside the input
dweight += dout x input and dinput += dout x weight; dbias += dout for each position.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from kernels.nx.arithmetic import Floats, add_input_gradient, add_weight_gradient, row_sums
from kernels.nx.geometry import Geometry
from kernels.nx.operands import Operand
from kernels.nx.steps import Loop, Step, numbers
from kernels.nx.work import Counter


def backward(g: Geometry, count: Counter, operands: dict[str, Operand]) -> Step:
    """One loop an output channel; the outputs are zero before. There is an output channel at least."""
    names = [name for name in ("dout", "input", "weight") if name in operands]
    made = [name for name in ("dinput", "dweight", "dbias") if name in operands]

    def whole(name: str) -> Floats:
        held = operands[name]
        return numbers(held.view((held.count,)))

    def values(co: int) -> None:
        dout = whole("dout").reshape(g.c_out, g.oh, g.ow)[co]
        whole("dbias")[co : co + 1] = row_sums(dout.reshape(1, -1))
        if g.reads_input:
            image = (g.c_in, g.h, g.w)
            taps = (g.c_out, g.c_in, g.kh, g.kw)
            add_weight_gradient(g, whole("dweight").reshape(taps)[co], dout, whole("input").reshape(image))
            add_input_gradient(g, whole("dinput").reshape(image), dout, whole("weight").reshape(taps)[co])

    def loops() -> Iterator[Loop]:
        reads, writes = (
            [operands[name].view((operands[name].count,)) for name in kind] for kind in (names, made)
        )
        for co in range(g.c_out):
            yield Loop(count.serial(g), (*reads, *writes), tuple(writes), partial(values, co))

    return Step("backward", loops, 2 * g.c_out * max(0, g.k) * g.m)
