"""The tables that only DSP targets have: the micro-kernels of matrix products, and the vector unit."""

from typing import Annotated

from pydantic import Field

from targets.tables import Count, Natural, Rate, Table


class MatmulSpec(Table):
    """The micro-kernel of a matrix product of one data type.

    A call computes `kernel_rows` rows of 1, 2, ... granules of columns over k steps, and takes
    `fixed_cycles + k * granule_cycles[granules - 1]` cycles on the engine and `call_cycles` of software.

    A table is named after its data type ("fp32", "fp64"; "fp16_fp16" sums in fp16). The name of a kernel that takes
    its second operand transposed ends in `_nt`, or in `_nt_merged` where its blocks overlap in one loop.

    Attributes:
        kernel_rows: rows of a kernel.
        granule_columns: columns of a granule.
        granule_cycles: cycles a k step of kernels of 1, 2, ... granules.
        fixed_cycles: fill and drain of a kernel.
        call_cycles: software around a kernel.
        once_cycles: added once for all blocks of a product.
        flops_per_cycle: peak of one core (a multiply-add is two).
    """

    kernel_rows: Count
    granule_columns: Count
    granule_cycles: Annotated[tuple[Rate, ...], Field(min_length=1, strict=False)]
    fixed_cycles: Natural
    call_cycles: Natural
    once_cycles: Natural = 0
    flops_per_cycle: Rate


class VectorSpec(Table):
    """The vector unit of a core.

    Attributes:
        register_bytes: size of a vector register.
        moves_per_cycle: registers loaded or stored a cycle.
        run_cycles: added for each contiguous run.
        call_cycles: added for each operation.
    """

    register_bytes: Count
    moves_per_cycle: Rate
    run_cycles: Natural
    call_cycles: Natural
