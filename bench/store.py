"""Durable appends to the evidence log, rows a second, beside raw SQLite commits of the same rows (synchronous = FULL).

The log does more for each row: it finds out whether the id is known, and keeps sequence numbers without gaps.
"""

import sqlite3
import tempfile
import time
from pathlib import Path

import numpy as np
from _measure import times
from _report import Row, options, reporting

from quercus.belief.codec import encode_sets
from quercus.storage import Store, file_url

ATTRIBUTES = 13
REPEATS = 5
JUDGED, TARGET = 1_000, 0.7


def batches(size, count):
    rng = np.random.default_rng(0)
    return [
        (
            [f"sensor-{batch}-{row}" for row in range(size)],
            rng.random((size, ATTRIBUTES)),
            encode_sets(np.full(size, 7, np.uint64)),
        )
        for batch in range(count)
    ]


def warm_up(append):
    """Statements are made ready once in the life of a server."""
    for number, (ids, values, labels) in enumerate(batches(300, 3)):
        append([f"warm-{number}-{each}" for each in ids], values, labels)


def with_quercus(folder, work):
    with Store.open(file_url(folder / "quercus.db")) as store:
        store.create_model("m", b"", budget=0)
        warm_up(lambda *batch: store.append_instances("m", *batch))
        started = time.perf_counter()
        for ids, values, labels in work:
            store.append_instances("m", ids, values, labels)
        return time.perf_counter() - started


def with_sqlite(folder, work):
    raw = sqlite3.connect(folder / "raw.db", isolation_level=None)
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("PRAGMA synchronous = FULL")
    raw.execute("CREATE TABLE log (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, data BLOB, label BLOB)")

    def append(ids, values, labels):
        raw.execute("BEGIN IMMEDIATE")
        rows = zip(ids, (row.tobytes() for row in values), labels, strict=True)
        raw.executemany("INSERT INTO log (id, data, label) VALUES (?, ?, ?)", rows)
        raw.execute("COMMIT")

    warm_up(append)
    started = time.perf_counter()
    for batch in work:
        append(*batch)
    elapsed = time.perf_counter() - started
    raw.close()
    return elapsed


def measure(size, count):
    work = batches(size, count)
    rates = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as name:
            ours, raw = with_quercus(Path(name), work), with_sqlite(Path(name), work)
        rates.append((size * count / ours, size * count / raw))
    us, them = np.median(rates, axis=0)
    ratio = float(np.median([ours / raw for ours, raw in rates]))
    judged = size == JUDGED
    return Row(
        f"durable appends, {size:,} rows a commit, {ATTRIBUTES} attributes (wall time)",
        f"{us:,.0f} rows/s",
        f"raw SQLite {them:,.0f} rows/s",
        times(ratio),
        f"≥ {TARGET:g} ×" if judged else "",
        ratio >= TARGET if judged else None,
    )


def main() -> None:
    quick = options().quick
    with reporting("The evidence log", ("sqlalchemy",), quick=quick) as report:
        report.note(f"SQLite {sqlite3.sqlite_version}")
        for size, count in ((1, 300), (100, 50), (1_000, 30)):
            report.add(measure(size, count // 5 if quick else count))


if __name__ == "__main__":
    main()
