"""Conditions only of stores in PostgreSQL: settings, users and errors of a database server, other machines' clocks."""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import (
    Connection,
    create_engine,
    inspect,
)
from support import words
from support.postgres import Cluster
from support.statements import statements_noted
from support.waiting import until

from quercus.belief.errors import InvalidInput
from quercus.storage import (
    AgendaEntry,
    AnswerRequest,
    CorruptStore,
    LeaseClaim,
    LeaseRequest,
    ReadOnlyStore,
    Store,
    StoreBusy,
    StoreError,
    Words,
    shown_url,
    without_secrets,
)
from quercus.storage.admin.backup import back_up
from quercus.storage.admin.verify import verify_store
from quercus.storage.admin.verify_schema import schema_faults
from quercus.storage.dialect import dialect_for
from quercus.storage.migrate import upgrade_schema
from quercus.storage.postgres import dialect as postgres_dialect
from quercus.storage.rows import lock_model
from quercus.storage.schema import REVISION_TABLE, metadata

SEEN_S = 10.0
COMPARED = {"compare_type": True, "compare_server_default": True, "version_table": REVISION_TABLE}


@pytest.fixture
def opened(postgres_url: str) -> Iterator[Store]:
    with Store.open(postgres_url) as store:
        store.create_model("m", b"", budget=9)
        yield store


@pytest.fixture
def empty(postgres: Cluster) -> Iterator[str]:
    """Name of a database without tables."""
    name = postgres.create()
    yield name
    postgres.drop(name)


def push(store: Store, *ids: str) -> None:
    store.append_instances("m", ids, np.ones((len(ids), 1)), [words.ANYTHING] * len(ids))


def execute(url: str, statement: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        ran = connection.execute(statement)  # type: ignore[call-overload]
        return list(ran.fetchall()) if ran.description else []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://u:secret@host/db", "'mysql' is not supported; use sqlite:///path/to/file or postgresql://"),
        ("postgresql://u:secret@host:port/db", r"'postgresql://…' is not a URL"),
        ("postgresql:/u:secret@host/db", r"'postgresql://…' is not a URL"),
        (
            "postgresql://u:secret@secret@host/db",
            r"'postgresql://…' has a second @: write an @ of a password as %40",
        ),
    ],
)
def test_a_url_that_is_none_is_named_without_its_password(url: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        Store.open(url)
    assert "secret" not in str(caught.value)


def test_passwords_stay_out_of_command_lines_and_messages() -> None:
    url = "postgresql://ann:sec%2Fret@host:99/db?sslmode=require"
    assert without_secrets(url) == ("postgresql://ann@host:99/db?sslmode=require", {"PGPASSWORD": "sec/ret"})
    assert without_secrets("postgres://host/db?password=x") == ("postgresql://host/db", {"PGPASSWORD": "x"})
    assert without_secrets("sqlite:///a.db") == ("sqlite:///a.db", {})
    assert shown_url(url) == "postgresql://ann@host:99/db?sslmode=require"
    assert (
        shown_url("postgresql://h/db?sslkey=k&sslpassword=s&oauth_client_secret=t")
        == "postgresql://h/db?sslkey=k"
    )
    assert shown_url("a:b@c.db") == "a:b@c.db"
    assert shown_url("postgres:/ann:b@c/db") == "postgres://…"
    assert shown_url("oracle://a:b@c") == "oracle://…"
    with pytest.raises(StoreError, match=r"postgresql://ann@127\.0\.0\.1:1/db cannot be reached") as caught:
        Store.open("postgresql://ann:secret@127.0.0.1:1/db?sslmode=disable")
    assert "secret" not in str(caught.value)


def test_a_process_gets_all_secrets_of_a_url_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody sees its command line, where only the password was left out."""
    url = "postgresql://ann@host/db?oauth_client_secret=t&sslkey=k&sslpassword=a%26b"
    shown, environment = without_secrets(url)
    assert shown == "postgresql://ann@host/db?sslkey=k"
    assert "PGPASSWORD" not in environment
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert dialect_for(shown, 5.0).url == url
    assert without_secrets("postgresql://ann:x@host/db?sslpassword=y")[1]["PGPASSWORD"] == "x"


def test_a_program_that_makes_no_store_leaves_a_database_empty(postgres: Cluster, empty: str) -> None:
    """A dump can be restored into it under a running server, whose grower is such a program."""
    with pytest.raises(StoreError, match="has no tables"):
        Store.open(postgres.url(empty), create=False)
    assert not postgres.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace", empty
    )


def test_a_database_that_cannot_be_used_gives_the_reason(postgres: Cluster, empty: str) -> None:
    with pytest.raises(StoreError, match="does not exist: create it with createdb"):
        Store.open(postgres.url("nowhere"))
    with pytest.raises(StoreError, match="does not exist"):
        verify_store(postgres.url("nowhere"))
    postgres.execute("CREATE TABLE strangers (id int)", empty)
    with pytest.raises(CorruptStore, match=r"is a database, but not a store of quercus.*'strangers'"):
        Store.open(postgres.url(empty))
    other = postgres.url("x")
    postgres.execute("CREATE DATABASE x ENCODING latin1 LOCALE 'C' TEMPLATE template0")
    with pytest.raises(StoreError, match="has the encoding LATIN1, must have UTF8: create it with"):
        Store.open(other)
    postgres.drop("x")


@pytest.mark.parametrize("setting", ["fsync", "synchronous_commit"])
def test_a_server_that_loses_what_it_acknowledged_is_refused(
    postgres: Cluster, empty: str, setting: str
) -> None:
    postgres.stop()
    postgres.start(**{setting: "off"})
    try:
        with pytest.raises(
            StoreError, match=f"may lose acknowledged commits: set {setting} = on in postgresql"
        ):
            Store.open(postgres.url(empty))
    finally:
        postgres.stop()
        postgres.start()


def test_what_may_not_be_written_can_be_read(postgres: Cluster, postgres_url: str) -> None:
    with Store.open(postgres_url) as store:
        store.create_model("m", b"", budget=9)
    postgres.execute(f"ALTER DATABASE {_database(postgres_url)} SET default_transaction_read_only = on")
    with pytest.raises(ReadOnlyStore, match="a standby, or read-only by its settings"):
        Store.open(postgres_url)
    with Store.open(postgres_url, read_only=True) as store:
        assert [record.name for record in store.list_models()] == ["m"]
        with pytest.raises(ReadOnlyStore):
            store.create_model("n", b"", budget=9)


def _database(url: str) -> str:
    return url.rpartition("?")[0].rpartition("/")[2]


def test_processes_that_make_one_store_at_once(
    postgres: Cluster, empty: str, start: Callable[..., Any]
) -> None:
    workers = [start("create", postgres.url(empty), name) for name in ("a", "b", "c")]
    for worker in workers:
        assert json.loads(worker.stdout.readline()) == {"ready": True}
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0, 0]
    with Store.open(postgres.url(empty)) as store:
        assert [model.name for model in store.list_models()] == ["a", "b", "c"]


def test_names_are_in_the_order_of_their_bytes(opened: Store) -> None:
    """In the language of this cluster "a" comes before "B"."""
    for name in ("B", "a", "é", "Z"):
        opened.create_model(name, b"", budget=0)
    assert [record.name for record in opened.list_models()] == ["B", "Z", "a", "m", "é"]
    assert [record.name for record in opened.list_models(after="Z")] == ["a", "m", "é"]


def test_waiting_too_long_for_a_model_is_an_error(opened: Store, postgres_url: str) -> None:
    with Store.open(postgres_url, busy_timeout_s=0.2) as other, opened._database.write() as connection:
        connection.exec_driver_sql("SELECT * FROM model FOR UPDATE")
        with pytest.raises(StoreBusy, match="was locked by another process for longer than the busy timeout"):
            push(other, "a")
    push(opened, "a")


def test_a_client_cut_off_while_it_holds_a_model_is_disconnected(
    opened: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_dialect, "IDLE_S", 0.3)
    with Store.open(postgres_url) as stuck:
        cut = stuck._database._engine.raw_connection()  # it says nothing any more, and is not closed
        cut.cursor().execute("SELECT * FROM model FOR UPDATE")
        begun = time.monotonic()
        push(opened, "a")
        assert 0.1 < time.monotonic() - begun < SEEN_S
        cut.invalidate()


def test_a_writer_that_stood_still_learns_why_it_failed(
    opened: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_dialect, "IDLE_S", 0.5)

    def stand_still(store: Store) -> None:
        with store._database.write() as connection:
            lock_model(connection, "m")
            threading.Event().wait(1.2)
            lock_model(connection, "m")

    with Store.open(postgres_url) as store:
        with pytest.raises(StoreBusy, match="left idle"):
            stand_still(store)
        push(store, "a")
        assert store.write_trouble == ""


def test_a_server_that_comes_back_is_used_again(
    opened: Store, postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_dialect, "COUNTER_MAX_AGE_S", 0.0)  # else the last look may still be good
    push(opened, "a")
    opened.change_token()
    postgres.stop(signal.SIGQUIT)  # as if it had lost its power
    with pytest.raises(StoreError, match="cannot be reached"):
        push(opened, "b")
    with pytest.raises(StoreError, match="cannot be reached"):
        opened.change_token()
    assert "cannot be reached" in opened.write_trouble
    postgres.start()
    for _ in range(postgres_dialect.POOL_SIZE):  # connections that were there are found to be lost
        try:
            push(opened, "b")
            break
        except StoreError:
            continue
    opened.try_to_write()
    assert opened.write_trouble == ""
    assert [event.id for event in opened.read_events("m")] == ["a", "b"]
    assert opened.change_token() > 0


def test_the_clock_is_the_servers_and_never_goes_back(opened: Store, postgres_url: str) -> None:
    push(opened, "a", "b")
    agenda = [AgendaEntry(1, b"", b""), AgendaEntry(2, b"", b"")]
    opened.publish("m", as_of=2, snapshot=b"", agenda=agenda)
    opened.lease("m", "ann", 1, 60.0)
    assert abs(opened.query_history("m")[-1].clock - time.time()) < SEEN_S
    # the server that was there before this one was an hour ahead
    execute(postgres_url, "UPDATE query_history SET clock = clock + 3600")
    execute(postgres_url, "UPDATE query SET ends = ends + 3600")
    ahead = opened.query_history("m")[-1].clock
    (taken,) = opened.lease("m", "bob", 2, 60.0).queries
    assert taken.number == 2  # ann's lease is alive
    assert opened.query_history("m")[-1].clock == ahead
    assert verify_store(postgres_url) == []


def test_a_clock_that_was_far_ahead_once_runs_on_when_the_store_is_opened(
    opened: Store, postgres_url: str
) -> None:
    """It stood still until that moment came again: no lease ended, and no dead grower was replaced."""
    push(opened, "a")
    opened.publish("m", as_of=1, snapshot=b"", agenda=[AgendaEntry(1, b"", b"")])
    (leased,) = opened.lease("m", "ann", 1, 3600.0).queries
    execute(postgres_url, "UPDATE query_history SET clock = clock + 86400")
    execute(postgres_url, "UPDATE query SET ends = ends + 86400")
    opened.renew_grower("dead", "somewhere", 0.1)
    ahead = opened.query_history("m")[-1].clock
    for _ in range(2):  # the second finds it set
        with Store.open(postgres_url) as again:
            until(lambda store=again: not store.live_growers(), seconds=SEEN_S)
            left_s = again.next_change_s()
            assert left_s is not None
            assert 0.0 < left_s < 3600.0
    opened.release("m", leased.number, leased.token)
    assert ahead < opened.query_history("m")[-1].clock < ahead + 3600.0
    assert verify_store(postgres_url) == []


def test_other_processes_are_notified_of_trees_only(opened: Store, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as listener:
        listener.execute("LISTEN quercus")
        push(opened, "a")
        opened.publish("m", as_of=1, snapshot=b"", agenda=[AgendaEntry(1, b"", b"")])
        (query,) = opened.lease("m", "ann", 1, 60.0).queries
        words.answer(opened, "m", query.number, query.token, words.A, 1.0)
        assert len(list(listener.notifies(timeout=1.0))) == 1


def test_whoever_listens_sees_a_tree_before_the_next_look(
    opened: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_dialect, "COUNTER_MAX_AGE_S", 1e6)
    with Store.open(postgres_url) as other:
        token = other.change_token()
        push(opened, "a")
        assert other.change_token() == token
        opened.publish("m", as_of=1, snapshot=b"", agenda=[])
        until(lambda: other.change_token() != token, seconds=SEEN_S)
        push(other, "b")  # of one's own commits one knows
        assert other.change_token() > token + 2


def test_numbers_beyond_32_bits(opened: Store, postgres_url: str) -> None:
    for table in ("model", "query_history", "audit"):
        execute(postgres_url, f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {2**40})")
    record = opened.create_model("n", b"", budget=9)
    assert record.key == 2**40 + 1
    opened.append_instances("n", ["a"], np.ones((1, 1)), [words.ANYTHING])
    opened.publish("n", as_of=1, snapshot=b"", agenda=[AgendaEntry(1, b"", b"")], key=record.key)
    opened.access.record("ann", "a", "b", "OK")
    assert opened.access.audit()[0].number == 2**40 + 1
    assert opened.lease("n", "ann", 1, 60.0).queries
    assert opened.query_history("n")[-1].id > 2**40


def test_a_lease_and_its_answer_are_few_statements(opened: Store) -> None:
    """A caller that waits for a model waits for every round trip of the one that holds it."""
    push(opened, "a", "b")
    opened.publish("m", as_of=2, snapshot=b"", agenda=[AgendaEntry(1, b"", b""), AgendaEntry(2, b"", b"")])
    seen: list[str] = []
    with statements_noted(lambda _connection, _cursor, statement, *_: seen.append(statement)):
        (query,) = opened.lease("m", "ann", 1, 60.0).queries
        words.answer(opened, "m", query.number, query.token, words.A, 1.0)
    assert len(seen) <= 17, seen


def test_a_group_takes_no_more_statements_because_it_is_larger(opened: Store) -> None:
    opened.create_model("g", b"", budget=1000)
    counts: list[int] = []
    opened.append_instances("g", [str(i) for i in range(200)], np.ones((200, 1)), [words.ANYTHING] * 200)
    first = 1
    for size in (2, 60):
        seen: list[str] = []
        with statements_noted(lambda _connection, _cursor, statement, *_, to=seen: to.append(statement)):
            label(opened, first, size, "g")
        counts.append(len(seen))
        first += size
    assert counts[0] == counts[1]


def test_rows_of_pushes_and_agendas_are_not_copied(opened: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL waits for ever for the rest of a copy whose client is stopped, and others for what it holds."""

    def copied(*_: Any) -> None:
        pytest.fail("is copied")

    monkeypatch.setattr(psycopg.Cursor, "copy", copied)
    push(opened, *(str(i) for i in range(3_000)))
    agenda = [AgendaEntry(i, b"a", b"r") for i in range(1, 501)]
    opened.publish("m", as_of=3_000, snapshot=b"", agenda=agenda)
    opened.publish("m", as_of=3_000, snapshot=b"", agenda=agenda[::-1])  # each moves
    assert [query.instance for query in opened.lease("m", "ann", 2, 60.0).queries] == [500, 499]


def label(store: Store, first: int, count: int, model: str = "m") -> None:
    """As the server does: in groups, each labeller with a name of its own."""
    agenda = [AgendaEntry(instance, b"", b"") for instance in range(first, first + count)]
    store.publish(model, as_of=store.get_model(model).sequence_committed, snapshot=b"", agenda=agenda)
    asked = [LeaseRequest(model, f"l{first}-{i}", 1, 60.0) for i in range(count)]
    held = [query for leased in store.run_group(asked) for query in leased.queries]
    assert len(held) == count
    said = [LeaseClaim(model, query.number, query.token) for query in held]
    for answered in store.run_group([AnswerRequest(each, Words(words.A, 1.0), words.KNOWN) for each in said]):
        assert not isinstance(answered, Exception)


def entries_read(url: str) -> int:
    """Rows and entries of indexes that were ever read in a database, once all who used it have gone."""
    others = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    until(lambda: not execute(url, others)[0][0], seconds=SEEN_S)
    found = "SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes"
    whole = "SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables"
    return int(execute(url, found)[0][0]) + int(execute(url, whole)[0][0])


@pytest.mark.parametrize("analyzed", [False, True])
def test_labellers_read_no_more_because_much_was_answered(postgres_url: str, analyzed: bool) -> None:
    """Whatever the planner knows: plans are made while tables are small, and kept when they have grown."""
    with Store.open(postgres_url) as store:
        store.create_model("m", b"", budget=10**6)
        push(store, *(str(i) for i in range(1_100)))
        for first in range(1, 1_000, 50):
            label(store, first, 50)
            if analyzed and first == 501:
                execute(postgres_url, "ANALYZE")
    before = entries_read(postgres_url)
    with Store.open(postgres_url) as store:
        for first in range(1_001, 1_097, 32):
            label(store, first, 32)
    read = (entries_read(postgres_url) - before) / 96
    assert read < 300, f"{read:.0f} entries for a lease and its answer"


def test_a_reader_sees_one_state_of_the_store(opened: Store) -> None:
    push(opened, "a")
    with opened._database.read() as connection:
        before = connection.exec_driver_sql("SELECT count(*) FROM log").scalar()
        push(opened, "b")
        assert connection.exec_driver_sql("SELECT count(*) FROM log").scalar() == before == 1


def test_a_reader_may_take_its_time(
    opened: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(opened, *(str(i) for i in range(3000)))
    monkeypatch.setattr(postgres_dialect, "IDLE_S", 0.2)
    with Store.open(postgres_url) as store:
        lines = store.dump("m")
        next(lines)
        threading.Event().wait(0.6)  # whoever reads them stands still for longer than a writer may
        assert sum(1 for _ in lines) == 3000


def test_copies_are_made_with_its_own_tools(opened: Store, postgres_url: str, tmp_path: Any) -> None:
    with pytest.raises(InvalidInput, match="is in PostgreSQL: copy it with pg_dump"):
        back_up(postgres_url, tmp_path / "copy.db")


def test_check_finds_what_does_not_hold_together(opened: Store, postgres_url: str) -> None:
    push(opened, "a", "b", "c")
    opened.publish("m", as_of=3, snapshot=b"", agenda=[AgendaEntry(1, b"", b""), AgendaEntry(3, b"", b"")])
    assert verify_store(postgres_url) == []
    execute(postgres_url, "DELETE FROM log WHERE sequence = 2")
    execute(postgres_url, "DELETE FROM query WHERE number = 2")
    first, *_, last = verify_store(postgres_url)
    assert str(first) == "model m: its log has 2 events numbered 1 to 3: some are missing"
    assert str(last) == "model m: query 2 is not there, and its history is"


def test_a_check_may_take_its_time(opened: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    push(opened, "a")
    monkeypatch.setattr(postgres_dialect, "IDLE_S", 0.2)
    assert verify_store(postgres_url, contents_that(lambda: threading.Event().wait(0.6))) == []


def test_a_server_that_stops_during_a_check_is_no_damage(opened: Store, postgres_url: str) -> None:
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    opened.create_model("n", b"", budget=9)
    with pytest.raises(StoreError, match="cannot be reached"):
        verify_store(postgres_url, contents_that(lambda: execute(postgres_url, cut)))


def contents_that(act: Callable[[], object]) -> Any:
    """Checks of a model's contents that find nothing; each takes an action."""

    class Contents:
        def __getattr__(self, _: str) -> Callable[..., object]:
            return lambda *_: act() and None

    return Contents


def test_the_migrations_build_the_schema(postgres: Cluster, empty: str, postgres_url: str) -> None:
    """They leave what a new store has, with the references that PostgreSQL does not look up left out."""

    def references(connection: Connection) -> dict[str, list[str]]:
        found = inspect(connection)
        return {
            table: sorted(str(each["name"]) for each in found.get_foreign_keys(table))
            for table in found.get_table_names()
        }

    built, fresh = (dialect_for(url, 5.0).create_engine() for url in (postgres.url(empty), postgres_url))
    with built.begin() as connection, fresh.connect() as other:
        upgrade_schema(connection)
        assert list(schema_faults(connection)) == []
        assert references(connection) == references(other)
        assert connection.exec_driver_sql("SELECT * FROM change_counter").all() == [(1, 1)]
    # Alembic reads text, and connections of the store are binary
    plain = create_engine(postgres.url(empty).replace("postgresql:", "postgresql+psycopg:", 1))
    with plain.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection, opts=COMPARED), metadata)
        assert [each for each in differences if each[0] != "add_fk"] == []  # see `references`
    for engine in (built, fresh, plain):
        engine.dispose()


def test_the_store_is_found_to_take_writes_by_writing(opened: Store, postgres_url: str) -> None:
    before = execute(postgres_url, "SELECT xmin FROM lease_clock")
    opened.try_to_write()
    assert execute(postgres_url, "SELECT xmin FROM lease_clock") != before
