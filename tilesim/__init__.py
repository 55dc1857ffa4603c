"""tilesim: the backward kernels of convolutions, run tile by tile on models of multi-core DSPs and NPUs.

One call gives the gradients, computed by the very tiles that were timed, and a trace of each core and engine:

    run = tilesim.conv_backward(dy, w, padding=1, grads=("dx",), target="mt7004", cores=4)
    run.dx, run.cycles, run.trace

The vendors' own calls, such as those of `kernels.ft`, run on a `tilesim.Device`.

Every error that a wrong argument causes is a `TilesimError`.
"""

from importlib.metadata import version as _version

from kernels.conv_backward import conv_backward
from kernels.conv_forward import conv_forward
from kernels.deform_backward import deform_conv_backward
from kernels.errors import OperandError, ShapeError, TilingError
from kernels.gemm import gemm
from kernels.operators import run_operator, search_tiling
from kernels.registry import Call, operator
from kernels.search.search import TileSearch
from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape
from kernels.shape.text import sizes
from reports.comparison import Comparison, compare
from reports.networks.times import NetworkTimes
from reports.sweeps.table import SweepTable
from simulator.device.arrays import DeviceArray
from simulator.device.device import Device
from simulator.errors import (
    BoundsError,
    CapacityError,
    DeadlockError,
    MachineError,
    ProgramError,
    RaceError,
)
from simulator.results.run import Run
from simulator.results.trace import Trace
from targets.errors import TargetError, TilesimError
from targets.loader import available_targets, load_target
from tilesim.networks.layers import Network, NetworkError
from tilesim.networks.reading import read_network
from tilesim.networks.running import network
from tilesim.reporting import report
from tilesim.sweeps.api import sweep

__all__ = [
    "BoundsError",
    "Call",
    "CapacityError",
    "Comparison",
    "ConvShape",
    "DeadlockError",
    "DeformShape",
    "Device",
    "DeviceArray",
    "MachineError",
    "Network",
    "NetworkError",
    "NetworkTimes",
    "OperandError",
    "ProgramError",
    "RaceError",
    "Run",
    "ShapeError",
    "SweepTable",
    "TargetError",
    "TileSearch",
    "TilesimError",
    "TilingError",
    "Trace",
    "available_targets",
    "compare",
    "conv_backward",
    "conv_forward",
    "deform_conv_backward",
    "gemm",
    "load_target",
    "network",
    "operator",
    "read_network",
    "report",
    "run_operator",
    "search_tiling",
    "sizes",
    "sweep",
]

__version__ = _version("tilesim")
