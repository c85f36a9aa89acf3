"""A store in PostgreSQL: pushes, and leases with their answers, beside raw psycopg.

Raw pushes send the same rows (unnest, binary) to a table without references. Raw leases (SKIP LOCKED) do much less: no
budgets, no expiry, no history, no log, and no lock of the model. Needs PostgreSQL; without it nothing is measured.

Leases and answers: 32 raw connections, each in a thread, take and settle queries one by one. At the store 32 labellers
take and settle as many. One thread makes their calls in groups, one call per labeller, as the thread of a server does.
Queries come from agendas, which a grower publishes; raw queries simply become open again. Here the thread publishes an
agenda when fewer than half of the queries are open. What is judged counts only the time of leases and answers. The last
row is what 32 labellers get from a server, by gRPC, with agendas by another thread.

A private cluster on the disk of the temporary folder, fsync on; both sides take turns. Wall time, since most of the
work is the database server's. Raw calls use all cores at once; calls of one model come one after the other. On a busy
machine the 33 raw processes therefore get more of the cores than our two, and the ratio is worse than on an idle one.
"""

import os
import statistics
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import psycopg
from _labellers import served_pairs
from _report import Report, Row, options, reporting

from quercus.belief.codec import encode_sets
from quercus.storage import AgendaEntry, AnswerRequest, KnownModel, LeaseClaim, LeaseRequest, Store, Words

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from support import postgres as support
from support.processes import children, cpu_s

ATTRIBUTES, OPEN, CONNECTIONS = 13, 100, 32
PUSHED, PUSH_TARGET, PAIRS_WANTED = 1_000, 1.5, 300
WORDS, KNOWN = Words(encode_sets(np.ones(1, np.uint64))[0], 1.0), KnownModel(3)
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


@dataclass(frozen=True)
class Pairs:
    """Pairs of lease and answer a second, and milliseconds of CPU for each: of the client, and of the database."""

    rate: float
    client_ms: float
    database_ms: float
    without_agendas: float = 0.0
    """Pairs per second, without the time in which agendas were published."""

    @property
    def cpu_ms(self) -> float:
        return self.client_ms + self.database_ms


class Labellers:
    """Labellers of one model at a store, whose calls one thread makes, and the necessary agendas."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._key = store.get_model("q").key
        self._last = 0  # the newest row that was asked about; leases take the oldest
        self._open = 0
        self.publishing_s = 0.0

    def label(self, stop: threading.Event) -> int:
        """Lease and answer in groups of one call per labeller; return the number of pairs."""
        count = 0
        while not stop.is_set():
            if self._open < OPEN // 2:
                self._publish()
            # always another labeller: one who has answered waits for a tree with the answer
            names = (f"g{time.monotonic_ns()}-{i}" for i in range(CONNECTIONS))
            asked = [LeaseRequest("q", name, 1, 60.0) for name in names]
            queries = [query for leased in self._store.run_group(asked) for query in leased.queries]
            claims = [LeaseClaim("q", each.number, each.token) for each in queries]
            said = [AnswerRequest(claim, WORDS, KNOWN) for claim in claims]
            for answered in self._store.run_group(said):
                if isinstance(answered, Exception):
                    raise answered
            self._open -= len(queries)
            count += len(queries)
        return count

    def _publish(self) -> None:
        started = time.perf_counter()
        first = self._last - self._open + 1
        self._last, self._open = first + OPEN - 1, OPEN
        agenda = [AgendaEntry(instance, b"", b"") for instance in range(first, first + OPEN)]
        end = self._store.get_model("q").sequence_committed
        self._store.publish("q", as_of=end, snapshot=b"tree", agenda=agenda, key=self._key, keep=2)
        self.publishing_s += time.perf_counter() - started


@dataclass(frozen=True)
class Compared:
    """Medians over the turns of both methods, and medians of each turn's ratio of the raw rate to ours."""

    raw: Pairs
    ours: Pairs
    times: float
    times_cpu: float


def pairs(cluster: support.Cluster, seconds: float, turns: int) -> Compared:
    """Leases and answers of one model with up to `OPEN` open queries."""
    url = cluster.url(cluster.create())
    found: defaultdict[str, list[Pairs]] = defaultdict(list)
    with ExitStack() as opened:
        store = opened.enter_context(Store.open(url))
        bare = [opened.enter_context(psycopg.connect(url, autocommit=True)) for _ in range(CONNECTIONS)]
        bare[0].execute(RAW_QUERIES)
        bare[0].execute(f"INSERT INTO raw_query SELECT n, n, 1, NULL FROM generate_series(1, {OPEN}) AS n")  # noqa: S608
        store.create_model("q", b"", budget=10**9)
        store.append_instances("q", *batch(200_000, 10**6))
        ours = Labellers(store)
        for turn in range(turns + 1):
            for name in ("raw", "group"):
                work = ours.label if name == "group" else partial(_label_all_raw, bare)
                ours.publishing_s = 0.0
                measured = _measured(cluster, seconds if turn else 1.0, work, ours)
                if turn:  # the first one warms up
                    found[name].append(measured)
    medians = {
        name: Pairs(*map(statistics.median, zip(*map(astuple, many), strict=True)))
        for name, many in found.items()
    }
    turns_of_both = list(zip(found["raw"], found["group"], strict=True))
    return Compared(
        medians["raw"],
        medians["group"],
        statistics.median(raw.rate / own.without_agendas for raw, own in turns_of_both),
        statistics.median(own.cpu_ms / raw.cpu_ms for raw, own in turns_of_both),
    )


def _measured(
    cluster: support.Cluster, seconds: float, work: Callable[[threading.Event], int], ours: Labellers
) -> Pairs:
    stop = threading.Event()
    timer = threading.Timer(seconds, stop.set)
    database, own, started = _database_s(cluster), time.process_time(), time.perf_counter()
    timer.start()
    count = work(stop)
    took, own = time.perf_counter() - started, time.process_time() - own
    database = _database_s(cluster) - database
    return Pairs(count / took, 1e3 * own / count, 1e3 * database / count, count / (took - ours.publishing_s))


def _database_s(cluster: support.Cluster) -> float:
    """CPU seconds of the database server so far; those of ended processes count with the first one."""
    first = cluster.pid
    ended = sum(
        int(each) for each in Path(f"/proc/{first}/stat").read_text().rpartition(")")[2].split()[13:15]
    )
    spent = cpu_s(first) + ended / os.sysconf("SC_CLK_TCK")
    for pid in children(first):
        with suppress(OSError):  # it has ended at this moment
            spent += cpu_s(pid)
    return spent


def _label_all_raw(bare: Sequence[psycopg.Connection], stop: threading.Event) -> int:
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return sum(pool.map(lambda own: _label_raw(own, stop), bare))


def _label_raw(bare: psycopg.Connection, stop: threading.Event) -> int:
    count = 0
    while not stop.is_set():
        found = bare.execute(RAW_LEASE).fetchone()
        if found:
            bare.execute(RAW_ANSWER, (b"!", found[0]))
            count += 1
    return count


def cores(
    cluster: support.Cluster, rows: int = 40_000, queries: int = 300
) -> dict[str, tuple[float, float, float]]:
    """CPU in microseconds per pushed row, with 1,000 per commit, and per lease with its answer, one after the other.

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
                    store.answer("c", query.number, query.token, WORDS, KNOWN)

        measure("pair", queries, label)
    return found


def main() -> None:
    quick = options().quick
    with reporting("A store in PostgreSQL", ("psycopg", "sqlalchemy"), quick=quick) as report:
        if support.binaries() is None:
            report.skip("a store in PostgreSQL", support.INSTALL)
            return
        support.MEMORY = Path("/nowhere")  # the disk of the temporary folder
        support.SETTINGS["autovacuum"] = "on"  # as everywhere but in tests
        cluster = support.Cluster(support.require_binaries())
        try:
            measure(report, cluster, quick)
        finally:
            cluster.remove()


def measure(report: Report, cluster: support.Cluster, quick: bool) -> None:
    ours, raw = pushes(cluster.url(cluster.create()), PUSHED, 5 if quick else 20, 2 if quick else 5)
    spent = cores(cluster)
    own, server, written = spent["row"]
    report.add(
        Row(
            f"push {PUSHED:,} rows a commit, PostgreSQL, fsync on (wall time)",
            f"{ours:.1f} ms; a row {own:.1f} µs CPU of the client, {server:.1f} µs of the database, "
            f"{written:,.0f} bytes of WAL",
            f"raw unnest, binary {raw:.1f} ms",
            f"{ours / raw:.2f} × its time",
            f"≤ {PUSH_TARGET:g} ×",
            ours <= PUSH_TARGET * raw,
        )
    )
    measured = pairs(cluster, 2.0, 3 if quick else 9)
    locked, grouped = measured.raw, measured.ours
    report.add(
        Row(
            f"lease and answer, one model, {CONNECTIONS} labellers in groups, PostgreSQL (wall time)",
            f"{grouped.without_agendas:,.0f} pairs/s; with the agendas that they need {grouped.rate:,.0f}/s, "
            f"{_cpu(grouped)}",
            f"raw SKIP LOCKED, {CONNECTIONS} connections {locked.rate:,.0f} pairs/s, {_cpu(locked)}",
            f"{measured.times:.2f} × its time; with agendas {measured.times_cpu:.2f} × its CPU",
        )
    )
    served = served_pairs(cluster.url(cluster.create()), CONNECTIONS, OPEN, 3.0 if quick else 10.0)
    report.add(
        Row(
            f"lease and answer, {CONNECTIONS} labellers of a server, PostgreSQL (wall time)",
            f"{served.rate:,.0f} pairs/s, {served.cpu_ms:.1f} ms CPU of the server a pair",
            "",
            "",
            f"≥ {PAIRS_WANTED}/s",
            served.rate >= PAIRS_WANTED,
        )
    )
    own, server, written = spent["pair"]
    report.note(
        f"PostgreSQL, a lease and its answer, one after the other, with agendas: {own / 1e3:.1f} ms CPU of the client, "
        f"{server / 1e3:.1f} ms of the database, {written:,.0f} bytes of WAL."
    )


def _cpu(pairs: Pairs) -> str:
    return f"{pairs.client_ms:.2f} ms CPU a pair, database {pairs.database_ms:.2f}"


if __name__ == "__main__":
    main()
