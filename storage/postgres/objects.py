"""Comparison of the tables, indices, triggers and rules of a PostgreSQL database with those of Quercus."""

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Connection, inspect

from quercus.storage.schema import REVISION_TABLE, metadata

OURS: Final = (*(table.name for table in metadata.sorted_tables), REVISION_TABLE)
# Triggers and rules that Quercus did not make, and whether they may change a row before it is stored. Those of foreign
# keys are internal.
_TRIGGERS: Final = """
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
_COLUMNS: Final = """
SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE a.attgenerated <> '' AND c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%s)
ORDER BY 1, 2
"""


# Indices that belong to no constraint. SQLAlchemy's own inspection expects text, but these connections are binary.
_INDICES: Final = """
SELECT t.relname, i.relname, x.indisunique FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
WHERE t.relnamespace = current_schema()::regnamespace AND t.relname = ANY(%s)
AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = x.indexrelid AND c.contype IN ('p', 'u'))
"""


def foreign_rules(connection: Connection) -> list[tuple[str, str, str, bool]]:
    """See `quercus.storage.backend.Backend`.

    Triggers that run after a row is stored are allowed: tools for replication and audits create them.
    """
    found = _rows(connection, _TRIGGERS, 3)
    return [(str(kind), str(name), str(table), bool(refused)) for kind, name, table, refused in found]


def object_faults(connection: Connection) -> Iterator[tuple[str, bool]]:
    """See `quercus.storage.backend.Backend`; all differences are damage."""
    return ((said, True) for said in _differences(connection))


def _differences(connection: Connection) -> Iterator[str]:
    for table, column in _rows(connection, _COLUMNS, 1):
        yield f"column {column} of table {table} is generated, which is not of Quercus"
    looked = inspect(connection)
    listed = _rows(connection, _INDICES, 1)
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


def _rows(connection: Connection, statement: str, lists: int) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.exec_driver_sql(statement, (list(OURS),) * lists)]
