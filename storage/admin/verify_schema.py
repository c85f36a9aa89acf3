"""Comparison of the tables, indices, triggers and views of a store with those of this version's schema."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, create_engine, inspect
from sqlalchemy.pool import StaticPool

from quercus.storage.errors import CorruptStore
from quercus.storage.prepared import driver_of
from quercus.storage.schema import REVISION_TABLE, REVISION_TABLE_SQL, metadata

OURS: Final = (*(table.name for table in metadata.sorted_tables), REVISION_TABLE)
TRIGGERS: Final = "SELECT type, name, tbl_name FROM sqlite_schema WHERE type = 'trigger' ORDER BY name"
_OBJECTS: Final = (
    "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema "
    "WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
)
_CLAUSES: Final = re.compile(r"\b(CHECK|GENERATED|AS|STRICT|COLLATE|CONFLICT|WITHOUT ROWID|AUTOINCREMENT)\b")
"""Words of a table's text that change what may be stored or is read, and stand in no list of SQLite."""

# Triggers and rules that Quercus did not make, and whether they may change a row before it is stored. Those of foreign
# keys are internal.
_POSTGRES_TRIGGERS: Final = """
SELECT 'trigger', t.tgname, c.relname, t.tgtype & 66 <> 0 FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%s)
UNION ALL
SELECT 'rule', r.rulename, c.relname, true FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
WHERE c.relkind <> 'v' AND c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%s)
UNION ALL
SELECT 'row security', 'enabled', c.relname, true FROM pg_class c
WHERE c.relrowsecurity AND c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%s)
ORDER BY 1, 2, 3
"""
_POSTGRES_COLUMNS: Final = """
SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE a.attgenerated <> '' AND c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%s)
ORDER BY 1, 2
"""


# Indices that belong to no constraint. SQLAlchemy's own look at them reads text, and connections are binary.
_POSTGRES_INDICES: Final = """
SELECT t.relname, i.relname, x.indisunique FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
WHERE t.relnamespace = current_schema()::regnamespace AND t.relname = ANY(%s)
AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = x.indexrelid AND c.contype IN ('p', 'u'))
"""


def foreign_rules(connection: Connection) -> list[tuple[str, bool]]:
    """Return, in words, the triggers and rules on tables of the store, each with whether it is refused.

    Quercus has none. It costs a look into the list of the database's objects. On PostgreSQL triggers that run after a
    row is stored are allowed: tools for replication and audits make them.
    """
    if connection.dialect.name == "sqlite":
        found = [(*each, True) for each in driver_of(connection).execute(TRIGGERS)]
    else:
        found = _driver_rows(connection, _POSTGRES_TRIGGERS, 3)
    return [(said_of_rule(*each[:3]), bool(each[3])) for each in found]


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
    if connection.dialect.name == "sqlite":
        yield from _sqlite_faults(driver_of(connection))
    else:
        for said in _postgres_faults(connection):
            yield said, True


def _sqlite_faults(driver: sqlite3.Connection) -> Iterator[tuple[str, bool]]:
    expected, found = _expected_objects(), _sqlite_objects(driver)
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
    """Return the first part of an object that differs, as far as it can be told briefly."""
    for part, other in zip(expected, found, strict=True):
        missing, more = sorted(set(part) - set(other)), sorted(set(other) - set(part))
        if missing or more:
            return f": it has {more[:1] or 'nothing'} in the place of {missing[:1] or 'nothing'}"
    return ""


@cache
def _expected_objects() -> dict[tuple[str, str], tuple[Any, ...]]:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    with engine.connect() as connection:
        metadata.create_all(connection)
        connection.exec_driver_sql(REVISION_TABLE_SQL)
        found = _sqlite_objects(driver_of(connection))
    engine.dispose()
    return found


def _sqlite_objects(driver: sqlite3.Connection) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Return what matters of each object, however its text is written."""
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


def _postgres_faults(connection: Connection) -> Iterator[str]:
    for table, column in _driver_rows(connection, _POSTGRES_COLUMNS, 1):
        yield f"column {column} of table {table} is generated, which is not of Quercus"
    looked = inspect(connection)
    listed = _driver_rows(connection, _POSTGRES_INDICES, 1)
    there = set(looked.get_table_names())
    for table in metadata.sorted_tables:
        if table.name not in there:
            yield f"the table {table.name} is missing"
            continue
        columns = {each["name"]: each for each in looked.get_columns(table.name)}
        for column in table.columns:
            found = columns.pop(column.name, None)
            wanted = column.type.compile(connection.dialect).split(" COLLATE")[0]
            if found is None:
                yield f"column {column.name} of table {table.name} is missing"
            elif found["type"].compile(connection.dialect).split(" COLLATE")[0] != wanted:
                yield f"column {column.name} of table {table.name} is {found['type']}, must be {wanted}"
            elif bool(found["nullable"]) != bool(column.nullable):
                may = "may" if found["nullable"] else "may not"
                yield f"column {column.name} of table {table.name} {may} be null"
        for name in columns:
            yield f"table {table.name} has a column {name!r}, which is not of Quercus"
        for check in looked.get_check_constraints(table.name):
            yield f"table {table.name} has a check {check['name']!r}, which is not of Quercus"
        indices = {str(name): bool(unique) for of, name, unique in listed if of == table.name}
        for index in table.indexes:
            if indices.get(str(index.name)) != bool(index.unique):
                yield f"the index {index.name} is missing, or not as this version makes it"
        others = indices.keys() - {index.name for index in table.indexes}
        for name in sorted(name for name in others if indices[name]):
            yield f"table {table.name} has a unique index {name!r}, which is not of Quercus"


def _driver_rows(connection: Connection, statement: str, lists: int) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.exec_driver_sql(statement, (list(OURS),) * lists)]
