"""Keeping a lease alive in a thread while somebody thinks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from quercus.client.errors import DeadlineExceeded, QuercusError, Unavailable


class Holding:
    """Extends a lease every ``interval_s`` until left.

    Parameters
    ----------
    extend
        Extends the lease once. An error that will not pass (answered, expired and gone to another) ends the
        thread: whoever answers later is told by the answer itself.
    interval_s
        Time between extensions, a third of the lease.
    """

    def __init__(self, extend: Callable[[], object], interval_s: float) -> None:
        self._extend = extend
        self._interval_s = interval_s
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._run, name="quercus-lease", daemon=True)

    def _run(self) -> None:
        while not self._left.wait(self._interval_s):
            try:
                self._extend()
            except (Unavailable, DeadlineExceeded):
                continue  # the server may be back before the lease ends
            except QuercusError as error:
                if error.retry_s is None:  # else the server was too busy
                    return
            except ValueError:  # the channel was closed meanwhile
                return

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        self._thread.join(
            timeout=1.0
        )  # a call under way to a server that is gone must not hold the labeller up
