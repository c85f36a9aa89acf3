"""Migrations build what the code expects; connections are set up as promised; lookups use their indexes."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect
from support import words
from support.statements import statements_noted

from quercus.labelling.leasing import InstanceFilter
from quercus.storage import AgendaEntry, Policy, Store
from quercus.storage.admin.verify_schema import schema_faults
from quercus.storage.backend import OPTION
from quercus.storage.migrate import SCRIPTS, upgrade_schema
from quercus.storage.schema import HEAD, REVISION_TABLE, metadata
from quercus.storage.sqlite.backend import SqliteBackend
from quercus.storage.sqlite.dialect import LOCK_RETRY_MS


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", SCRIPTS)
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config)


def test_the_migrations_build_the_schema(url):
    engine = create_engine("sqlite://", execution_options={OPTION: SqliteBackend()})
    with engine.begin() as connection:
        upgrade_schema(connection)
        options = {"compare_type": True, "compare_server_default": True, "version_table": REVISION_TABLE}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
        assert list(schema_faults(connection)) == []
        built, first_rows = _description(connection), _rows(connection)
    engine.dispose()
    Store.open(url).close()
    fresh = create_engine(url)
    with fresh.connect() as connection:
        assert _description(connection) == built
        assert _rows(connection) == first_rows
    fresh.dispose()


def _rows(connection):
    """Return the rows that a store begins with, without statistics and its clock's identity."""
    tables = set(inspect(connection).get_table_names()) - {"lease_clock", "sqlite_stat1"}
    return {table: connection.exec_driver_sql(f"SELECT * FROM [{table}]").all() for table in sorted(tables)}  # noqa: S608


def _description(connection):
    """Return the parts that `compare_metadata` ignores: keys, cascades, conditions of indexes, table options."""
    inspector = inspect(connection)
    tables = sorted(set(inspector.get_table_names()))
    source = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'table'").all()
    options = {name: [word in sql for word in ("WITHOUT ROWID", "AUTOINCREMENT")] for name, sql in source}
    return {
        table: (
            inspector.get_pk_constraint(table),
            inspector.get_foreign_keys(table),
            inspector.get_unique_constraints(table),
            [
                {**index, "dialect_options": {k: _plain(v) for k, v in index["dialect_options"].items()}}
                for index in inspector.get_indexes(table)
            ],
            options[table],
        )
        for table in tables
    }


def _plain(condition) -> str:
    """A condition without the table name that SQLAlchemy may write before a column."""
    return re.sub(r"\w+\.", "", str(condition))


def test_head_is_the_newest_revision():
    assert scripts().get_current_head() == HEAD


def test_connections_are_set_up_as_promised(url):
    found = []

    def note(_connection, cursor, *_):
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "secure_delete")
        found.append([cursor.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names])

    with Store.open(url, busy_timeout_s=3) as store:
        calls = (
            (store.list_models, 3000),
            (
                lambda: store.create_model("m", b"", budget=0),
                LOCK_RETRY_MS,
            ),  # and then again, until the time is up
            (store.list_models, 3000),
        )
        for call, busy_ms in calls:
            found.clear()
            with statements_noted(note):
                call()
            full, fast = 2, 2
            assert found
            assert all(each == ["wal", full, 1, busy_ms, fast] for each in found), found


def test_every_lookup_uses_its_index(url):
    """Without the statistics that `teach_planner` leaves, SQLite reads the whole model to find a few ids."""
    with Store.open(url) as store:
        asked: list[tuple[str, object]] = []

        def note(_connection, _cursor, statement, parameters, _context, many):
            if statement.startswith(("SELECT", "UPDATE")):
                asked.append((statement, parameters[0] if many else parameters))

        with statements_noted(note):
            _use_everything(store)
        assert len(asked) > 30
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            for statement, parameters in asked:
                plan = [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + statement, parameters)]
                _assert_looked_up(plan, statement)


def _use_everything(store: Store) -> None:
    store.create_model("m", b"", budget=5)
    ids = [f"i{k}" for k in range(20)]
    for _ in range(2):
        store.append_instances("m", ids, np.ones((20, 2)), [words.ANYTHING] * 20)
    for agenda in (range(1, 9), range(5, 15)):
        entries = [AgendaEntry(i, b"", b"%d" % len(agenda)) for i in agenda]
        store.publish("m", as_of=20, snapshot=b"", agenda=entries)
    first, second, third = store.lease("m", "ann", 3, 60).queries
    words.answer(store, "m", first.number, first.token, words.A, 1.0)
    words.answer(store, "m", first.number, first.token, words.A, 1.0)
    store.extend("m", second.number, second.token, 60)
    store.release("m", third.number, third.token)
    store.set_policy("m", Policy(per_labeller=9, per_hour=9))
    (fourth,) = store.lease("m", "bob", 1, 60, only=InstanceFilter((), (True,) * 8)).queries
    store.postpone("m", fourth.number, fourth.token, 60)
    store.skip("m", second.number, second.token)
    words.amend(store, "m", first.number, "ann", words.C)
    store.query_history("m", first.number, 1, 5)
    store.labellers("m")
    store.opinions("m", 5)
    store.last_leased("ann")
    store.holder("m", first.number, first.token)
    store.get_instance("m", "i3")
    store.history("m", list(range(1, 20)))
    store.get_query("m", 1)
    store.read_events("m", 3, 5)
    store.get_model("m")
    store.next_change_s("m")
    store.next_change_s()


def _assert_looked_up(plan: list[str], statement: str) -> None:
    for step in plan:
        if re.match(r"SCAN (log|query|query_history|past|origin)\b", step):
            raise AssertionError(f"{step} in {statement}")
        if re.match(
            r"SEARCH (log|origin|query_history|past) USING (PRIMARY KEY|INDEX \w+) \(model_id=\?\)$", step
        ):
            raise AssertionError(f"{step} in {statement}")


def test_the_migrations_are_packages():
    """So that setuptools puts them into the wheel."""
    folder = Path(scripts().dir)
    assert (folder / "__init__.py").is_file()
    assert (folder / "versions" / "__init__.py").is_file()
    assert list((folder / "versions").glob("0001_*.py"))
