"""The second process that compiles kernels, started before a server imports anything: that takes seconds."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

NOTE: Final = "all-compiled"
"""The file beside the kernels that says so, see `quercus.server.growth.kernel_note`."""


def is_wanted() -> bool:
    """Return whether no note says that all kernels are compiled, as far as can be told without Numba.

    A note that is out of date is seen later, by the grower, which then starts the helper itself.
    """
    if importlib.util.find_spec("numba") is None:  # the server cannot run either, and says so
        return False
    kernels = Path(__file__).parents[2] / "trees" / "likelihood" / "solver"
    own_name = f"{kernels.name}_{hashlib.sha1(str(kernels).encode(), usedforsecurity=False).hexdigest()}"
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        places = [Path(chosen) / own_name]
    else:
        of_user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba"
        places = [kernels / "__pycache__", of_user / own_name]
    return not any((place / NOTE).exists() for place in places)


def start_helper() -> subprocess.Popen[bytes]:
    """Start the helper; it ends with this process, and at once where nothing is missing or another one helps."""
    command = [sys.executable, "-m", "quercus.server.growth.compiling"]
    helper = subprocess.Popen(  # noqa: S603 - this program
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, process_group=0
    )
    threading.Thread(target=_await_end, args=(helper,), name="compiling", daemon=True).start()
    return helper


def _await_end(helper: subprocess.Popen[bytes]) -> None:
    """Release what a helper leaves behind; its standard input is its life line until then."""
    helper.wait()
    if helper.stdin is not None:
        helper.stdin.close()
