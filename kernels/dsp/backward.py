"""Any subset of a convolution's gradients on the DSP family: their tilings, their buffers, and their launches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kernels.dsp.dw import lowering as dw_side
from kernels.dsp.dw.lowering import DbOperands, DwOperands
from kernels.dsp.dw.tiling import DbTiling, DwTiling
from kernels.dsp.dx.lowering import allocate_dy, put_dy
from kernels.dsp.panels.call import PanelCall, PanelPlan
from kernels.gradient_fields import PREFIXES, split_tiling
from kernels.shape.shapes import ConvShape
from simulator.machine import Machine
from simulator.memory.memories import Buffer
from simulator.values.numerics import Array, DType


@dataclass
class Backward:
    """The gradients of one call: what is asked for has a tiling and operands.

    A transposed convolution is the adjoint of a plain one: its dx is a forward convolution of dy with w, and its dw is
    that of the plain one with x and dy exchanged.
    """

    shape: ConvShape
    operand: DType
    machine: Machine
    grads: tuple[str, ...]
    tilings: dict[str, PanelPlan | DwTiling | DbTiling]
    dy: Buffer
    dx: PanelCall | None = None
    dw: DwOperands | None = None
    db: DbOperands | None = None

    @classmethod
    def of(
        cls,
        shape: ConvShape,
        operand: DType,
        machine: Machine,
        grads: tuple[str, ...],
        given: Mapping[str, object],
    ) -> Backward:
        """Choose tilings and addresses, before a number is made.

        Raises:
            TilingError: a field is not usable, or nothing fits with it.
            CapacityError: DDR is too small.
        """
        fields = split_tiling(given, grads)
        tilings: dict[str, PanelPlan | DwTiling | DbTiling] = {}
        if "dx" in grads:
            dx = PanelPlan.of(shape, operand, machine, fields["dx"], gathers=shape.transposed)
            tilings["dx"] = dx
        if "dw" in grads:
            tilings["dw"] = dw = dw_side.dw_tiling(shape, operand, machine, fields["dw"])
        if "db" in grads:
            tilings["db"] = dw_side.db_tiling(shape, fields["db"])
        dy = allocate_dy(shape, operand, machine)
        made = cls(shape, operand, machine, grads, tilings, dy)
        if "dx" in grads:
            made.dx = dx.allocate(dy, "dx")
        if "dw" in grads:
            made.dw = dw_side.allocate_dw(shape, operand, machine, dw)
        if "db" in grads:
            made.db = dw_side.allocate_db(operand, machine, dy)
        return made

    @property
    def host_bytes(self) -> int:
        """Bytes of this computer's memory: operands as given and as stored, gradients twice, and partial sums."""
        thrice, once = [self.dy], []
        if self.dx is not None:
            thrice += self.dx.buffers
        if self.dw is not None:
            thrice += [self.dw.x, self.dw.dw]
            once += [b for b in (self.dw.sums, self.dw.tap_major) if b is not self.dw.dw]
        if self.db is not None:
            thrice += [self.db.db]
        return 3 * sum(b.bytes for b in thrice) + sum(b.bytes for b in once)

    @property
    def flops_per_cycle(self) -> float:
        """Peak of a core: of the fastest rate that one of the gradients is computed at."""
        return peak_flops_per_cycle(self.machine, self.operand, self.fields.values())

    @property
    def fields(self) -> dict[str, dict[str, object]]:
        """The tiling of each gradient."""
        return {
            grad: tiling.fields if isinstance(tiling, PanelPlan) else tiling.model_dump()
            for grad, tiling in self.tilings.items()
        }

    @property
    def tiling(self) -> dict[str, object]:
        """Every field with its prefix, and its value."""
        return {PREFIXES[grad] + name: value for grad, f in self.fields.items() for name, value in f.items()}

    def put(self, arrays: Mapping[str, Array]) -> None:
        """Place the channel-first operands."""
        put_dy(self.shape, self.dy, arrays["dy"])
        if self.dx is not None:
            self.dx.put_w(arrays["w"])
        if self.dw is not None:
            dw_side.put_x(self.shape, self.dw, arrays["x"])

    def run(self) -> None:
        """Launch what the gradients need: dx, then dw, then db."""
        for _ in self.parts():
            pass

    def parts(self) -> Iterator[str]:
        """Launch what the gradients need, one gradient after another; its name comes when its launches have run."""
        if self.dx is not None:
            self.run_dx()
            yield "dx"
        yield from self.rest()

    def run_dx(self) -> None:
        """Launch what dx needs, where it is asked for."""
        if self.dx is not None:
            self.dx.run("conv_dx")

    def rest(self) -> Iterator[str]:
        """Launch what dw and db need, where they are asked for; the name of each comes when its launches have run."""
        shape, operand, machine = self.shape, self.operand, self.machine
        dw, db = self.tilings.get("dw"), self.tilings.get("db")
        if isinstance(dw, DwTiling) and self.dw is not None:
            dw_side.run_dw(shape, operand, machine, dw, self.dy, self.dw)
            yield "dw"
        if isinstance(db, DbTiling) and self.db is not None:
            dw_side.run_db(machine, db, self.dy, self.db)
            yield "db"

    def take(self) -> dict[str, Array]:
        """The gradients, channel first."""
        found: dict[str, Array] = {}
        if self.dx is not None:
            found["dx"] = self.dx.take(self.shape.x_shape)
        if self.dw is not None:
            found["dw"] = dw_side.take_dw(self.shape, self.dw)
        if self.db is not None:
            found["db"] = dw_side.take_db(self.db)
        return found


def peak_flops_per_cycle(machine: Machine, operand: DType, tilings: Iterable[Mapping[str, object]]) -> float:
    """Peak of a core, at the fastest rate that one of the tilings computes at."""
    half = operand.name == "fp16" and any(t.get("fp16_accumulate") == "fp16" for t in tilings)
    return machine.target.matmul[operand.name + ("_fp16" if half else "")].flops_per_cycle
