"""Creates the schema of a store, or upgrades it to that of this version.

A new store is created from `schema.metadata`; migrations, which take ten times as long, upgrade stores of revisions
before `HEAD`.

To change the schema, edit `schema` (for a column of the log, `quercus.labelling.event.Event`), and add
`migrations/versions/NNNN_what.py` by hand, where the number is the revision. A test compares a new store with what the
migrations build.
"""

from typing import Any

from sqlalchemy import Connection, inspect, text

from quercus.storage.admin.verify_schema import refuse_foreign_rules
from quercus.storage.clocks import DATABASE
from quercus.storage.engine import Database
from quercus.storage.errors import CorruptStore, ReadOnlyStore, StoreError, UnknownSchema
from quercus.storage.inserts import insert_rows
from quercus.storage.schema import (
    HEAD,
    REVISION_TABLE,
    REVISION_TABLE_SQL,
    change_counter,
    lease_clock,
    metadata,
)

SCRIPTS = "quercus.storage:migrations"


def ensure_schema(database: Database, *, create: bool = True) -> None:
    """Create or upgrade the tables in one transaction; several processes may do so at once.

    Raises
    ------
    StoreError
        If there are no tables, and `create` is False.
    UnknownSchema
        If this version does not know the revision of the store.
    CorruptStore
        If the database is not a store, or has triggers that may change what is stored.
    """
    if database.dialect.read_only:
        _check_schema(database)
        return
    with database.write() as connection:
        database.dialect.lock_schema(connection)
        found = stored_revision(connection, database.dialect.store_name)
        refuse_foreign_rules(connection, database.dialect.store_name)
        if found is None:
            if not create:
                raise StoreError(f"{database.dialect.store_name} has no tables: it is no store yet")
            _create_schema(connection)
            if database.dialect.own_clock(None) is not None:
                insert_rows(connection, lease_clock, ["id", "boot", "offset"], [(1, DATABASE, 0.0)])
        elif found != HEAD:
            check_known(found, database.dialect.store_name)
            upgrade_schema(connection)
        if found != HEAD:
            database.dialect.teach_planner(connection)
        database.dialect.resume_clock(connection)
    database.remember_files()


def _check_schema(database: Database) -> None:
    """Raise if the schema of a read-only store is not the one of this version."""
    name = database.dialect.store_name
    with database.read() as connection:
        found = stored_revision(connection, name)
        refuse_foreign_rules(connection, name)
    if found is None:
        raise ReadOnlyStore(f"{name} has no tables, and cannot be written to make them")
    if found != HEAD:
        check_known(found, name)
        raise ReadOnlyStore(f"{name} has schema {found}, must be brought to {HEAD}, and may not be written")
    database.remember_files()


def stored_revision(connection: Connection, store: str) -> str | None:
    """Return the schema revision of the store; None if it is new."""
    tables = inspect(connection).get_table_names()
    if REVISION_TABLE not in tables:
        if tables:
            raise CorruptStore(
                f"{store} is a database, but not a store of quercus (it has a table {tables[0]!r})"
            )
        return None
    revision = connection.execute(text(f"SELECT version_num FROM {REVISION_TABLE}")).scalar()  # noqa: S608
    return None if revision is None else str(revision)


def _create_schema(connection: Connection) -> None:
    metadata.create_all(connection)
    insert_rows(connection, change_counter, ["id", "number"], [(1, 1)])
    connection.exec_driver_sql(REVISION_TABLE_SQL)
    connection.execute(text(f"INSERT INTO {REVISION_TABLE} VALUES (:head)"), {"head": HEAD})  # noqa: S608


def check_known(found: str, store: str) -> None:
    """Raise `UnknownSchema` for a revision that this version does not know."""
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    known = ScriptDirectory.from_config(_alembic_config()).walk_revisions()
    if found not in {script.revision for script in known}:
        raise UnknownSchema(store, found, HEAD)


def upgrade_schema(connection: Connection) -> None:
    """Run all migrations after the revision of a database; for an empty one, all of them."""
    from alembic import command  # noqa: PLC0415

    config = _alembic_config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _alembic_config() -> Any:
    # imported only if a store has another revision: the import takes longer than opening a store
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", SCRIPTS)
    config.set_main_option("path_separator", "os")
    return config
