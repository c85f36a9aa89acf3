"""Raw SQLite commits of rows as the server stores them, for comparison with durable pushes."""

import sqlite3
import time

import numpy as np

from quercus.belief.codec import encode_sets

ATTRIBUTES = 13


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


def with_sqlite(folder, work):
    """Return the seconds of one transaction a batch, in a file of this folder."""
    raw = sqlite3.connect(folder / "raw.db", isolation_level=None)
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("PRAGMA synchronous = FULL")
    raw.execute("CREATE TABLE log (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, data BLOB, label BLOB)")

    def append(ids, values, labels):
        raw.execute("BEGIN IMMEDIATE")
        rows = zip(ids, (row.tobytes() for row in values), labels, strict=True)
        raw.executemany("INSERT INTO log (id, data, label) VALUES (?, ?, ?)", rows)
        raw.execute("COMMIT")

    for number, (ids, values, labels) in enumerate(batches(300, 3)):  # the server has warmed up too
        append([f"warm-{number}-{each}" for each in ids], values, labels)
    started = time.perf_counter()
    for batch in work:
        append(*batch)
    elapsed = time.perf_counter() - started
    raw.close()
    return elapsed
