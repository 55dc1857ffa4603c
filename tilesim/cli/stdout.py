"""Stdout, watched: a full disk or a closed pipe is the system's refusal and not a fault of tilesim."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TextIO, TypeVar

Result = TypeVar("Result")


class WatchedStdout:
    """A text stream that remembers which of its writes failed first; all else is the stream's own.

    Attributes:
        failed: why it could not be written to; None as long as it could.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failed: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write; raises OSError as the stream does."""
        return self._watched(lambda: self._stream.write(text))

    def flush(self) -> None:
        """Flush; raises OSError as the stream does."""
        self._watched(self._stream.flush)

    def _watched(self, act: Callable[[], Result]) -> Result:
        try:
            return act()
        except OSError as error:
            self.failed = self.failed or error
            # What is still held is written to nowhere: the flush at the end of the process would complain once more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            raise
