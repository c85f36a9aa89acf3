"""Checks that a store is consistent: the file, its references, and the relations between its tables."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, NullPool, Select, create_engine, exists, func, select

from quercus.storage.admin.verify_history import history_faults
from quercus.storage.dialect import dialect_for
from quercus.storage.migrate import stored_revision
from quercus.storage.prepared import driver_of
from quercus.storage.queries.records import QueryState
from quercus.storage.records import EventKind
from quercus.storage.schema import HEAD, LIVE, AnyRow, log, model, query
from quercus.storage.sqlite.dialect import SqliteDialect

MAX_FAULTS = 100
CONCERNS_INSTANCE = log.c.instance.is_not(None)  # so that the index of label events applies


@dataclass(frozen=True, slots=True)
class StoreFault:
    """Something that is wrong with a store.

    Attributes
    ----------
    text : str
        In words.
    is_damage : bool
        True if the file or the evidence is damaged: data are lost, or indistinguishable from wrong ones. Else it is
        a remark on the history of the queries (holders and budgets): no evidence, and so no tree, depends
        on it.
    """

    text: str
    is_damage: bool = True

    def __str__(self) -> str:
        return self.text


def verify_store(url: str) -> list[StoreFault]:
    """Return the faults of a store, damage first; an empty list if it is consistent.

    Reads one state of the store and writes nothing, so it may run on a backup, and while servers use the store. Of a
    store with an older schema only the file and its references are looked at.

    Raises
    ------
    StoreError
        The store is not there, is none, or cannot be read at all.
    """
    dialect = dialect_for(url, 5.0)
    dialect.check_exists()
    if isinstance(dialect, SqliteDialect):
        path = dialect.path
        engine = create_engine("sqlite://", creator=lambda: open_read_only(path), poolclass=NullPool)
    else:
        engine = dialect.create_engine()
    try:
        with engine.connect() as connection:
            connection.execution_options(**dialect.read_options)
            if isinstance(dialect, SqliteDialect):
                begin_reading(driver_of(connection))
            current = stored_revision(connection, dialect.store_name) == HEAD
            damage = [StoreFault(text) for text in islice(_find_damage(connection, current), MAX_FAULTS)]
            remarks = islice(_find_remarks(connection), MAX_FAULTS) if current else ()
            return damage + [StoreFault(text, is_damage=False) for text in remarks]
    except dialect.driver_errors as error:
        raise dialect.translate_error(error) from error
    finally:
        engine.dispose()


def open_read_only(path: Path) -> sqlite3.Connection:
    """Connect to a file that nothing is written to."""
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=5.0, isolation_level=None)


def begin_reading(driver: sqlite3.Connection) -> None:
    """Read one state of the file from now on, whoever writes to it meanwhile."""
    driver.execute("BEGIN")
    driver.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # with the first read it begins


def _find_damage(connection: Connection, current: bool) -> Iterator[str]:
    if connection.dialect.name == "sqlite":
        yield from _damage_of_file(connection)
    for row in _verify_models(connection) if current else ():
        for said in _damage_of_model(connection, row):
            yield f"model {row.name}: {said}"


def _damage_of_file(connection: Connection) -> Iterator[str]:
    """Yield the damage of an SQLite file; database servers find theirs themselves."""
    for (said,) in connection.exec_driver_sql(f"PRAGMA integrity_check({MAX_FAULTS})"):
        if said != "ok":
            yield f"the file is damaged: {said}"
    for table, row, parent, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        yield f"row {row} of table {table} refers to a row of {parent} that is not there"


def _find_remarks(connection: Connection) -> Iterator[str]:
    for row in _verify_models(connection):
        for said in _remarks_on_model(connection, row):
            yield f"model {row.name}: {said}"


def _verify_models(connection: Connection) -> list[AnyRow]:
    return list(connection.execute(select(model).where(LIVE).order_by(model.c.name)))


def _damage_of_model(connection: Connection, row: AnyRow) -> Iterator[str]:
    mine = log.c.model_id == row.id
    first, last, count = connection.execute(
        select(func.min(log.c.sequence), func.max(log.c.sequence), func.count()).where(mine)
    ).one()
    if count and (first != 1 or last != count):
        yield f"its log has {count} events numbered {first} to {last}: some are missing"
    if (last or 0) != row.sequence_committed:
        yield f"it counts {row.sequence_committed} events, its log ends at {last or 0}"
    if row.sequence_grown > row.sequence_committed:
        yield f"its tree knows {row.sequence_grown} events, it has {row.sequence_committed}"
    kinds = _compare_counts(connection, select(log.c.kind, func.count()).where(mine).group_by(log.c.kind))
    if kinds.get(EventKind.INSTANCE, 0) != row.instance_count:
        yield f"it counts {row.instance_count} instances, its log has {kinds.get(EventKind.INSTANCE, 0)}"
    yield from _faults_of_statements(connection, row)


def _remarks_on_model(connection: Connection, row: AnyRow) -> Iterator[str]:
    asked = query.c.model_id == row.id
    states = _compare_counts(
        connection, select(query.c.state, func.count()).where(asked).group_by(query.c.state)
    )
    spent = row.queries_answered + states.get(QueryState.LEASED, 0)
    if spent > row.budget:
        yield f"{spent} queries are answered or leased, its budget is {row.budget}"
    yield from history_faults(connection, row.id)


def _faults_of_statements(connection: Connection, row: AnyRow) -> Iterator[str]:
    """Yield statements that no event with the combined label follows, and statements about no instance."""
    joint, mine = (
        log.alias("joint"),
        (log.c.model_id == row.id, log.c.kind == EventKind.STATEMENT, CONCERNS_INSTANCE),
    )
    same = (joint.c.model_id == row.id, joint.c.instance == log.c.instance, joint.c.query.is_(None))
    follows = exists().where(*same, joint.c.kind == EventKind.CORRECTION, joint.c.sequence > log.c.sequence)
    for (sequence,) in connection.execute(select(log.c.sequence).where(*mine, ~follows)):
        yield f"event {sequence} states a label, and no later event combines it with the others"
    of = log.alias("of")
    there = exists().where(
        of.c.model_id == row.id, of.c.sequence == log.c.instance, of.c.kind == EventKind.INSTANCE
    )
    for (sequence,) in connection.execute(select(log.c.sequence).where(*mine, ~there)):
        yield f"event {sequence} states a label, but its instance does not exist"


def _compare_counts(connection: Connection, wanted: Select[Any]) -> dict[int, int]:
    return {int(key): int(count) for key, count in connection.execute(wanted)}
