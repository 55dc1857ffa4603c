"""A machine whose tensors have names in a network: layers that read one tensor find it at one address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulator.machine import Machine
from simulator.memory.memories import Buffer
from simulator.values.numerics import DType
from targets.schema import Target

Key = tuple[str, tuple[int, ...], str]


class NetworkMachine(Machine):
    """A machine that only times, on which one call after another is made.

    Attributes:
        tensors: bytes of the tensors of the call, by the names that the kernels give them.
        standing: tensors that outlive calls, by their names in the network, shapes and types.
    """

    def __init__(self, target: Target, cores: Sequence[int], *, traced: bool) -> None:
        """Bring a target to life with cold caches."""
        super().__init__(target, cores, numerics=False, traced=traced)
        self.tensors: dict[str, int] = {}
        self._places: Mapping[str, str] = {}
        self.standing: dict[Key, Buffer] = {}
        self._passing: list[Buffer] = []

    def begin(self, places: Mapping[str, str]) -> None:
        """Begin a call: `places` are the network's names of the kernel's tensors that outlive it.

        What the call before needed for itself is free again.
        """
        for buffer in self._passing:
            self.release(buffer)
        self._passing = []
        self._places = places
        self.tensors = {}

    def forget(self, place: str) -> None:
        """Free a tensor of the network, in all its layouts."""
        for key in [key for key in self.standing if key[0] == place]:
            self.release(self.standing.pop(key))

    def tensor(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: DType,
        *,
        memory: str | None = None,
        address: int | None = None,
        core: int | None = None,
    ) -> Buffer:
        """A tensor of the call: where it lay before, if the network has it in this layout, else a new one.

        Raises:
            CapacityError: the memory is too small.
        """
        place = self._places.get(name)
        key = (place or "", shape, dtype.name)
        standing = self.standing.get(key)
        if standing is not None:
            # A buffer that was read is marked as constant; the next call may write it.
            made = Buffer(standing.memory, name, standing.address, shape, dtype, standing.shared)
        else:
            made = super().tensor(name, shape, dtype, memory=memory, address=address, core=core)
            if place is None:
                self._passing.append(made)
            else:
                self.standing[key] = made
        self.tensors[name] = made.bytes
        return made
