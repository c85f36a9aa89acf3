"""Sees what SQL is executed, by any store of this process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event


@contextmanager
def statements_noted(note: Callable[..., Any]) -> Iterator[None]:
    """Call `note(connection, cursor, statement, parameters, context, many)` before each statement."""
    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", note)
