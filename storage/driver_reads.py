"""Reading by the driver's own cursor: to make a statement ready takes SQLAlchemy longer than it takes to run it."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select


def read_each(connection: Connection, *asked: tuple[Select[Any], Mapping[str, Any]]) -> list[Sequence[Any]]:
    """The rows of each statement, which is made once; they are executed in order."""
    if connection.dialect.name == "postgresql":
        from quercus.storage.postgres.driver_reads import fetch  # noqa: PLC0415  (a separate extra)

        return list(fetch(connection, asked))
    return [connection.execute(statement, values).all() for statement, values in asked]
