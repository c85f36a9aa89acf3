"""Damage of an SQLite file, and comparison of its tables, indices, triggers and views with those of Quercus."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import StaticPool

from quercus.storage.schema import REVISION_TABLE_SQL, metadata
from quercus.storage.sqlite.texts import driver_of

TRIGGERS: Final = "SELECT type, name, tbl_name FROM sqlite_schema WHERE type = 'trigger' ORDER BY name"
_OBJECTS: Final = (
    "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema "
    "WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
)
_CLAUSES: Final = re.compile(r"\b(CHECK|GENERATED|AS|STRICT|COLLATE|CONFLICT|WITHOUT ROWID|AUTOINCREMENT)\b")
"""Words in a table's SQL that change what may be stored or read, and that no pragma of SQLite lists."""


def foreign_rules(connection: Connection) -> list[tuple[str, str, str, bool]]:
    """See `quercus.storage.backend.Backend`; all triggers are refused."""
    return [(*each, True) for each in driver_of(connection).execute(TRIGGERS)]


def file_faults(connection: Connection, most: int) -> Iterator[str]:
    """See `quercus.storage.backend.Backend`."""
    for (said,) in connection.exec_driver_sql(f"PRAGMA integrity_check({most})"):
        if said != "ok":
            yield f"the file is damaged: {said}"
    for table, row, parent, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        yield f"row {row} of table {table} refers to a row of {parent} that is not there"


def object_faults(connection: Connection) -> Iterator[tuple[str, bool]]:
    """See `quercus.storage.backend.Backend`."""
    expected, found = _expected_objects(), _objects_of(driver_of(connection))
    for kind, name in sorted(found.keys() - expected.keys()):
        if kind != "trigger":
            restricts = kind == "index" and found[kind, name][1][1] == str(True)
            what = f"unique {kind}" if restricts else kind
            yield f"the database has a {what} {name!r}, which is not of Quercus", restricts
    for (kind, name), content in sorted(expected.items()):
        if (kind, name) not in found:
            yield f"the {kind} {name} is missing", True
        elif found[kind, name] != content:
            differs = _first_difference(content, found[kind, name])
            yield f"the {kind} {name} is not as this version makes it{differs}", True


def _first_difference(expected: tuple[Any, ...], found: tuple[Any, ...]) -> str:
    """Return the first difference between two objects, if it can be described briefly."""
    for part, other in zip(expected, found, strict=True):
        missing, more = sorted(set(part) - set(other)), sorted(set(other) - set(part))
        if missing or more:
            return f": it has {more[:1] or 'nothing'} in place of {missing[:1] or 'nothing'}"
    return ""


@cache
def _expected_objects() -> dict[tuple[str, str], tuple[Any, ...]]:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    with engine.connect() as connection:
        metadata.create_all(connection)
        connection.exec_driver_sql(REVISION_TABLE_SQL)
        found = _objects_of(driver_of(connection))
    engine.dispose()
    return found


def _objects_of(driver: sqlite3.Connection) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Return the properties that matter of each object, independent of the wording of its SQL."""
    with closing(driver.cursor()) as cursor:
        listed = cursor.execute(_OBJECTS).fetchall()
        return {
            (kind, name): _object_content(cursor, kind, name, table, sql) for kind, name, table, sql in listed
        }


def _object_content(
    cursor: sqlite3.Cursor, kind: str, name: str, table: str, sql: str
) -> tuple[tuple[Any, ...], ...]:
    def rows(pragma: str, *places: int) -> tuple[Any, ...]:
        found = cursor.execute(f"SELECT * FROM pragma_{pragma}(?)", (name,)).fetchall()  # noqa: S608 - ours
        return tuple(sorted(str(tuple(row[place] for place in places)) for row in found))

    words = re.sub(r"'[^']*'|\"[^\"]*\"", "", sql).upper()
    if kind == "table":
        # name, type, whether it may be null, default, place in the key, whether it is hidden or generated
        columns = rows("table_xinfo", 1, 2, 3, 4, 5, 6)
        references = rows("foreign_key_list", 2, 3, 4, 5, 6)
        return columns, references, tuple(sorted(_CLAUSES.findall(words)))
    if kind == "index":
        condition = words.partition(" WHERE ")[2]
        partial = " ".join(re.sub(r"\w+\.|[()]", " ", condition).split())
        unique = "UNIQUE" in words.partition(" ON ")[0]
        return rows("index_xinfo", 0, 2, 3, 4, 5), (table, str(unique), partial)
    return ((sql,),)
