"""Processes that end with the process that started them: the grower with its server, a learner with its grower."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO, Final

PR_SET_PDEATHSIG: Final = 1  # <linux/prctl.h>


def private_output() -> BinaryIO:
    """Take standard output for the parent alone; what anybody prints goes to standard error from now on."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return output


def end_with_parent(hear: Callable[[str], None]) -> None:
    """End this process when its standard input ends; on Linux the kernel ends it too, even when it is stopped.

    Parameters
    ----------
    hear : called with each line of standard input, in a thread.
    """
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the kernel knew
            os._exit(0)

    def watch_parent() -> None:
        for line in sys.stdin:
            hear(line.strip())
        os._exit(0)

    threading.Thread(target=watch_parent, name="quercus-parent", daemon=True).start()
