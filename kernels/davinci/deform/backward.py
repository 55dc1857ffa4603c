"""Any subset of the gradients of a deformable convolution, composed as the vendor does.

The convolution of the resampled features (its stride is its kernel) gives the gradients of features, weights and bias,
that of the features by a matrix product where the vendor makes it one (`kernels/davinci/deform/product.py`);
x, the offsets and the gradient of the features are turned channel last; the scatter gives the gradients of x, offsets
and masks, which are turned back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from kernels.davinci.backward import Backward
from kernels.davinci.deform.product import FeatureProduct, is_product
from kernels.davinci.deform.scatter import DeformScatter, Tensors
from kernels.davinci.deform.tilings import split_tiling
from kernels.davinci.deform.transpose import Transpose
from kernels.davinci.space import kind_with
from kernels.davinci.vectors import CastAll, MemSet
from kernels.deform_points import Points, resampled
from kernels.shape.deform import THROUGH_FEATURES, DeformShape
from kernels.shape.layout import channel_last
from simulator.machine import Machine
from simulator.memory.memories import Buffer, fill_from
from simulator.values.numerics import Array, DType, dtype


@dataclass
class DeformBackward:
    """The gradients of one call."""

    shape: DeformShape
    operand: DType
    machine: Machine
    grads: tuple[str, ...]
    points: Points
    conv: Backward
    elements: int
    ordered: bool = False
    product: FeatureProduct | None = None
    held: dict[str, Buffer] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        shape: DeformShape,
        operand: DType,
        machine: Machine,
        grads: tuple[str, ...],
        given: Mapping[str, object],
        offset: Array,
        *,
        rate: str | None = None,
        deterministic: bool = False,
    ) -> DeformBackward:
        """Choose tilings and addresses, before a number is made.

        Args:
            shape: the geometry.
            operand: what tensors are stored in.
            machine: where it runs.
            grads: which gradients.
            given: fields of the tilings to keep: those of the convolution, and scatter.elements.
            offset: [N, 2 x points, *out]; they say which places the scatter touches.
            rate: what the cube computes in, where it is not the stored type.
            deterministic: cores make their additions to dx one after the other.

        Raises:
            TilingError: a field is not usable, or nothing fits with it.
            CapacityError: main memory is too small.
        """
        scattered = any(grad in THROUGH_FEATURES for grad in grads)
        of_conv = tuple(grad for grad in grads if grad in ("dw", "db"))
        fields, elements = split_tiling(given, machine.target)
        product = None
        if scattered and is_product(shape):
            plain, fields = _by_gradient(fields)
            product = FeatureProduct.of(shape, operand, machine, rate or operand.name, plain)
        elif scattered:
            of_conv = ("dx", *of_conv)
            fields = {**_whole_chip(shape, operand, machine, rate, fields), **fields}
        conv = Backward.of(shape.features, operand, machine, of_conv, fields, rate=rate)
        moved = offset.astype(operand.storage, copy=False)
        made = cls(shape, operand, machine, grads, Points.of(shape, moved), conv, elements, deterministic)
        made.product = product
        if scattered:
            made._allocate()
        return made

    @property
    def _vector_cores(self) -> int:
        """Vector cores of the groups of the call."""
        machine = self.machine
        return len(machine.target.units(machine.cores, (kind_with(machine.target, "vector"),)))

    @property
    def scattered(self) -> bool:
        """Whether the scatter runs."""
        return bool(self.held)

    @property
    def _planes(self) -> tuple[int, int, int]:
        """Images, planes x points, and positions of the offsets."""
        conv = self.shape.conv
        return conv.n, (3 if self.shape.masked else 2) * self.shape.points, prod(conv.out)

    def _allocate(self) -> None:
        """Tensors of both layouts; the features' gradient lies where the convolution leaves it."""
        conv, features = self.shape.conv, self.shape.features
        sizes = {"x": conv.x_shape, "dx": conv.x_shape, "offset": self._planes, "doffset": self._planes}
        kinds = dict.fromkeys(sizes, self.operand)
        sizes |= {"x_last": channel_last(conv.x_shape), "dx_last": channel_last(conv.x_shape)}
        sizes |= {"features_last": channel_last(features.x_shape)}
        sizes |= {"offset_last": channel_last(self._planes), "doffset_last": channel_last(self._planes)}
        if self.operand.name != "fp32":
            sizes["dx_sums"], kinds["dx_sums"] = channel_last(conv.x_shape), dtype("fp32")
        for name, size in sizes.items():
            self.held[name] = self.machine.tensor(name, size, kinds.get(name, self.operand))
        if self.product is not None:
            self.held["features"] = self.machine.tensor("features", features.x_shape, self.operand)
            return
        blocked = self.conv.operands.held["dx"]
        self.held["features"] = Buffer(
            blocked.memory, "features", blocked.address, features.x_shape, self.operand, shared=True
        )

    @property
    def host_bytes(self) -> int:
        """Bytes of this computer's memory: the convolution's, tensors, and the points with their corners."""
        points = self.points.inside.size
        more = 0 if self.product is None else self.product.host_bytes
        return self.conv.host_bytes + 2 * sum(each.bytes for each in self.held.values()) + 128 * points + more

    @property
    def flops_per_cycle(self) -> float:
        """Peak of a core."""
        return self.conv.flops_per_cycle

    @property
    def tiling(self) -> dict[str, object]:
        """Every field with its prefix, and its value."""
        more = {"scatter.elements": self.elements} if self.scattered else {}
        product = {} if self.product is None else self.product.gemm.tiling.model_dump()
        return {**product, **self.conv.tiling, **more}

    def put(self, arrays: Mapping[str, Array]) -> None:
        """Place the operands: dy, w, x, offset, mask, and the forward pass' features where they are given."""
        storage = self.operand.storage
        given = {name: np.asarray(array).astype(storage, copy=False) for name, array in arrays.items()}
        for_conv = {name: array for name, array in given.items() if name in ("dy", "w")}
        if "dw" in self.grads:
            found = given.get("features")
            for_conv["x"] = resampled(self.points, given["x"], given.get("mask")) if found is None else found
        self.conv.put(for_conv)
        if self.product is not None:
            self.product.put(given["dy"], given["w"])
        if self.scattered:
            fill_from(self.held["x"], given["x"])
            fill_from(self.held["offset"], self._joined(given["offset"], given.get("mask")))

    def _joined(self, offset: Array, mask: Array | None) -> Array:
        """Planes of x, y and the mask, channel first, as the kernel has them."""
        listed = joined_planes(self.shape, offset, mask)
        return listed.reshape(self._planes)

    def run(self) -> None:
        """Launch what the gradients need."""
        if self.product is not None:
            self.product.run()
        self.conv.run()
        if not self.scattered:
            return
        held, target, conv = self.held, self.machine.target, self.shape.conv
        if self.shape.empty:
            for name in ("dx", "doffset"):
                if held[name].size:
                    self.machine.launch(MemSet(target, held[name]))
            return
        if self.machine.numerics:
            product = self.product
            found = self.conv.operands.take_image("dx") if product is None else product.take()
            fill_from(held["features"], found)
        planes, plane = self._planes, prod(conv.size)
        self._turn("x", "x_last", (conv.n, conv.cin, plane))
        self._turn("offset", "offset_last", planes)
        self._turn("features", "features_last", (conv.n, conv.cin, prod(self.shape.features.size)))
        sums = held.get("dx_sums", held["dx_last"])
        tensors = Tensors(
            held["x_last"], held["features_last"], held["offset_last"], sums, held["doffset_last"]
        )
        self.machine.launch(
            DeformScatter(
                target, self.points, tensors, self.elements, self._vector_cores, ordered=self.ordered
            )
        )
        if sums is not held["dx_last"]:
            self.machine.launch(CastAll(target, held["dx_last"], sums))
        self._turn("dx_last", "dx", (conv.n, plane, conv.cin))
        self._turn("doffset_last", "doffset", (planes[0], planes[2], planes[1]))

    def _turn(self, source: str, out: str, frame: tuple[int, int, int]) -> None:
        held = self.held
        held[source].constant = True
        name = f"transpose_{source.removesuffix('_last')}"
        self.machine.launch(Transpose(name, self.machine.target, held[out], held[source], frame))
        held[out].constant = out.endswith("_last")

    def take(self) -> dict[str, Array]:
        """The gradients, channel first, offsets in the order of the call."""
        found = {grad: array for grad, array in self.conv.take().items() if grad != "dx"}
        if self.scattered:
            doffset, dmask = split_planes(self.shape, self.held["doffset"].numbers())
            found |= {"dx": self.held["dx"].numbers(), "doffset": doffset}
            found |= {} if dmask is None else {"dmask": dmask}
        return {grad: found[grad] for grad in self.grads}


def joined_planes(shape: DeformShape, offset: Array, mask: Array | None) -> Array:
    """Offsets, (dy, dx) a tap, as the planes x, y and mask of all points: [N, planes x points, *out]."""
    n, high, wide = shape.conv.n, *shape.conv.out
    pairs = offset.reshape(n, shape.points, 2, high, wide)
    listed = [pairs[:, :, 1], pairs[:, :, 0], *([] if mask is None else [mask])]
    return np.concatenate(listed, axis=1)


def split_planes(shape: DeformShape, planes: Array) -> tuple[Array, Array | None]:
    """Planes x, y and mask as offsets, (dy, dx) a tap, and the mask: the opposite of `joined_planes`."""
    n, high, wide = shape.conv.n, *shape.conv.out
    found = planes.reshape(n, 3 if shape.masked else 2, shape.points, high, wide)
    pairs = np.stack([found[:, 1], found[:, 0]], axis=2)
    mask = np.array(found[:, 2]) if shape.masked else None
    return pairs.reshape(shape.offset_shape), mask


def _by_gradient(given: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Fields without a prefix, and those of the gradients that have one."""
    plain = {name: value for name, value in given.items() if "." not in name}
    return plain, {name: value for name, value in given.items() if name not in plain}


def _whole_chip(
    shape: DeformShape, operand: DType, machine: Machine, rate: str | None, given: Mapping[str, object]
) -> dict[str, object]:
    """Tile sizes of the features' gradient as on all cores: its bits do not depend on how many there are."""
    whole = Machine(machine.target, range(machine.target.groups), numerics=False)
    plain = {name: value for name, value in given.items() if "." not in name}
    found = Backward.of(shape.features, operand, whole, ("dx",), plain, rate=rate).tiling
    return {name: value for name, value in found.items() if name not in ("rule", "split")}
