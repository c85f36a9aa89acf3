"""Sees what SQL is executed, by any store of this process."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event

from quercus.storage.postgres import one_message
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

    exchange = one_message.exchange_statements

    def exchanged(connection: Connection, asked: Sequence[Any], **how: Any) -> Any:
        for statement, values in asked:  # SQLAlchemy sees nothing of these either
            text = one_message.text_of(statement)
            note(connection, None, text.text, text.constants | values, None, False)
        return exchange(connection, asked, **how)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Prepared, "run", noted)
            patch.setattr(one_message, "exchange_statements", exchanged)
            yield
    finally:
        event.remove(Engine, "before_cursor_execute", note)
