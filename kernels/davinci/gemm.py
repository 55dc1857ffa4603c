"""A matrix product on the Da Vinci family: its tiling, its tensors, and its launches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernels.davinci.product import Product, ProductTensors
from kernels.davinci.product_rules import Matrices, plan_product
from kernels.davinci.tiling import ProductTiling
from kernels.davinci.vectors import CastAll, MemSet
from simulator.machine import Machine
from simulator.memory.memories import Buffer, fill_from
from simulator.values.numerics import Array, dtype


@dataclass(frozen=True)
class DavinciGemm:
    """One product, before a number is made.

    Attributes:
        matrices, tiling, machine: what is multiplied, how and where.
        tensors: operands, and what the sums go to: c, or fp32 where several parts are added to 16-bit results.
        c: the result.
        adds: the product is added to c. The write-out adds in the memory, in fp32: to c itself, or to a copy in fp32,
            so that c is rounded once.
    """

    matrices: Matrices
    tiling: ProductTiling
    machine: Machine
    tensors: ProductTensors
    c: Buffer
    adds: bool = False

    @classmethod
    def of(
        cls, matrices: Matrices, machine: Machine, given: Mapping[str, object], *, adds: bool = False
    ) -> DavinciGemm:
        """Choose a tiling and addresses.

        Raises:
            TilingError: a field is not usable, or nothing fits with it.
            CapacityError: main memory is too small.
        """
        p, tiling = matrices, plan_product(matrices, given)
        a = machine.tensor("a", (p.k, p.m) if p.trans_a else (p.m, p.k), p.operand)
        b = machine.tensor("b", (p.n, p.k) if p.trans_b else (p.k, p.n), p.operand)
        c = machine.tensor("c", (p.m, p.n), p.operand)
        partial = (tiling.split_k > 1 or adds) and p.operand is not dtype("fp32")
        sums = machine.tensor("c_sums", (p.m, p.n), dtype("fp32")) if partial else c
        return cls(matrices, tiling, machine, ProductTensors(a, b, sums, adds), c, adds)

    @property
    def host_bytes(self) -> int:
        """Bytes of this computer's memory."""
        return 3 * (self.tensors.a.bytes + self.tensors.b.bytes + self.c.bytes + self.tensors.c.bytes)

    @property
    def flops_per_cycle(self) -> float:
        """Peak of a core."""
        return self.machine.target.cube[self.matrices.rate].flops_per_cycle

    def put(self, arrays: Mapping[str, Array]) -> None:
        """Place the operands."""
        fill_from(self.tensors.a, arrays["a"])
        fill_from(self.tensors.b, arrays["b"])
        if self.adds:
            fill_from(self.c, arrays["c"].copy())

    def run(self) -> None:
        """Launch it: zeros, or c in fp32, first where cores add, and a cast after where they added in fp32."""
        p, tensors, target = self.matrices, self.tensors, self.machine.target
        tensors.a.constant = tensors.b.constant = True
        if not self.c.size or (self.adds and not p.k):
            return
        if self.adds and tensors.c is not self.c:
            self.machine.launch(CastAll(target, tensors.c, self.c))
        elif not self.adds and (self.tiling.split_k > 1 or not p.k):
            self.machine.launch(MemSet(target, tensors.c))
        if p.k:
            self.machine.launch(Product(p, self.tiling, tensors))
        if tensors.c is not self.c:
            self.machine.launch(CastAll(target, self.c, tensors.c))

    def take(self) -> Array:
        """The product, [M, N]."""
        return self.c.numbers()
