"""A function that dies by SIGKILL at a chosen statement of SQL, in a process forked for it."""

import os
import signal
import traceback
from collections.abc import Callable
from itertools import count

from sqlalchemy import event
from sqlalchemy.engine import Engine


def survives(function: Callable[[], object], statement: int) -> bool:
    """Return whether a function ends before the statement with this number, from 0; a commit counts as one.

    A function that fails fails the test.
    """
    child = os.fork()
    if child == 0:
        statements = count()

        def strike(*_: object) -> None:
            if next(statements) == statement:
                os.kill(os.getpid(), signal.SIGKILL)

        code = 1
        try:
            event.listen(Engine, "before_cursor_execute", strike)
            event.listen(Engine, "commit", strike)
            function()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status in {0, signal.SIGKILL}, "it failed: see its standard error"
    return status == 0
