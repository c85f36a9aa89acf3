"""A function that dies by SIGKILL at a chosen step, a statement of SQL or another, in a process forked for it."""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Collection
from itertools import count

from sqlalchemy import event
from sqlalchemy.engine import Engine


def survives(function: Callable[[], object], statement: int) -> bool:
    """Return whether a function ends before the statement with this number, from 0; a commit counts as one.

    A function that fails fails the test.
    """

    def listen(strike: Callable[..., None]) -> None:
        event.listen(Engine, "before_cursor_execute", strike)
        event.listen(Engine, "commit", strike)

    return _survives(function, statement, listen)


def survives_steps(function: Callable[[], object], step: int, audited: Collection[str]) -> bool:
    """Return whether a function ends before the step with this number, from 0; steps are audit events of Python."""

    def listen(strike: Callable[..., None]) -> None:
        sys.addaudithook(lambda name, _: strike() if name in audited else None)

    return _survives(function, step, listen)


def _survives(
    function: Callable[[], object], last: int, listen: Callable[[Callable[..., None]], None]
) -> bool:
    child = os.fork()
    if child == 0:
        steps = count()

        def strike(*_: object) -> None:
            if next(steps) == last:
                os.kill(os.getpid(), signal.SIGKILL)

        code = 1
        try:
            listen(strike)
            function()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status in {0, signal.SIGKILL}, "it failed: see its standard error"
    return status == 0
