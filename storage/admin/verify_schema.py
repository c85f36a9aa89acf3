"""Foreign triggers and rules on the tables of a store, and differences between its objects and the schema."""

from collections.abc import Iterator

from sqlalchemy import Connection

from quercus.storage.backend import backend_of
from quercus.storage.errors import CorruptStore


def foreign_rules(connection: Connection) -> list[tuple[str, bool]]:
    """Return the triggers and rules on tables of the store, as texts, each with whether it must be refused.

    Quercus itself has none.
    """
    return [
        (said_of_rule(kind, name, table), is_refused)
        for kind, name, table, is_refused in backend_of(connection).foreign_rules(connection)
    ]


def said_of_rule(kind: str, name: str, table: str) -> str:
    """Return the message that a table has a foreign trigger or rule."""
    return f"has a {kind} {name!r} on table {table}, which is not of Quercus and may change what is stored"


def refuse_foreign_rules(connection: Connection, store: str) -> None:
    """Raise `CorruptStore` if a trigger or a rule on a table of the store may change what is stored."""
    for said, is_refused in foreign_rules(connection):
        if is_refused:
            raise CorruptStore(f"{store} {said}: remove it, or restore a backup; quercus check tells more")


def schema_faults(connection: Connection) -> Iterator[tuple[str, bool]]:
    """Yield the differences between a database and this version's schema, as texts, each with whether it is damage.

    Foreign tables, views and indices are not damage: they change nothing that Quercus stores or reads.
    """
    for said, is_refused in foreign_rules(connection):
        yield f"the database {said}", is_refused
    yield from backend_of(connection).object_faults(connection)
