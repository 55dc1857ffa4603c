"""What a checked call of aclnnDeformableConv2dBackward is going to do, the workspace that it needs, and doing it.

pack operands with strides -> convolution of the resampled features -> transposes -> scatter -> transposes -> unpack
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from kernels.aclnn.deform_arguments import INPUTS, OUTPUTS, DeformArguments
from kernels.aclnn.deform_checks import check_deform_backward
from kernels.aclnn.device import Device
from kernels.aclnn.objects import STORAGE, aclTensor
from kernels.aclnn.plan import ALIGN_BYTES
from kernels.davinci.deform.backward import DeformBackward, joined_planes, split_planes
from kernels.davinci.deform.product import is_product
from kernels.davinci.vectors import CastAll
from kernels.deform_backward import GRADIENTS, finished_run
from kernels.deform_points import DEFAULT_OFFSETS, model_offsets
from kernels.host_memory import require_host_memory
from kernels.shape.deform import DeformShape
from simulator.machine import Machine
from simulator.results.run import Run
from simulator.values.numerics import Array, DType
from simulator.values.numerics import dtype as named


@dataclass(frozen=True)
class DeformPlan:
    """A checked call.

    Attributes:
        device: where it runs.
        given: the arguments.
        shape: the geometry.
        workspace: bytes of each intermediate tensor, by its name.
    """

    device: Device
    given: DeformArguments
    shape: DeformShape
    workspace: dict[str, int]

    @classmethod
    def of(cls, given: DeformArguments, device: Device) -> DeformPlan:
        """Check a call and plan it.

        Raises:
            AclnnError: the page does not allow it on this product.
        """
        shape = check_deform_backward(given, device)
        return cls(device, given, shape, dict(_intermediates(given, shape)))

    @property
    def workspace_bytes(self) -> int:
        """All intermediate tensors, each rounded up to 512 bytes."""
        return sum(-(-size // ALIGN_BYTES) * ALIGN_BYTES for size in self.workspace.values())

    @property
    def storage(self) -> DType:
        """The type of all tensors, which the cube computes in as well."""
        return named(STORAGE[self.given.tensor("input").dtype])

    @property
    def numerics(self) -> bool:
        """Whether there are values to compute with."""
        return self.given.tensor("input").data is not None


def _intermediates(given: DeformArguments, shape: DeformShape) -> Iterator[tuple[str, int]]:
    """Every tensor between two launches: packed copies, the features' gradient, both layouts, and fp32 sums."""
    size = named(STORAGE[given.tensor("input").dtype]).size_bytes
    elements = {name: prod(given.tensor(name).shape) for name in (*INPUTS, *OUTPUTS)}
    for name in (*INPUTS, *OUTPUTS):
        if not given.tensor(name).contiguous:
            yield f"{name}, packed", elements[name] * size
    yield "gradient of offsetOut", elements["offsetOut"] * size
    if is_product(shape):
        yield "gradient of offsetOut, permuted", elements["offsetOut"] * size
    for name in ("input", "offset", "offsetOut", "gradInput", "gradOffset"):
        yield f"{name}, NHWC", elements[name] * size
    if size < 4:
        yield "gradInput, sums", elements["gradInput"] * 4
        yield "gradWeight, sums", elements["gradWeight"] * 4
        yield "gradBias, sums", shape.conv.cout * 4


def execute(plan: DeformPlan) -> Run:
    """Run a plan; the results are written when all of them are complete.

    Raises:
        CapacityError: a memory is too small.
    """
    machine = Machine(plan.device.target, plan.device.cores, numerics=plan.numerics)
    given, shape = plan.given, plan.shape
    arrays = _arrays(plan) if plan.numerics else {}
    offset = arrays["offset"] if arrays else model_offsets(shape, DEFAULT_OFFSETS)
    lowered = DeformBackward.of(shape, plan.storage, machine, GRADIENTS, {}, offset)
    if plan.numerics:
        require_host_memory(lowered.host_bytes)
        lowered.put(arrays)
    for name in INPUTS:
        _copied(machine, name, given.tensor(name), plan.storage)
    lowered.run()
    for name in OUTPUTS:
        _copied(machine, name, given.tensor(name), plan.storage)
    run = finished_run("aclnnDeformableConv2dBackward", lowered, plan.storage.name)
    if plan.numerics:
        _write(given, shape, run.outputs)
    return run


def _arrays(plan: DeformPlan) -> dict[str, Array]:
    """The operands by the neutral operator's names; offsets and mask apart."""
    data = {name: np.asarray(plan.given.tensor(name).data) for name in INPUTS}
    offset, mask = split_planes(plan.shape, data["offset"])
    assert mask is not None  # noqa: S101  # the operator is the modulated one
    made = {"dy": data["gradOutput"], "w": data["weight"], "x": data["input"], "features": data["offsetOut"]}
    return {**made, "offset": offset, "mask": mask}


def _copied(machine: Machine, name: str, tensor: aclTensor, kind: DType) -> None:
    """Launch the copy between a tensor with strides and a packed one; nothing where it is packed."""
    if tensor.contiguous:
        return
    source, out = (machine.tensor(f"{name}, {end}", tensor.shape, kind) for end in ("from", "to"))
    if machine.numerics and tensor.data is not None:
        source.data = np.ascontiguousarray(tensor.data, kind.storage)
    launch = CastAll(machine.target, out, source)
    launch.name = f"contiguous {name}"
    machine.launch(launch)


def _write(given: DeformArguments, shape: DeformShape, outputs: dict[str, Array]) -> None:
    """Copy the gradients into the tensors of the call."""
    planes = joined_planes(shape, outputs["doffset"], outputs["dmask"])
    found = {"gradInput": outputs["dx"], "gradWeight": outputs["dw"], "gradBias": outputs["db"]}
    for name, values in {**found, "gradOffset": planes}.items():
        data = given.tensor(name).data
        assert data is not None  # noqa: S101  # the checks refuse calls with some of the data
        data[...] = values
