"""The service from outside: pushes acknowledged a second, and Classify latency alone and during growth.

Latency is also given as a ratio to an empty echo call on the same stack (grpc.aio, one process each side).
"""

import asyncio
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import grpc
import numpy as np
from _measure import times
from _report import Report, Row, options, reporting

from quercus.client import Client, Numeric, Specification

ATTRIBUTES = 13
CALLS = 1_500
ECHO = "/bench.Echo/Echo"


async def echo_server():
    async def echo(request, _context):
        return request

    handler = grpc.method_handlers_generic_handler(
        "bench.Echo", {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    )
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((handler,))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()


def latencies_ms(call):
    taken = []
    for _ in range(CALLS):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return np.percentile(np.array(taken) * 1e3, (50, 99))


def echo_latencies():
    child = subprocess.Popen([sys.executable, __file__, "echo"], stdout=subprocess.PIPE, text=True)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{int(child.stdout.readline())}") as channel:
            call = channel.unary_unary(ECHO)
            call(b"x")
            return latencies_ms(lambda: call(b"x" * 100))
    finally:
        child.kill()
        child.wait()


def serve(folder):
    quercus = Path(sys.executable).with_name("quercus")
    command = [quercus, "serve", "--store", folder / "bench.db", "--port", "0"]
    child = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    for line in child.stdout:
        if "listening on " in line:
            return child, line.split("listening on ")[1].split()[0]
    raise SystemExit("the server did not start")


def rows_and_labels(rng, n):
    X = rng.random((n, ATTRIBUTES))
    names = np.array(["low", "middle", "high"], dtype=object)[(X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0.5)]
    return X, [name if known else None for name, known in zip(names, rng.random(n) < 0.1, strict=True)]


def measure(client):
    rng = np.random.default_rng(0)
    spec = Specification([Numeric(f"x{i}") for i in range(ATTRIBUTES)], ["low", "middle", "high"])
    client.create_model("bench", spec)
    client.push("bench", *rows_and_labels(rng, 200))
    client.wait_grown("bench", timeout_s=300)
    row = rng.random((1, ATTRIBUTES))
    client.classify("bench", row)
    alone = latencies_ms(lambda: client.classify("bench", row))
    X, labels = rows_and_labels(rng, 30_000)
    started = time.perf_counter()
    client.push("bench", X, labels)
    rate = len(X) / (time.perf_counter() - started)
    growing = latencies_ms(lambda: client.classify("bench", row))
    pusher = threading.Thread(target=lambda: client.push("bench", *rows_and_labels(rng, 20_000)))
    pusher.start()
    pushing = latencies_ms(lambda: client.classify("bench", row))
    pusher.join()
    return rate, {
        "Classify, nothing else": alone,
        "while growing": growing,
        "while growing and pushed to": pushing,
    }


def add(report: Report, echo, found) -> None:
    for name, (p50, p99) in found.items():
        report.add(
            Row(
                f"classify one row a call, one client: {name} (wall time)",
                f"p50 {p50:.2f} ms, p99 {p99:.2f} ms",
                f"empty echo p50 {echo[0]:.2f} ms, p99 {echo[1]:.2f} ms",
                f"{times(echo[0] / p50)}; {times(echo[1] / p99)}",
            )
        )


def main() -> None:
    quick = options().quick
    with reporting("The service from outside", ("grpcio",), quick=quick) as report:
        echo = echo_latencies()
        with tempfile.TemporaryDirectory() as folder:
            child, address = serve(Path(folder))
            try:
                with Client(address) as client:
                    rate, found = measure(client)
            finally:
                child.terminate()
                child.wait(30)
        report.add(
            Row(
                f"push at 1,000 rows a batch, {ATTRIBUTES} attributes, durable (wall time)",
                f"{rate:,.0f} rows/s",
            )
        )
        add(report, echo, found)


if __name__ == "__main__":
    if sys.argv[1:] == ["echo"]:
        asyncio.run(echo_server())
    else:
        main()
