"""Running a planned call: what the product launches for it, and the results in the tensors of the call.

pack operands with strides -> cast operands -> layouts, gradients of input and weights -> cast results
layouts, gradient of the bias from gradOutput as given
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernels.aclnn.objects import STORAGE, aclTensor
from kernels.aclnn.plan import GRADIENTS, OPERANDS, Plan
from kernels.aclnn.products import FLOAT
from kernels.conv_backward import NEEDS, require_ddr, tensors_of
from kernels.davinci.backward import Backward
from kernels.davinci.vectors import CastAll
from kernels.host_memory import require_host_memory
from simulator.machine import Machine
from simulator.memory.memories import Buffer, fill_from
from simulator.results.run import Run
from simulator.values.numerics import Array, DType
from simulator.values.numerics import dtype as named


@dataclass(frozen=True)
class Part:
    """Gradients that are computed from operands of one type; `rate` is what the cube computes in."""

    grads: tuple[str, ...]
    storage: DType
    rate: str


def parts_of(plan: Plan) -> list[Part]:
    """What is computed: the bias' gradient apart where gradOutput is not of the type that the cube reads."""
    products = tuple(grad for grad in plan.grads if grad != "db")
    given = STORAGE[plan.given.tensor("gradOutput").dtype]
    if "db" not in plan.grads:
        return [Part(products, named(plan.storage), plan.compute)] if products else []
    if given == plan.storage:
        return [Part(plan.grads, named(plan.storage), plan.compute)]
    apart = Part(("db",), named(given), given)
    return [Part(products, named(plan.storage), plan.compute), apart] if products else [apart]


def execute(plan: Plan) -> Run:
    """Run a plan; the results asked for are written when all of them are complete.

    Raises:
        CapacityError: a memory is too small.
    """
    machine = Machine(plan.device.target, plan.device.cores, numerics=plan.numerics)
    call, parts = _Launches(plan, machine), parts_of(plan)
    for part in parts:  # before a tiling is chosen for what cannot be
        require_ddr(tensors_of(plan.shape, part.grads), plan.device.target, part.storage)
    for part in parts:
        call.run(part)
    if plan.numerics:
        call.write()
    target = plan.device.target
    peak = target.cube[plan.compute].flops_per_cycle if plan.compute in target.cube else 0
    return Run(
        operator="aclnnConvolutionBackward",
        target=target,
        cores=len(machine.cores),
        dtype=plan.compute,
        cycles=machine.cycles,
        launches=machine.launches,
        tiling=call.tiling,
        trace=machine.trace(),
        outputs=call.outputs,
        macs=machine.macs,
        useful_macs=plan.shape.useful_macs * len({"dx", "dw"}.intersection(plan.grads)),
        peak_flops_per_cycle=peak * len(machine.cores),
        shape=plan.shape.to_dict(),
        numerics=machine.numerics,
    )


@dataclass
class _Launches:
    """The launches of one call, and what they leave."""

    plan: Plan
    machine: Machine
    tiling: dict[str, object] = field(default_factory=dict)
    outputs: dict[str, Array] = field(default_factory=dict)
    _packed: dict[str, Buffer] = field(default_factory=dict)

    def run(self, part: Part) -> None:
        """Prepare operands, compute the gradients of a part, and cast them to the types of their tensors."""
        plan, machine = self.plan, self.machine
        gradients = Backward.of(
            plan.shape,
            part.storage,
            machine,
            part.grads,
            {},
            rate=part.rate,
            include_layout=plan.converts and part.grads != ("db",),
            absent="zeros",
            unrounded=self._unrounded(part),
        )
        if machine.numerics:
            require_host_memory(gradients.host_bytes)
        names = [name for name, key in OPERANDS.items() if any(key in NEEDS[grad] for grad in part.grads)]
        arrays = {OPERANDS[name]: self._operand(name, part.storage) for name in names}
        if machine.numerics:
            gradients.put({key: array for key, array in arrays.items() if array is not None})
        gradients.run()
        self.tiling |= gradients.tiling
        found = gradients.take() if machine.numerics else {}
        for name in (name for name in plan.given.wanted if GRADIENTS[name] in part.grads):
            summed = GRADIENTS[name] in self._unrounded(part)
            self._result(name, named("fp32") if summed else part.storage, found.get(GRADIENTS[name]))

    def _unrounded(self, part: Part) -> frozenset[str]:
        """The weights' gradient is summed in fp32, and stays so where its tensor is FLOAT."""
        wanted = "dw" in part.grads and self.plan.given.tensor("gradWeight").dtype is FLOAT
        return frozenset({"dw"}) if wanted else frozenset()

    def _operand(self, name: str, storage: DType) -> Array | None:
        """An operand, packed and in the type that is computed with; None in a timing run."""
        tensor = self.plan.given.tensor(name)
        kind = named(STORAGE[tensor.dtype])
        if not tensor.contiguous and name not in self._packed:
            self._packed[name] = self._turned(f"contiguous {name}", tensor.data, tensor.shape, kind, kind)
        if kind is storage:
            return tensor.data
        made = self._turned(f"cast {name}", tensor.data, tensor.shape, kind, storage)
        return made.numbers() if self.machine.numerics else None

    def _result(self, name: str, storage: DType, made: Array | None) -> None:
        """A gradient in the type of its tensor."""
        tensor = self.plan.given.tensor(name)
        kind = named(STORAGE[tensor.dtype])
        if kind is not storage:
            cast = self._turned(f"cast {name}", made, tensor.shape, storage, kind)
            made = cast.numbers() if self.machine.numerics else None
        if made is not None:
            self.outputs[GRADIENTS[name]] = np.array(made)

    def _turned(
        self, name: str, values: Array | None, shape: tuple[int, ...], kind: DType, to: DType
    ) -> Buffer:
        """A tensor copied by a launch into another type, or packed in its own."""
        source, out = (
            self.machine.tensor(f"{name}, {end}", shape, t) for end, t in (("from", kind), ("to", to))
        )
        if values is not None:
            fill_from(source, values)
        if out.size:
            launch = CastAll(self.machine.target, out, source)
            launch.name = name
            self.machine.launch(launch)
        return out

    def write(self) -> None:
        """Copy the gradients into the tensors of the call."""
        for name in self.plan.given.wanted:
            _write(self.plan.given.tensor(name), self.outputs[GRADIENTS[name]])


def _write(tensor: aclTensor, values: Array) -> None:
    assert tensor.data is not None  # noqa: S101  # the checks refuse calls with some of the data
    tensor.data[...] = values
