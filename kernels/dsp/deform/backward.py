"""Any subset of the gradients of a deformable convolution on the DSP family.

The products are those of a plain convolution backward on the resampled features, whose stride is its kernel:

conv_dx gives the features' gradient -> deform_sample reads x at the points, and gives the features, doffset and dmask
-> conv_dw and conv_db -> deform_extents and deform_scatter give dx.

Each tensor lies channel last, offsets and masks too. What is summed for dx, doffset and dmask is summed by one core, in
an order that no number of cores changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kernels.deform_points import Points
from kernels.dsp.backward import Backward
from kernels.dsp.deform.extents import DeformExtents
from kernels.dsp.deform.sample import DeformSample, SampleTensors, shape_last
from kernels.dsp.deform.scatter import DeformScatter, ScatterTensors
from kernels.dsp.deform.tiling import DeformTiling, split_tiling
from kernels.dsp.dx.lowering import dx_tiling, put_dy
from kernels.shape.deform import THROUGH_FEATURES, DeformShape
from kernels.shape.layout import channel_last
from simulator.machine import Machine
from simulator.memory.memories import Buffer, fill_from
from simulator.values.numerics import Array, DType, dtype


@dataclass
class DeformBackward:
    """The gradients of one call.

    `given_features`: the forward pass' features are an operand, and are not sampled again.
    """

    shape: DeformShape
    operand: DType
    machine: Machine
    grads: tuple[str, ...]
    points: Points
    conv: Backward
    fields: DeformTiling
    given_features: bool = False
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
        features: bool = False,
    ) -> DeformBackward:
        """Choose tilings and addresses, before a number is made.

        Args:
            shape: the geometry.
            operand: what tensors are stored in.
            machine: where it runs.
            grads: which gradients.
            given: fields of the tilings to keep: those of the convolution, and those of DeformTiling.
            offset: [N, 2 x points, *out]; they say where is read and added.
            features: those of the forward pass will be given.

        Raises:
            TilingError: a field is not usable, or nothing fits with it.
            CapacityError: main memory is too small.
        """
        fields, own = split_tiling(given, shape, operand, machine.target)
        of_conv = tuple(grad for grad in grads if grad in ("dw", "db"))
        if any(grad in THROUGH_FEATURES for grad in grads):
            of_conv = ("dx", *of_conv)
            fields = {"k": _whole_chip_k(shape, operand, machine, fields), **fields}
        conv = Backward.of(shape.features, operand, machine, of_conv, fields)
        moved = offset.astype(operand.storage, copy=False)
        made = cls(shape, operand, machine, grads, Points.of(shape, moved), conv, own, features)
        made._allocate()
        return made

    @property
    def scattered(self) -> bool:
        """Whether the gradient of the features is computed."""
        return self.conv.dx is not None

    @property
    def _sums(self) -> tuple[str, ...]:
        return tuple(grad for grad in ("doffset", "dmask") if grad in self.grads)

    @property
    def _samples_features(self) -> bool:
        return "dw" in self.grads and not self.given_features

    def _allocate(self) -> None:
        """Tensors beside those of the convolution, as far as a launch reads or writes them."""
        conv, kinds = self.shape.conv, {"extents": dtype("fp32")}
        sizes: dict[str, tuple[int, ...]] = {}
        if self._sums or self._samples_features:
            sizes["x"] = channel_last(conv.x_shape)
        if sizes or "dx" in self.grads:
            sizes["offset"] = channel_last(self.shape.offset_shape)
            sizes |= {"mask": channel_last(self.shape.mask_shape)} if self.shape.masked else {}
        if "dx" in self.grads:
            sizes |= {
                "dx": channel_last(conv.x_shape),
                "extents": (conv.n, conv.out[0], self.shape.deform_groups, 2),
            }
        shapes = {"doffset": self.shape.offset_shape, "dmask": self.shape.mask_shape}
        sizes |= {grad: channel_last(shapes[grad]) for grad in self._sums}
        for name, size in sizes.items():
            self.held[name] = self.machine.tensor(name, size, kinds.get(name, self.operand))

    @property
    def host_bytes(self) -> int:
        """Bytes of this computer's memory: the convolution's, tensors, and the points with their corners."""
        held = sum(each.bytes for each in self.held.values())
        return self.conv.host_bytes + 3 * held + 128 * self.points.inside.size

    @property
    def flops_per_cycle(self) -> float:
        """Peak of a core."""
        return self.conv.flops_per_cycle

    @property
    def tiling(self) -> dict[str, object]:
        """Every field with its prefix, and its value."""
        return {**self.conv.tiling, **(self.fields.model_dump() if self.held else {})}

    def put(self, arrays: Mapping[str, Array]) -> None:
        """Place the operands: dy, w, x, offset, mask, and the forward pass' features where they are given."""
        storage = self.operand.storage
        given = {name: np.asarray(array).astype(storage, copy=False) for name, array in arrays.items()}
        put_dy(self.shape.features, self.conv.dy, given["dy"])
        if self.conv.dx is not None:
            self.conv.dx.put_w(given["w"])
        if self.conv.dw is not None and self.given_features:
            put_dy(self.shape.features, self.conv.dw.x, given["features"])
        for name in ("x", "offset", "mask"):
            if name in self.held:
                fill_from(self.held[name], np.moveaxis(given[name], 1, -1))

    def run(self) -> None:
        """Launch what the gradients need."""
        for name in ("x", "offset", "mask"):
            if name in self.held:
                self.held[name].constant = True
        self.conv.run_dx()
        if self._sums or self._samples_features:
            self._sample()
        for _ in self.conv.rest():
            pass
        if "dx" in self.grads:
            self._scatter()

    @property
    def _upstream(self) -> Buffer | None:
        """The gradient of the features, channel last."""
        if self.conv.dx is None:
            return None
        return self.conv.dx.result.reshaped(shape_last(self.points))

    def _sample(self) -> None:
        held, dw = self.held, self.conv.dw
        features = dw.x if dw is not None and self._samples_features else None
        upstream = self._upstream if self._sums else None
        sums = (held.get("doffset"), held.get("dmask"))
        tensors = SampleTensors(held["x"], held["offset"], held.get("mask"), upstream, features, *sums)
        self.machine.launch(DeformSample(self.points, self.fields, tensors))

    def _scatter(self) -> None:
        held, upstream = self.held, self._upstream
        assert upstream is not None  # noqa: S101  # dx needs the gradient of the features
        self.machine.launch(DeformExtents(self.points, held["offset"], held["extents"]))
        held["extents"].constant = True
        tensors = ScatterTensors(upstream, held["offset"], held.get("mask"), held["extents"], held["dx"])
        self.machine.launch(DeformScatter(self.points, self.fields, tensors))

    def take(self) -> dict[str, Array]:
        """The gradients, channel first, offsets in the order of the call."""
        found = {grad: array for grad, array in self.conv.take().items() if grad != "dx"}
        for grad in THROUGH_FEATURES:
            if grad in self.grads:
                found[grad] = np.ascontiguousarray(np.moveaxis(self.held[grad].numbers(), -1, 1))
        return {grad: found[grad] for grad in self.grads}


def _whole_chip_k(
    shape: DeformShape, operand: DType, machine: Machine, given: Mapping[str, object]
) -> object:
    """Output channels that are summed at a time, as on all cores: the sums do not depend on how many there are."""
    whole = Machine(machine.target, range(machine.target.groups), numerics=False)
    plain = {name: value for name, value in given.items() if "." not in name}
    return dx_tiling(shape.features, operand, whole, plain).k
