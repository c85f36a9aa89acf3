"""Wait for what another thread or process brings about."""

import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 90.0  # what takes a second on a machine at rest takes many on a busy one; a test has two minutes


def until(holds: Callable[[], Any], what: str = "this to be true", *, seconds: float = PATIENCE_S) -> Any:
    """Return what `holds` returns as soon as that is true; fail when it is not true in time."""
    __tracebackhide__ = True  # pytest shows the line that waits
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s in vain for {what}"
        time.sleep(0.01)
    return found
