"""Sees what SQL is executed, by any store of this process."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event

from quercus.storage.backend import Backend
from quercus.storage.postgres.backend import PostgresBackend
from quercus.storage.postgres.texts import text_of, text_together
from quercus.storage.prepared import Prepared, Write
from quercus.storage.sqlite.backend import SqliteBackend


@contextmanager
def statements_noted(note: Callable[..., Any]) -> Iterator[None]:
    """Call `note(connection, cursor, statement, parameters, context, many)` before each statement."""
    event.listen(Engine, "before_cursor_execute", note)
    try:
        with pytest.MonkeyPatch.context() as patch:
            for backend in (
                SqliteBackend,
                PostgresBackend,
            ):  # their drivers run prepared statements themselves
                _note_driver(patch, backend, note)
            yield
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def _note_driver(patch: pytest.MonkeyPatch, backend: type[Backend], note: Callable[..., Any]) -> None:
    fetch, write_together = backend.fetch, backend.write_together

    def noted(connection: Connection, text: str, values: Any, many: bool = False) -> None:
        note(connection, connection.connection.cursor(), text, values, None, many)

    def fetch_noted(
        self: Backend, connection: Connection, prepared: Prepared, values: Mapping[str, Any]
    ) -> Any:
        if backend is SqliteBackend:
            given = {**prepared._constants, **values}
            noted(connection, prepared._text, tuple(given[name] for name in prepared._order))
        else:
            noted(connection, text_of(prepared)[0], values)
        return fetch(self, connection, prepared, values)

    def write_noted(self: Backend, connection: Connection, writes: Sequence[Write]) -> None:
        if backend is SqliteBackend:
            for prepared, rows in writes:
                sent = [tuple(row[name] for name in prepared._order) for row in rows]
                noted(connection, prepared._text, sent, many=True)
        else:
            noted(connection, text_together(tuple(prepared for prepared, _ in writes)), writes)
        write_together(self, connection, writes)

    patch.setattr(backend, "fetch", fetch_noted)
    patch.setattr(backend, "write_together", write_noted)
