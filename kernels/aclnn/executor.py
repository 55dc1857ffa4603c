"""A planned call, and how every second call runs one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, SupportsIndex, TypeVar

from kernels.aclnn.device import Device, Stream
from kernels.aclnn.errors import AclnnError, null
from kernels.aclnn.objects import Out
from kernels.shape.checks import is_whole, shown
from simulator.results.run import Run


class Planned(Protocol):
    """A checked call of any operator."""

    @property
    def device(self) -> Device:
        """Where it runs."""

    @property
    def workspace(self) -> dict[str, int]:
        """Bytes of each intermediate tensor, by its name."""

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the workspace."""


P = TypeVar("P", bound=Planned)


class aclOpExecutor:  # noqa: N801  # the vendor's name
    """A planned call, which runs once.

    Attributes:
        plan: what it will do.
        run: the Run, when it has run.
    """

    def __init__(self, plan: Planned) -> None:
        """A call that has not run."""
        self.plan = plan
        self.run: Run | None = None


def run_once(
    kind: type[P],
    execute: Callable[[P], Run],
    first_call: str,
    workspace: object,
    size: SupportsIndex,
    executor: aclOpExecutor | Out[aclOpExecutor] | None,
    stream: Stream | None,
) -> None:
    """Run a call that `first_call` has planned, as a plan of this kind.

    Raises:
        AclnnError: a pointer is null, the workspace is too small, the stream is another device's, the call has run
            already or is of another operator.
    """
    planned = executor.value if isinstance(executor, Out) else executor
    if planned is None:
        raise null("executor", f"call {first_call} first")
    if stream is None:
        raise null("stream")
    plan = planned.plan
    if not isinstance(plan, kind):
        what = "a call of another operator"
        raise AclnnError(
            what, argument="executor", got=type(plan).__name__, remedy=f"call {first_call} first"
        )
    _check_workspace(workspace, size, plan.workspace_bytes)
    if stream.device is not plan.device:
        device, other = plan.device.target.name, stream.device.target.name
        raise AclnnError("a stream of another device", argument="stream", got=other, limit=device)
    if planned.run is not None:
        raise AclnnError("it has run already", argument="executor", remedy="plan the call again")
    planned.run = execute(plan)
    stream.runs.append(planned.run)


def _check_workspace(workspace: object, size: SupportsIndex, wanted: int) -> None:
    """Refuse a workspace that is smaller than what the plan needs."""
    remedy = "give as many bytes as the first call told"
    if not is_whole(size) or size < wanted:
        what = "the workspace is too small"
        raise AclnnError(what, argument="workspaceSize", got=shown(size), limit=wanted, remedy=remedy)
    if workspace is None and wanted:
        raise null("workspace", f"it needs {wanted} bytes")
    held = getattr(workspace, "nbytes", None)
    if workspace is not None and (held is None or held < wanted):
        what = "the workspace is too small"
        raise AclnnError(what, argument="workspace", got=shown(held), limit=wanted, remedy=remedy)
