"""Instructions of Da Vinci cores: moves, loads to L0, the cube, its write-out, and vector operations."""

from simulator.cube.fixpipe import Fixpipe
from simulator.cube.loads import Load2d, Load3d
from simulator.cube.mmad import Mmad
from simulator.cube.move import Move
from simulator.cube.scatter import Gather, ScatterAdd
from simulator.cube.vector import OPERATIONS, Fill, Vector
from simulator.cube.window import Window

__all__ = [
    "OPERATIONS",
    "Fill",
    "Fixpipe",
    "Gather",
    "Load2d",
    "Load3d",
    "Mmad",
    "Move",
    "ScatterAdd",
    "Vector",
    "Window",
]
