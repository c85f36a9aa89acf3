"""All kernels compiled by two processes, which work through one list of steps from its two ends.

This process begins with what forests need, the other (``python -m quercus.server.growth.compiling``) with what trees
of precise labels need. What either has compiled, the other loads.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

from quercus.server.growth.child_process import end_with_parent, private_output
from quercus.server.growth.kernel_note import is_all_compiled, note_all_compiled
from quercus.trees.precompile import (
    BEFORE_TREES,
    LAST,
    ORDER,
    STEPS,
    TOTAL,
    Progress,
    kernel_cache,
    noticing_compilation,
)


class _Compilation:
    """The work of both processes.

    Parameters
    ----------
    notify : called with the progress, once something had to be compiled.
    """

    def __init__(self, notify: Callable[[Progress], object]) -> None:
        self._notify = notify
        self._helper: subprocess.Popen[bytes] | None = None
        self._changed = threading.Condition()
        self._compiles = False
        self._done: set[int] = set()  # numbers of the steps that this process has done
        self._back = len(STEPS)  # the other has done all from this one on,
        self._helps = False  # and is at the one before

    def begin(self) -> None:
        """Start the second process, unless no folder is writable: then it could not pass its results on."""
        self._compiles = True
        if kernel_cache() is not None:
            command = [sys.executable, "-m", "quercus.server.growth.compiling"]
            self._helper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - this program
            self._helps = True
            threading.Thread(target=self._follow, args=(self._helper,), name="compiling", daemon=True).start()
        self._report()

    def _follow(self, helper: subprocess.Popen[bytes]) -> None:
        """Hear of each step that the other process has done, until it ends."""
        assert helper.stdout is not None  # noqa: S101 - it was asked for
        for line in helper.stdout:
            with self._changed:
                self._back = int(line)
                self._changed.notify_all()
            self._report()
        with self._changed:
            self._helps = False
            self._changed.notify_all()

    def await_other(self, number: int) -> None:
        """Wait while the other process is at step `number`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._helps or self._back != number + 1)

    def done(self, number: int) -> None:
        """Note a step that this process has done."""
        self._done.add(number)
        self._report()

    def _report(self) -> None:
        if self._compiles:
            done = self._done.union(range(self._back, len(STEPS)))
            self._notify(Progress(len(done), TOTAL, done.issuperset(BEFORE_TREES)))

    def end(self) -> None:
        """End the other process, if it is still there."""
        if self._helper is not None:
            self._helper.kill()
            self._helper.communicate()


def prepare(notify: Callable[[Progress], object] = lambda _: None) -> None:
    """Compile every kernel of solver, growth and strategies that is not in the cache, and load the others.

    Where the cache is known to hold them all, only those for forests and precise labels are loaded: that is faster,
    and the others are loaded when they are first called.

    Parameters
    ----------
    notify : called with the progress, from the first kernel that is compiled on, from either of two threads.
    """
    if is_all_compiled():
        for number in BEFORE_TREES:
            STEPS[number]()
        return
    compilation = _Compilation(notify)
    try:
        with noticing_compilation(compilation.begin):
            for number in ORDER:
                compilation.await_other(number)
                (STEPS + LAST)[number]()
                compilation.done(number)
    finally:
        compilation.end()
    note_all_compiled()


def help_from_the_end() -> None:
    """Do the steps from the last to the first, and write the number of each that is done; end with the parent."""
    end_with_parent(lambda _: None)
    output = private_output()
    for number in reversed(range(len(STEPS))):
        STEPS[number]()
        output.write(b"%d\n" % number)
        output.flush()


if __name__ == "__main__":
    help_from_the_end()
