"""Triggers and rules of others on the tables of a store, and the differences of its objects from the schema's."""

from collections.abc import Iterator

from sqlalchemy import Connection

from quercus.storage.backend import backend_of
from quercus.storage.errors import CorruptStore


def foreign_rules(connection: Connection) -> list[tuple[str, bool]]:
    """Return, in words, the triggers and rules on tables of the store, each with whether it is refused.

    Quercus has none. It costs a look into the list of the database's objects.
    """
    return [
        (said_of_rule(kind, name, table), is_refused)
        for kind, name, table, is_refused in backend_of(connection).foreign_rules(connection)
    ]


def said_of_rule(kind: str, name: str, table: str) -> str:
    """Return in words that a table has a trigger or a rule of others."""
    return f"has a {kind} {name!r} on table {table}, which is not of Quercus and may change what is stored"


def refuse_foreign_rules(connection: Connection, store: str) -> None:
    """Raise `CorruptStore` if a trigger or a rule on a table of the store may change what is stored."""
    for said, is_refused in foreign_rules(connection):
        if is_refused:
            raise CorruptStore(f"{store} {said}: remove it, or restore a backup; quercus check tells more")


def schema_faults(connection: Connection) -> Iterator[tuple[str, bool]]:
    """Yield, in words, how the objects of a database of this version's revision differ from the schema.

    Each with whether it is damage. Tables, views and indices of others change nothing that Quercus stores or reads.
    """
    for said, is_refused in foreign_rules(connection):
        yield f"the database {said}", is_refused
    yield from backend_of(connection).object_faults(connection)
