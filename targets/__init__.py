"""Chips as data: TOML files, the schema that checks them, and the loader."""

from targets.errors import TargetError, TilesimError
from targets.loader import available_targets, load_target
from targets.schema import (
    SCALAR,
    UNITS_PER_BYTE,
    CacheSpec,
    CoreKind,
    EngineSpec,
    IssueSpec,
    LaunchSpec,
    LinkSpec,
    Mark,
    MatmulSpec,
    MemorySpec,
    PathSpec,
    PortSpec,
    SyncSpec,
    Target,
    Unit,
    VectorSpec,
)

__all__ = [
    "SCALAR",
    "UNITS_PER_BYTE",
    "CacheSpec",
    "CoreKind",
    "EngineSpec",
    "IssueSpec",
    "LaunchSpec",
    "LinkSpec",
    "Mark",
    "MatmulSpec",
    "MemorySpec",
    "PathSpec",
    "PortSpec",
    "SyncSpec",
    "Target",
    "TargetError",
    "TilesimError",
    "Unit",
    "VectorSpec",
    "available_targets",
    "load_target",
]
