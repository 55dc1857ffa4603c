"""What a checked call of aclnnConvolutionBackward is going to do, and the workspace that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from kernels.aclnn.arguments import INPUTS, Arguments
from kernels.aclnn.checks import check_convolution_backward, compute_type, needed
from kernels.aclnn.device import Device, supported_product
from kernels.aclnn.errors import AclnnError, Status
from kernels.aclnn.objects import STORAGE, aclTensor
from kernels.shape.shapes import ConvShape
from simulator.values.numerics import dtype as named

ALIGN_BYTES = 512
"""Parts of a workspace begin at multiples of this: what device memory is read best at."""

BLOCK_BYTES = 32
"""C0 of the fractal layouts is as many elements as fit into a block of the chip's local memories."""

FRACTAL_ROWS = 16
"""Output channels of a fractal of weights."""

GRADIENTS = {"gradInput": "dx", "gradWeight": "dw", "gradBias": "db"}
OPERANDS = {"gradOutput": "dy", "input": "x", "weight": "w"}
"""Names of results and operands in the neutral operator."""


@dataclass(frozen=True)
class Plan:
    """A checked call.

    Attributes:
        device: where it runs.
        given: the arguments.
        shape: the geometry.
        compute: what the cube computes in: fp16, bf16, fp32 or hf32.
        workspace: bytes of each intermediate tensor, by its name.
    """

    device: Device
    given: Arguments
    shape: ConvShape
    compute: str
    workspace: dict[str, int]

    @classmethod
    def of(cls, given: Arguments, device: Device) -> Plan:
        """Check a call and plan it.

        Raises:
            AclnnError: the page does not allow it on this product.
        """
        product = supported_product(device)
        shape = check_convolution_backward(given, product)
        compute = compute_type(given, product)
        _require_simulated(given)
        parts = dict(_intermediates(given, shape, compute, converts=shape.ndim in product.converts))
        return cls(device, given, shape, compute, parts)

    @property
    def workspace_bytes(self) -> int:
        """All intermediate tensors, each rounded up to 512 bytes."""
        return sum(-(-size // ALIGN_BYTES) * ALIGN_BYTES for size in self.workspace.values())

    @property
    def grads(self) -> tuple[str, ...]:
        """The gradients asked for, in the neutral operator's names."""
        return tuple(GRADIENTS[name] for name in self.given.wanted)

    @property
    def operands(self) -> dict[str, aclTensor]:
        """The tensors whose values are needed, in the neutral operator's names."""
        return {OPERANDS[name]: self.given.tensor(name) for name in needed(self.given)}

    @property
    def numerics(self) -> bool:
        """Whether there are values to compute with."""
        return all(tensor.data is not None for tensor in self.operands.values())

    @property
    def storage(self) -> str:
        """The type that the operands of the cube are stored in: hf32 is fp32 until the cube reads it."""
        return "fp32" if self.compute == "hf32" else self.compute

    @property
    def converts(self) -> bool:
        """Whether tensors are brought into the device's layouts and back."""
        product = self.device.product
        return product is not None and self.shape.ndim in product.converts

    @property
    def empty(self) -> bool:
        """Whether there is nothing to multiply: no images, or no input channels."""
        return self.shape.n == 0 or self.shape.cin == 0


def _require_simulated(given: Arguments) -> None:
    """Refuse types that the product has and the simulator has not."""
    for name in INPUTS:
        if given.tensor(name).dtype not in STORAGE:
            raise AclnnError(
                "a type that is not simulated",
                argument=name,
                code=Status.ACLNN_ERR_INNER,
                got=str(given.tensor(name).dtype),
                limit=", ".join(STORAGE),
            )


def _intermediates(
    given: Arguments, shape: ConvShape, compute: str, *, converts: bool
) -> Iterator[tuple[str, int]]:
    """Every tensor between two launches: packed copies, casts, fractal layouts, and fp32 sums of the weights."""
    storage = "fp32" if compute == "hf32" else compute
    size = named(storage).size_bytes
    for name in needed(given):
        tensor = given.tensor(name)
        if not tensor.contiguous:
            yield f"{name}, packed", prod(tensor.shape) * named(STORAGE[tensor.dtype]).size_bytes
        if STORAGE[tensor.dtype] != storage:
            yield f"{name}, cast", prod(tensor.shape) * size
    products = [name for name in ("gradInput", "gradWeight") if name in given.wanted]
    if converts:
        yield from _fractals(given, shape, size)
    if "gradWeight" in products and (converts or STORAGE[given.tensor("weight").dtype] != "fp32"):
        yield "gradWeight, sums", _weight_elements(shape, size) * 4
    if "gradBias" in given.wanted and STORAGE[given.tensor("gradBias").dtype] != "fp32":
        yield "gradBias, sums", shape.cout * 4
    if "gradInput" in products and STORAGE[given.tensor("input").dtype] != storage:
        yield "gradInput, before its cast", prod(given.tensor("input").shape) * size


def _fractals(given: Arguments, shape: ConvShape, size: int) -> Iterator[tuple[str, int]]:
    """Operands and gradInput in NC1HWC0 and FRACTAL_Z, or their 3-D forms."""
    wanted = given.wanted
    used = needed(given)
    if "gradInput" in wanted or "gradWeight" in wanted:
        yield "gradOutput, NC1HWC0", _blocked_elements(given.tensor("gradOutput").shape, size) * size
    if "input" in used:
        yield "input, NC1HWC0", _blocked_elements(given.tensor("input").shape, size) * size
    if "weight" in used:
        yield "weight, FRACTAL_Z", _weight_elements(shape, size) * size
    if "gradInput" in wanted:
        yield "gradInput, NC1HWC0", _blocked_elements(given.tensor("input").shape, size) * size


def _blocked_elements(dims: tuple[int, ...], size: int) -> int:
    """Elements of a tensor whose channels are padded to whole blocks."""
    c0 = BLOCK_BYTES // size
    return dims[0] * -(-dims[1] // c0) * c0 * prod(dims[2:])


def _weight_elements(shape: ConvShape, size: int) -> int:
    """Elements of weights in fractals: both kinds of channels of a group padded, for all taps."""
    c0 = BLOCK_BYTES // size
    rows, columns = shape.w_shape[0] // shape.groups, shape.w_shape[1]
    return shape.groups * -(-rows // FRACTAL_ROWS) * FRACTAL_ROWS * -(-columns // c0) * c0 * shape.taps


assert set(OPERANDS) == set(INPUTS)  # noqa: S101  # two tables of one set of names
