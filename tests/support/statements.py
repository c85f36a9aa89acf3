"""Sees what SQL is executed, by any store of this process."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, Table, event
from sqlalchemy.sql import Executable

from quercus.storage.backend import Backend
from quercus.storage.postgres.backend import PostgresBackend
from quercus.storage.postgres.texts import insert_of_rows, text_of, update_of_rows
from quercus.storage.sqlite import texts as sqlite_texts
from quercus.storage.sqlite.backend import SqliteBackend, _insert_text


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
    fetch, update_rows, insert_rows = backend.fetch, backend.update_rows, backend.insert_rows

    def noted(connection: Connection, text: str, values: Any, many: bool = False) -> None:
        note(connection, connection.connection.cursor(), text, values, None, many)

    def fetch_noted(
        self: Backend, connection: Connection, statement: Executable, values: Mapping[str, Any]
    ) -> Any:
        if backend is SqliteBackend:
            text, constants, order, _ = sqlite_texts.text_of(statement)
            given = {**constants, **values}
            noted(connection, text, tuple(given[name] for name in order))
        else:
            noted(connection, text_of(statement)[0], values)
        return fetch(self, connection, statement, values)

    def update_noted(
        self: Backend, connection: Connection, statement: Executable, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        if backend is SqliteBackend:
            text = sqlite_texts.text_of(statement)
            noted(connection, text.text, [tuple(row[name] for name in text.order) for row in rows], many=True)
        else:
            noted(connection, update_of_rows(statement).text, rows)
        update_rows(self, connection, statement, rows)

    def insert_noted(
        self: Backend, connection: Connection, table: Table, columns: Sequence[str], rows: Iterable[Any]
    ) -> None:
        sent = [tuple(row) for row in rows]
        if sent and backend is SqliteBackend:
            noted(connection, _insert_text(table, tuple(columns)), sent, many=True)
        elif sent:
            noted(connection, insert_of_rows(table, tuple(columns)).text, sent)
        insert_rows(self, connection, table, columns, sent)

    patch.setattr(backend, "fetch", fetch_noted)
    patch.setattr(backend, "update_rows", update_noted)
    patch.setattr(backend, "insert_rows", insert_noted)
