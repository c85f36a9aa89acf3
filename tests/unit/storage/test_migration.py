"""A store of the revision before, opened by a version with one more migration: all of it is upgraded, or nothing."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.resources import files
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from support import words
from support.killed import survives

from quercus.storage import AgendaEntry, ReadOnlyStore, Store, StoreError, UnknownSchema
from quercus.storage import migrate as migrating
from quercus.storage.admin.backup import back_up
from quercus.storage.schema import HEAD, REVISION_TABLE

AFTER = f"{int(HEAD) + 1:04}"
"""Number of the migration that comes next."""

NEXT = '''
"""A colour of each row that says something, and an index."""

import sqlalchemy as sa
from alembic import op

revision = "AFTER"
down_revision = "HEAD"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("log", sa.Column("colour", sa.String(20)))
    op.execute("UPDATE log SET colour = 'blue' WHERE kind = 2")
    op.create_index("ix_log_colour", "log", ["model_id", "colour"])
    with op.batch_alter_table("policy") as policy:
        policy.alter_column("max_held", type_=sa.BigInteger())
'''.replace("AFTER", AFTER).replace("HEAD", HEAD)


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make this the version with another migration, whose text is given."""

    def install(text: str) -> None:
        scripts = tmp_path / "migrations"
        # bytecode that another worker is writing may be gone before it is copied
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(str(files("quercus.storage") / "migrations"), scripts, ignore=ignored)
        (scripts / "versions" / f"{AFTER}_colour.py").write_text(text)
        monkeypatch.setattr(migrating, "SCRIPTS", str(scripts))
        monkeypatch.setattr(migrating, "HEAD", AFTER)

    return install


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store with rows, an answer and a running lease."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    with Store.open(url) as store:
        store.create_model("m", b"specification", budget=9)
        store.append_instances("m", ["a", "b", "c"], np.ones((3, 2)), [words.ANYTHING] * 3)
        store.publish("m", as_of=3, snapshot=b"tree", agenda=[AgendaEntry(i, b"", b"") for i in (1, 2)])
        first, _ = store.lease("m", "ann", 2, 600.0).queries
        words.answer(store, "m", first.number, first.token)
    return url


def contents(store: Store) -> object:
    return (
        store.read_events("m"),
        store.query_history("m"),
        store.snapshot("m"),
        store.get_query("m", 2).labeller,
    )


def stored(path: Path) -> str:
    with closing(sqlite3.connect(path)) as raw:
        return str(raw.execute(f"SELECT version_num FROM {REVISION_TABLE}").fetchone()[0])  # noqa: S608


def test_an_upgrade_changes_the_tables_and_nothing_of_what_they_hold(
    url: str, next_version: Callable[[str], None]
) -> None:
    with Store.open(url) as store:
        before = contents(store)
    next_version(NEXT)
    for _ in range(2):  # the second time there is nothing to do
        with Store.open(url) as store:
            assert contents(store) == before
            with store._database.read() as connection:
                colours = (
                    connection.exec_driver_sql("SELECT colour FROM log ORDER BY sequence").scalars().all()
                )
            assert colours == [None, None, None, "blue"]
    with Store.open(url) as store:
        assert store.append_instances("m", ["d"], np.ones((1, 2)), [b"x"]).committed_sequence == 5


def test_a_migration_that_fails_half_way_leaves_the_store_as_it_was(
    url: str, next_version: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(url) as store:
        before = contents(store)
    next_version(NEXT.replace("'blue'", "(SELECT no FROM nothing)"))
    with pytest.raises(StoreError):
        Store.open(url)
    monkeypatch.undo()
    with Store.open(url) as store:
        assert contents(store) == before


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_an_upgrade_that_is_killed_at_any_statement_leaves_the_old_schema_or_the_new(
    url: str, tmp_path: Path, next_version: Callable[[str], None]
) -> None:
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as raw:
        before = list(raw.iterdump())
    next_version(NEXT)
    kills = 0
    for statement in count(step=4):
        if survives(lambda: Store.open(url).close(), statement):
            break
        kills += 1
        with closing(sqlite3.connect(path)) as raw:
            assert list(raw.iterdump()) == before or stored(path) == AFTER
    assert kills > 3
    assert stored(path) == AFTER


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_backup_from_before_an_upgrade_is_upgraded_too(
    url: str, tmp_path: Path, next_version: Callable[[str], None]
) -> None:
    copy = tmp_path / "copy.db"
    back_up(url, copy)
    with Store.open(url) as store:
        before = contents(store)
    next_version(NEXT)
    Store.open(url).close()
    assert stored(copy) == HEAD
    with Store.open(f"sqlite:///{copy}") as store:
        assert contents(store) == before


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_store_that_may_not_be_written_is_not_upgraded(
    url: str, next_version: Callable[[str], None]
) -> None:
    next_version(NEXT)
    with pytest.raises(
        ReadOnlyStore, match=f"has schema {HEAD}, must be brought to {AFTER}, and may not be written"
    ):
        Store.open(url, read_only=True)


@pytest.mark.parametrize("revision", ["0022", "9999"])
def test_a_store_of_another_version_is_refused_with_the_way_to_bring_it_over(
    url: str, revision: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """0022 was the last revision before all migrations became one."""
    change = f"UPDATE {REVISION_TABLE} SET version_num = '{revision}'"  # noqa: S608
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(tmp_path / "store.db")) as raw, raw:
            raw.execute(change)
    else:
        request.getfixturevalue("postgres").execute(change, url.partition("?")[0].rpartition("/")[2])
    for more in ({}, {"read_only": True}) if url.startswith("sqlite") else ({},):
        with pytest.raises(
            UnknownSchema, match=f"revision {revision}.*quercus export and the quercus import of this"
        ) as e:
            Store.open(url, **more)
        assert (e.value.found, e.value.known) == (revision, HEAD)
    if url.startswith("sqlite"):
        assert stored(tmp_path / "store.db") == revision
