"""A store in PostgreSQL: pushes, and leases with their answers, beside raw psycopg, and the statements that each takes.

Raw pushes send the same rows (unnest, binary) to a table without references. Raw leases (SKIP LOCKED) do much less: no
budgets, no expiry, no history, no log, and no lock of the model. Needs PostgreSQL, and is skipped in words without it.

A private cluster on the disk of the temporary folder, fsync on; both sides take turns. Wall time, since most of the
work is the database server's.
"""

import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psycopg
from _labellers import keep_open, served_pairs
from _report import Row, options, reporting

from quercus.belief.codec import encode_sets
from quercus.storage import AgendaEntry, QueryRecord, Store

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from support import postgres as support
from support.processes import cpu_s
from support.statements import statements_noted

ATTRIBUTES, OPEN, CONNECTIONS = 13, 100, 32
PUSH_TARGET, PAIR_TARGET, STATEMENTS_TARGET = 1.3, 2.0, 6
RAW_LOG = """
CREATE TABLE raw_log (model_id bigint, sequence bigint, id varchar(200), "values" bytea, label bytea,
    created_at float8, PRIMARY KEY (model_id, sequence), UNIQUE (model_id, id))
"""
RAW_PUSH = """
INSERT INTO raw_log SELECT 1, %b::bigint + n, id, v, l, 0.0
FROM unnest(%b::text[], %b::bytea[], %b::bytea[]) WITH ORDINALITY AS row (id, v, l, n)
"""
RAW_QUERIES = (
    "CREATE TABLE raw_query (number bigint PRIMARY KEY, position bigint, state smallint, label bytea)"
)
RAW_LEASE = """
UPDATE raw_query SET state = 2 WHERE number = (
    SELECT number FROM raw_query WHERE state = 1 ORDER BY position LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING number
"""
RAW_ANSWER = "UPDATE raw_query SET state = 1, label = %b, position = position + 1000 WHERE number = %b"


def batch(size: int, number: int) -> tuple[list[str], np.ndarray, list[bytes]]:
    rows = np.random.default_rng(number).random((size, ATTRIBUTES))
    return [f"b{number}-{i}" for i in range(size)], rows, encode_sets(np.full(size, 7, np.uint64))


def pushes(url: str, size: int, count: int, rounds: int) -> tuple[float, float]:
    """Milliseconds a commit: the store's, and raw."""
    ours, raw, number = [], [], 0
    with Store.open(url) as store, psycopg.connect(url, autocommit=False) as bare:
        store.create_model(f"p{size}", b"", budget=0)
        bare.execute("DROP TABLE IF EXISTS raw_log")
        bare.execute(RAW_LOG)
        bare.commit()
        for turn in range(rounds + 1):
            work = [batch(size, number + i) for i in range(count)]
            number += count
            started = time.perf_counter()
            for each in work:
                store.append_instances(f"p{size}", *each)
            between = time.perf_counter()
            for at, (ids, rows, labels) in enumerate(work):
                first = (number + at) * size
                bare.execute(RAW_PUSH, (first, ids, [row.tobytes() for row in rows], list(labels)))
                bare.commit()
            if turn:  # the first one warms up
                ours.append(1000 * (between - started) / count)
                raw.append(1000 * (time.perf_counter() - between) / count)
    return statistics.median(ours), statistics.median(raw)


def pairs(url: str, seconds: float) -> tuple[float, float]:
    """Pairs of lease and answer a second, `CONNECTIONS` at once, of one model with `OPEN` open queries."""
    with Store.open(url) as store:
        store.create_model("q", b"", budget=10**9)
        store.append_instances("q", *batch(20_000, 10**6))
        ours = _rate(seconds, lambda stop: _label(url, stop), lambda stop: keep_open(store, "q", OPEN, stop))
    with psycopg.connect(url, autocommit=True) as bare:
        bare.execute(RAW_QUERIES)
        bare.execute(f"INSERT INTO raw_query SELECT n, n, 1, NULL FROM generate_series(1, {OPEN}) AS n")  # noqa: S608
    return ours, _rate(seconds, lambda stop: _label_raw(url, stop), lambda stop: stop.wait())


def _rate(seconds, work, beside) -> float:
    stop, counts = threading.Event(), []
    threads = [threading.Thread(target=lambda: counts.append(work(stop))) for _ in range(CONNECTIONS)]
    threads.append(threading.Thread(target=lambda: beside(stop)))
    for thread in threads:
        thread.start()
    stop.wait(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


_stores: dict[str, Store] = {}
_opening = threading.Lock()


def _label(url, stop) -> int:
    with _opening:
        store = _stores.get(url) or _stores.setdefault(url, Store.open(url))
    count = 0
    while not stop.is_set():
        # always somebody else: who has answered waits for a tree that knows it
        for query in store.lease("q", f"l{threading.get_ident()}-{count}", 1, 60.0).queries:
            store.answer("q", query.number, query.token, b"!", 1.0, False)
            count += 1
    return count


def _label_raw(url, stop) -> int:
    count = 0
    with psycopg.connect(url, autocommit=True) as bare:
        while not stop.is_set():
            found = bare.execute(RAW_LEASE).fetchone()
            if found:
                bare.execute(RAW_ANSWER, (b"!", found[0]))
                count += 1
    return count


def cores(
    cluster: support.Cluster, rows: int = 40_000, queries: int = 300
) -> dict[str, tuple[float, float, float]]:
    """CPU in microseconds of a row pushed, of 1,000 a commit, and of a lease with its answer, one after the other.

    Of the client, of the connection's process in the database server, and bytes of WAL.
    """
    url = cluster.url(cluster.create())
    name = url.partition("?")[0].rpartition("/")[2]
    found: dict[str, tuple[float, float, float]] = {}

    def database() -> tuple[float, int]:
        backends = cluster.execute(f"SELECT pid FROM pg_stat_activity WHERE datname = '{name}'")  # noqa: S608
        (written,) = cluster.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")[0]
        return sum(cpu_s(pid) for (pid,) in backends), int(written)

    def measure(what: str, count: int, work: Callable[[], None]) -> None:
        (spent, written), own = database(), time.process_time()
        work()
        own, (now, end) = time.process_time() - own, database()
        found[what] = tuple(1e6 * each / count for each in (own, now - spent, (end - written) / 1e6))

    with Store.open(url) as store:
        store.create_model("c", b"", budget=10**9)
        work = [batch(1000, number) for number in range(rows // 1000 + 3)]
        for each in work[:3]:
            store.append_instances("c", *each)
        measure("row", rows, lambda: [store.append_instances("c", *each) for each in work[3:]] and None)
        key = store.get_model("c").key

        def label() -> None:
            for at in range(1, queries, OPEN):
                end = store.get_model("c").sequence_committed
                agenda = [AgendaEntry(instance, b"asked", b"why") for instance in range(at, at + OPEN)]
                store.publish("c", as_of=end, snapshot=b"tree", agenda=agenda, key=key, keep=2)
                for turn in range(OPEN):
                    (query,) = store.lease("c", f"l{at}-{turn}", 1, 60.0).queries
                    store.answer("c", query.number, query.token, b"!", 1.0, False)

        measure("pair", queries, label)
    return found


def statements(url: str) -> dict[str, int]:
    """Statements of a push of one row, a lease and an answer, without BEGIN and COMMIT."""
    seen: list[str] = []

    def note(_connection, _cursor, statement, *_):
        seen.append(statement)

    found = {}
    with Store.open(url) as store, statements_noted(note):
        store.create_model("s", b"", budget=9)
        store.append_instances("s", *batch(5, 5))
        store.publish("s", as_of=5, snapshot=b"", agenda=[AgendaEntry(i, b"", b"") for i in (1, 2, 3)])
        taken: list[QueryRecord] = []
        for name, work in {
            "push": lambda: store.append_instances("s", *batch(1, 6)),
            "lease": lambda: taken.extend(store.lease("s", "ann", 1, 60.0).queries),
            "answer": lambda: store.answer("s", taken[0].number, taken[0].token, b"!", 1.0, False),
        }.items():
            seen.clear()
            work()
            found[name] = len(seen)
    return found


def main() -> None:
    quick = options().quick
    with reporting("A store in PostgreSQL", ("psycopg", "sqlalchemy"), quick=quick) as report:
        report.note("PostgreSQL on the disk of the temporary folder, fsync on; wall time")
        if support.binaries() is None:
            report.note(f"skipped: {support.INSTALL}")
            return
        support.MEMORY = Path("/nowhere")
        cluster = support.Cluster(support.require_binaries())
        try:
            for size, count in ((1, 100), (100, 50), (1_000, 20)):
                url = cluster.url(cluster.create())
                ours, raw = pushes(url, size, count // (4 if quick else 1), 2 if quick else 5)
                judged = size == 1_000
                report.add(
                    Row(
                        f"push, {size:,} rows a commit, PostgreSQL",
                        f"{ours:.1f} ms",
                        f"raw unnest-binary {raw:.1f} ms",
                        f"{raw / ours:.2f}",
                        f"at most {PUSH_TARGET} × its time" if judged else "",
                        ours <= PUSH_TARGET * raw if judged else None,
                    )
                )
            url = cluster.url(cluster.create())
            found = statements(url)
            both = found["lease"] + found["answer"]
            report.add(
                Row("statements of a lease and its answer", f"{both} ({found['lease']} + {found['answer']})", "", "",
                    f"at most {STATEMENTS_TARGET}", both <= STATEMENTS_TARGET),
                Row("statements of a push", f"{found['push']}"),
            )  # fmt: skip
            for what, (own, server, written) in cores(cluster).items():
                title = {
                    "row": "a row pushed, 1,000 a commit",
                    "pair": "a lease and its answer, with agendas",
                }[what]
                parts = f"client {own:,.1f} µs, database {server:,.1f} µs, {written:,.0f} bytes of WAL"
                report.add(Row(f"CPU of {title}", parts))
            ours, raw = pairs(url, 3.0 if quick else 10.0)
            report.add(
                Row(
                    f"lease and answer, {CONNECTIONS} connections, one model, up to {OPEN} open",
                    f"{ours:,.0f} pairs/s",
                    f"raw SKIP LOCKED {raw:,.0f} pairs/s",
                    f"{ours / raw:.2f}",
                    f"at most {PAIR_TARGET:g} × its time",
                    ours * PAIR_TARGET >= raw,
                )
            )
            served = served_pairs(cluster.url(cluster.create()), CONNECTIONS, OPEN, 3.0 if quick else 10.0)
            report.add(
                Row(
                    f"the same through a server, {CONNECTIONS} labellers",
                    f"{served.rate:,.0f} pairs/s, {served.cpu_ms:.1f} ms CPU of the server a pair",
                    f"raw SKIP LOCKED {raw:,.0f} pairs/s",
                    f"{served.rate / raw:.2f}",
                )
            )
        finally:
            for each in _stores.values():
                each.close()
            cluster.remove()


if __name__ == "__main__":
    main()
