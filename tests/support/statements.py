"""Sees what SQL is executed, by any store of this process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event

from quercus.storage.prepared import Prepared


@contextmanager
def statements_noted(note: Callable[..., Any]) -> Iterator[None]:
    """Call `note(connection, cursor, statement, parameters, context, many)` before each statement."""
    run = Prepared.run

    def noted(self: Prepared, connection: Connection, **values: Any) -> Any:
        if connection.dialect.name == "sqlite":  # its driver runs the text, and SQLAlchemy sees nothing of it
            given = self._constants | values
            cursor = connection.connection.cursor()
            note(connection, cursor, self._text, tuple(given[name] for name in self._order), None, False)
        return run(self, connection, **values)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Prepared, "run", noted)
            yield
    finally:
        event.remove(Engine, "before_cursor_execute", note)
