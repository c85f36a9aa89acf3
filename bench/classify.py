"""Classify of the default model over gRPC: CPU of the server for one row and for 1,000 rows a call, and latency.

The model is what `Specification(attributes, classes)` gives: the forest with the tree beside it, of 13 numbers and 3
classes. 150 of its 2,000 rows are labelled (wines, repeated with noise). One row is beside an empty echo call on the
same kind of server (``grpc.aio``), 1,000 rows beside ``RandomForestClassifier(100).predict_proba`` in process, trained
on the same labelled rows.
"""

import sys
import tempfile
import time
from pathlib import Path

import grpc
import numpy as np
from _measure import cpu, cpu_s, times
from _report import Row, options, reporting
from service import ECHO, process, taken_ms
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from quercus.client import Client, Numeric, Specification
from quercus.v1 import classify_pb2, classify_pb2_grpc, values_pb2

ANSWERED, BATCH = 150, 1_000
ONE_ROW_CPU, ONE_ROW_P50, BATCH_CPU = 1.6, 1.5, 1.0


def data(rows=2_000):
    """Return the wines' values, which are repeated with noise to 2,000 rows, and their classes."""
    X, y = load_wine(return_X_y=True)
    rng = np.random.default_rng(0)
    which = rng.integers(0, len(X), rows)
    return X[which] + rng.normal(size=(rows, X.shape[1])) * X.std(axis=0) * 0.1, y[which]


def request_of(rows):
    packed = values_pb2.PackedRows(values=np.ascontiguousarray(rows).ravel())
    return classify_pb2.ClassifyRequest(model="models/default", rows=values_pb2.Rows(packed=packed))


def grow(client, X, y):
    attributes = [Numeric(f"x{i}") for i in range(X.shape[1])]
    client.create_model("default", Specification(attributes, ["a", "b", "c"]))
    labels = [["a", "b", "c"][c] if i < ANSWERED else None for i, c in enumerate(y)]
    client.push("default", X, labels)
    until = time.monotonic() + 120
    while client.get_model("default").sequence_grown < len(X) and time.monotonic() < until:
        time.sleep(0.1)


def server_cpu_ms(pid, call, count):
    before = cpu_s(pid)
    for _ in range(count):
        call()
    return 1e3 * (cpu_s(pid) - before) / count


def main() -> None:
    quick = options().quick
    quercus = Path(sys.executable).with_name("quercus")
    X, y = data()
    peer = RandomForestClassifier(100, random_state=0).fit(X[:ANSWERED], y[:ANSWERED])
    with (
        reporting("Classify of the default model", ("grpcio", "scikit-learn"), quick=quick) as report,
        tempfile.TemporaryDirectory() as folder,
        process(quercus, "serve", "--store", Path(folder) / "bench.db", "--port", "0") as server,
        process(sys.executable, Path(__file__).with_name("service.py"), "echo") as echo,
        Client(server.address) as client,
        grpc.insecure_channel(server.address) as channel,
        grpc.insecure_channel(echo.address) as other,
    ):
        grow(client, X, y)
        stub = classify_pb2_grpc.ClassifyServiceStub(channel)
        empty = other.unary_unary(ECHO)
        one, many = request_of(X[1_000]), request_of(X[-BATCH:])
        turns, calls = (3, 200) if quick else (9, 1_000)
        figures = [
            (
                server_cpu_ms(server.pid, lambda: stub.Classify(one), calls),
                server_cpu_ms(echo.pid, lambda: empty(b""), calls),
                np.percentile(taken_ms(lambda: stub.Classify(one), calls), 50),
                np.percentile(taken_ms(lambda: empty(b""), calls), 50),
                server_cpu_ms(server.pid, lambda: stub.Classify(many), calls // 20),
                1e3 * cpu(lambda: peer.predict_proba(X[-BATCH:])),
            )
            for _ in range(turns)
        ]
        row, echoed, p50, echo_p50, batch, theirs = np.median(figures, axis=0)
        report.add(
            Row(
                "Classify one row, default model: CPU of the server a call",
                f"{row:.3f} ms",
                f"empty echo {echoed:.3f} ms",
                f"{row / echoed:.2f} × the echo's",
                f"≤ {ONE_ROW_CPU:g} × echo",
                bool(row <= ONE_ROW_CPU * echoed),
            )
        )
        report.add(
            Row(
                "Classify one row, default model: p50 (wall time)",
                f"{p50:.3f} ms",
                f"empty echo {echo_p50:.3f} ms",
                f"{p50 / echo_p50:.2f} × the echo's",
                f"≤ {ONE_ROW_P50:g} × echo",
                bool(p50 <= ONE_ROW_P50 * echo_p50),
            )
        )
        report.add(
            Row(
                f"Classify {BATCH:,} rows a call, default model: CPU of the server a row",
                f"{batch:.2f} µs",
                f"RandomForestClassifier(100).predict_proba in process {theirs:.2f} µs",
                times(theirs / batch),
                "≤ scikit-learn",
                bool(batch <= theirs),
            )
        )


if __name__ == "__main__":
    main()
