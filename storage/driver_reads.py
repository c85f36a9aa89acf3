"""Statements that the driver itself executes: to make one ready takes SQLAlchemy longer than it takes to run it."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Delete, Insert, Select, Update

from quercus.storage.backend import backend_of


def read_each(connection: Connection, *asked: tuple[Select[Any], Mapping[str, Any]]) -> list[Sequence[Any]]:
    """The rows of each statement, which is made once; they are executed in order."""
    return backend_of(connection).read_each(connection, asked)


def commit_with(connection: Connection, change: Insert | Update | Delete, values: Mapping[str, Any]) -> None:
    """Execute a last statement, and commit at once where that saves a journey to a database server."""
    backend_of(connection).commit_with(connection, change, values)
