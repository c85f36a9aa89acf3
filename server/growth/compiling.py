"""All kernels compiled by two processes, which go through the same steps in two orders.

What one compiles, the other waits for and loads. The grower begins with what trees need; its helper
(``python -m quercus.server.growth.compiling``) with what only forests need.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import Final

from quercus.server.growth.child_process import end_with_parent
from quercus.server.growth.compiling_helper import start_helper
from quercus.server.growth.kernel_note import is_all_compiled, note_all_compiled
from quercus.trees import precompile
from quercus.trees.precompile import Progress, help_preparing, is_helped

NICENESS: Final = 5  # as the grower's


def prepare_kernels(notify: Callable[[Progress], object] = lambda _: None) -> None:
    """Compile every kernel of solver, growth and strategies that is not in the cache.

    Where the cache is known to hold them all, nothing is done: each is loaded when it is first called, and a process
    that never calls it saves the time.

    Parameters
    ----------
    notify : called with the progress, from the first kernel that is compiled on, here or by the helper.
    """
    if is_all_compiled():
        return
    helper: subprocess.Popen[bytes] | None = None
    begun = False

    def report_progress(progress: Progress) -> None:
        nonlocal helper, begun
        if not begun and not is_helped():
            helper = start_helper()
        begun = True
        notify(progress)

    try:
        precompile.prepare(report_progress)
    finally:
        if helper is not None:
            helper.kill()
    note_all_compiled()


def help_compiling() -> None:
    """Help a grower, and end with the process that started this one."""
    end_with_parent(lambda _: None)
    os.nice(NICENESS)
    if not is_all_compiled():
        help_preparing()


if __name__ == "__main__":
    help_compiling()
