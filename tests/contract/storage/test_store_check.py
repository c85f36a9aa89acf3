"""`quercus check` reads the history of queries: what cannot have happened is named."""

import sqlite3
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from support import words

from quercus.storage import AgendaEntry, CorruptStore, Store, file_url
from quercus.storage.admin.verify import verify_store
from quercus.storage.dialect import dialect_for


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Queries 1 to 6: answered, refused, skipped and taken again, expired and open, withdrawn, leased."""
    file, now = tmp_path / "store.db", [1000.0]
    with Store.open(file_url(file), clock=lambda: now[0], steady=lambda: now[0]) as store:
        store.create_model("m", b"specification", budget=9)
        store.append_instances("m", [str(i) for i in range(6)], np.ones((6, 2)), [words.ANYTHING] * 6)
        agenda = [AgendaEntry(i, b"asked", b"reason") for i in range(1, 7)]
        store.publish("m", as_of=6, snapshot=b"tree", agenda=agenda)
        first, second, third, _ = store.lease("m", "ann", 4, 60).queries
        words.answer(store, "m", first.number, first.token, words.A, 0.9)
        words.refuse(store, "m", second.number, second.token)
        store.skip("m", third.number, third.token)
        now[0] += 100
        assert [each.number for each in store.lease("m", "bob", 1, 60).queries] == [3]
        store.publish("m", as_of=8, snapshot=b"tree", agenda=[agenda[2], agenda[3], agenda[5]])
        store.lease("m", "eve", 5, 600)
    return file


def test_what_happened_is_sound(path: Path) -> None:
    assert verify_store(file_url(path)) == []


def test_of_another_schema_only_the_file_and_its_triggers_are_looked_at(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE quercus_revision SET version_num = '0022'")
        raw.execute("DELETE FROM query_history")
        raw.execute("CREATE TRIGGER spy AFTER INSERT ON log BEGIN DELETE FROM query; END")
    raw.close()
    (fault,) = verify_store(file_url(path))
    assert fault.text.startswith("the database has a trigger 'spy' on table log, which is not of Quercus")


@pytest.mark.parametrize(
    ("tampered", "words"),
    [
        (
            "UPDATE query SET state = 1, token = NULL WHERE number = 6",
            "query 6 is OPEN, its history ends with LEASED",
        ),
        ("UPDATE query SET token = 'x' WHERE number = 6", "query 6 is held under another lease"),
        (
            "UPDATE query_history SET state = 4 WHERE number = 1 AND step = 7",
            "query 1 was LEASED, ANSWERED and then",
        ),
        ("DELETE FROM query_history WHERE number = 1 AND step = 2", None),
        (
            "DELETE FROM query_history WHERE number = 1 AND step = 1",
            "query 1 was LEASED before it was opened",
        ),
        ("DELETE FROM query_history WHERE number = 1", "query 1 has no history"),
        ("DELETE FROM query_history WHERE number = 4 AND step = 4", "query 4 was leased to two at once"),
        (
            "UPDATE query_history SET token = 'x' WHERE number = 2 AND step = 8",
            "query 2 was REFUSED by one while",
        ),
        (
            "UPDATE query_history SET clock = 5 WHERE number = 2 AND step = 8",
            "lies before the one that was taken",
        ),
    ],
)
def test_what_cannot_be_is_named(path: Path, tampered: str, words: str | None) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute(tampered)
    raw.close()
    faults = verify_store(file_url(path))
    if (
        words is None
    ):  # a late answer, after a lease that is not in the history, cannot be told from a sound one
        assert faults == []
        return
    assert any(words in fault.text for fault in faults), faults
    assert all(fault.text.startswith("model m: ") and not fault.is_damage for fault in faults)


@pytest.mark.parametrize("moment", ["BEFORE", "AFTER"])
def test_a_trigger_of_others_is_found_and_refused(store_url: str, moment: str) -> None:
    """After a row is stored, PostgreSQL may do what tools for replication and audits want."""
    Store.open(store_url).close()
    assert verify_store(store_url) == []
    engine = dialect_for(store_url, 5.0).create_engine()
    with engine.begin() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(
                f"CREATE TRIGGER planted {moment} INSERT ON log BEGIN SELECT RAISE(IGNORE); END"
            )
        else:
            connection.exec_driver_sql(
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
            )
            connection.exec_driver_sql(
                f"CREATE TRIGGER planted {moment} INSERT ON log FOR EACH ROW EXECUTE FUNCTION f()"
            )
    engine.dispose()
    (fault,) = verify_store(store_url)
    assert "trigger 'planted' on table log" in str(fault)
    is_allowed = moment == "AFTER" and store_url.startswith("postgresql")
    assert fault.is_damage is not is_allowed
    with nullcontext() if is_allowed else pytest.raises(CorruptStore, match="trigger 'planted' on table log"):
        Store.open(store_url).close()
