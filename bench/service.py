"""The service from outside, at default settings: durable pushes a second, and Classify while others push.

Pushes are beside raw SQLite commits of the same rows: ids, values and labels byte for byte as the server stores them,
one transaction per batch with synchronous = FULL and a unique index on the ids, in one process without a server,
gapless numbers, times or checks. Data are prepared before the clock starts. The grower grows from the pushed rows on
the same cores. Latencies are compared with an empty echo call on the same kind of server (grpc.aio); the two take turns
in one run. Calls go through the generated stubs, as the echo's do.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import numpy as np
from _measure import cpu_s, times
from _report import Report, Row, options, reporting
from _sqlite import batches, with_sqlite

from quercus.belief.codec import encode_contours
from quercus.client import Client, Numeric, Specification
from quercus.v1 import (
    classify_pb2,
    classify_pb2_grpc,
    instance_pb2,
    instance_pb2_grpc,
    values_pb2,
)

ATTRIBUTES = 13
CLASSES = ["low", "middle", "high"]
ECHO = "/bench.Echo/Echo"
PUSHERS, BATCH, STARTS = 64, 1_000, 7
P99_TARGET, PUSH_TARGET, SHARED_TARGET = 3.0, 0.7, 0.8


async def echo_server():
    async def echo(request, _context):
        return request

    handler = grpc.method_handlers_generic_handler(
        "bench.Echo", {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    )
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((handler,))
    print(f"listening on 127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}", flush=True)
    await server.start()
    await server.wait_for_termination()


def push_for_ever(address):
    """Push 1,000 rows at a time to the model that is classified, as another process would."""
    rng = np.random.default_rng(1)

    def requests():
        while True:
            yield push_of(rng.random((1_000, ATTRIBUTES)), "bench")

    with grpc.insecure_channel(address) as channel:
        for _ in instance_pb2_grpc.InstanceServiceStub(channel).PushInstances(requests()):
            pass


def contours_of(rows):
    labels = np.where(np.arange(len(rows)) % 10 == 0, (rows[:, 0] > 0.5) + 1.0 * (rows[:, 1] > 0.5), np.nan)
    return np.where(np.isnan(labels)[:, None], 1.0, np.arange(3) == labels[:, None])


def push_of(rows, model, ids=()):
    contours = contours_of(rows)
    return instance_pb2.PushInstancesRequest(
        model=f"models/{model}",
        rows=values_pb2.Rows(packed=values_pb2.PackedRows(values=rows.ravel())),
        labels=values_pb2.Labels(contours=values_pb2.PackedContours(plausibilities=contours.ravel())),
        ids=ids,
    )


def alone(request):
    """Return the unary call equivalent to a message of a stream."""
    return instance_pb2.PushBatchRequest.FromString(request.SerializeToString())


@dataclass(frozen=True)
class Running:
    """A server: its address, and its process without its grower's."""

    address: str
    pid: int


@contextmanager
def process(*command, grower=True):
    """Run a server."""
    env = os.environ | {"QUERCUS_GROWER": str(grower).lower()}
    child = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True, env=env)
    try:
        for line in child.stdout:
            if "listening on " in line:
                yield Running(line.split("listening on ")[1].split()[0], child.pid)
                return
        raise SystemExit("the server did not start")
    finally:
        child.terminate()
        child.wait(30)


@contextmanager
def pushing(address):
    """Let another process push, and the grower grow."""
    child = subprocess.Popen([sys.executable, __file__, "push", address])
    try:
        yield
    finally:
        child.kill()
        child.wait()


def taken_ms(call, count):
    taken = []
    for _ in range(count):
        started = time.perf_counter()
        call()
        taken.append(1e3 * (time.perf_counter() - started))
    return taken


def in_turns(works, count, turns=10):
    """p50 and p99 of each work in ms; they take turns, so that the noise of the machine affects all of them."""
    taken = [[] for _ in works]
    for _ in range(turns):
        for work, into in zip(works, taken, strict=True):
            into.extend(taken_ms(work, count // turns))
    return [np.percentile(each, (50, 99)) for each in taken]


def push_rates(stub, folder, size, count):
    """Rows a second of one stream, and of raw SQLite commits of the same rows."""
    rates = []
    for turn in range(3):
        work = [
            ([f"{size}-{turn}-{each}" for each in ids], rows, encode_contours(contours_of(rows)))
            for ids, rows, _ in batches(size, count)
        ]
        requests = [push_of(rows, "pushed", ids) for ids, rows, _ in work]
        started = time.perf_counter()
        for _ in stub.PushInstances(iter(requests)):
            pass
        ours = time.perf_counter() - started
        with tempfile.TemporaryDirectory(dir=folder) as raw:
            rates.append((size * count / ours, size * count / with_sqlite(Path(raw), work)))
    return np.median(rates, axis=0)


def shared_rates(server, echo, folder, each, turns=5):
    """Rows per second of many clients that push one row per call and wait; raw SQLite commits of one row; echoes.

    The echo returns the same requests to as many callers in the same process: the maximum for ``grpc.aio`` and the
    callers on the same cores. Then the CPU milliseconds of a push and of an echo in their servers.
    """
    rates = []
    for turn in range(turns):
        work = [
            ([f"p{turn}-{each}" for each in ids], rows, encode_contours(contours_of(rows)))
            for ids, rows, _ in batches(1, PUSHERS * each)
        ]
        requests = [alone(push_of(rows, "pushed", ids)) for ids, rows, _ in work]
        with tempfile.TemporaryDirectory(dir=folder) as raw:
            theirs = len(work) / with_sqlite(Path(raw), work)
        before = cpu_s(server.pid), cpu_s(echo.pid)
        ours = asyncio.run(pushers(server.address, requests))
        echoed = asyncio.run(pushers(echo.address, requests, ECHO))
        spent = 1e3 * np.subtract((cpu_s(server.pid), cpu_s(echo.pid)), before) / len(requests)
        rates.append((ours, theirs, echoed, *spent))
    return np.median(rates, axis=0)


async def pushers(address, requests, method=""):
    """Rows per second of many clients that push one row per call (or call another method), wait, and push the next."""
    async with grpc.aio.insecure_channel(address) as channel:
        request_type = instance_pb2.PushBatchRequest
        call = (
            channel.unary_unary(method, request_type.SerializeToString, request_type.FromString)
            if method
            else instance_pb2_grpc.InstanceServiceStub(channel).PushBatch
        )
        await channel.channel_ready()

        async def push(mine):
            for request in mine:
                await call(request)

        started = time.perf_counter()
        await asyncio.gather(*(push(requests[first::PUSHERS]) for first in range(PUSHERS)))
        return len(requests) / (time.perf_counter() - started)


@contextmanager
def served(folder):
    """Run a server with two models, of which "bench" has 1,000 rows and trees; yield it and a client."""
    quercus = Path(sys.executable).with_name("quercus")
    with (
        process(quercus, "serve", "--store", folder / "bench.db", "--port", "0") as server,
        Client(server.address) as client,
    ):
        for model in ("bench", "pushed"):
            client.create_model(model, Specification([Numeric(f"x{i}") for i in range(ATTRIBUTES)], CLASSES))
        with grpc.insecure_channel(server.address) as channel:
            first = push_of(np.random.default_rng(0).random((1_000, ATTRIBUTES)), "bench")
            list(instance_pb2_grpc.InstanceServiceStub(channel).PushInstances(iter([first])))
        client.wait_grown("bench", timeout_s=600)
        yield server, client


def echoing():
    return process(sys.executable, __file__, "echo")


def pushed(quick):
    """Return the rates of `push_rates` and `shared_rates`, with a server, a store and an echo of their own."""
    with (
        tempfile.TemporaryDirectory() as name,
        served(Path(name)) as (server, client),
        echoing() as echo,
        grpc.insecure_channel(server.address) as channel,
    ):
        stub = instance_pb2_grpc.InstanceServiceStub(channel)
        rates = push_rates(stub, Path(name), BATCH, 6 if quick else 30)
        # growth after the stream must not disturb the next measurement
        client.wait_grown("pushed", timeout_s=600)
        return *rates, *shared_rates(server, echo, Path(name), 4 if quick else 20)


def add_pushes(report, quick):
    """Measure pushes with several servers, since the rate of an echo differs by a third between starts."""
    started = [pushed(quick) for _ in range(1 if quick else STARTS)]
    ours, raw, shared, single, echoed, cost, echo_cost = np.median(started, axis=0)
    of_raw, of_echo, of_single = np.median([(a / b, c / e, c / d) for a, b, c, d, e, *_ in started], axis=0)
    report.add(
        Row(
            f"push, acknowledged durably, {BATCH:,} rows a batch, one stream (wall time)",
            f"{ours:,.0f} rows/s",
            f"raw SQLite commits {raw:,.0f} rows/s",
            times(of_raw),
            f"≥ {PUSH_TARGET:g} ×",
            bool(of_raw >= PUSH_TARGET),
        )
    )
    report.add(
        Row(
            f"push, acknowledged durably, {PUSHERS} clients that push a row and wait (wall time)",
            f"{shared:,.0f} rows/s, {cost:.2f} ms CPU of the server a push",
            f"echo to {PUSHERS} callers {echoed:,.0f} calls/s, {echo_cost:.2f} ms CPU each; "
            f"raw SQLite commits of one row {single:,.0f} rows/s",
            f"{times(of_echo)} the echo; {times(of_single)} raw SQLite",
            f"≥ {SHARED_TARGET:g} × the echo",
            bool(of_echo >= SHARED_TARGET),
        )
    )


def add_classify(report: Report, address, echo, quick):
    rng = np.random.default_rng(0)
    rows = values_pb2.Rows(packed=values_pb2.PackedRows(values=rng.random(ATTRIBUTES)))
    request = classify_pb2.ClassifyRequest(model="models/bench", rows=rows)
    with grpc.insecure_channel(address) as channel, grpc.insecure_channel(echo) as other:
        stub = classify_pb2_grpc.ClassifyServiceStub(channel)
        empty = other.unary_unary(ECHO)
        works = (lambda: stub.Classify(request), lambda: empty(b""))
        in_turns(works, 100)
        count = 400 if quick else 3_000
        alone, echoed = in_turns(works, count)
        with pushing(address):
            time.sleep(2.0)
            growing, echoed_growing = in_turns(works, count)
    worse, echo_worse = growing[1] / alone[1], echoed_growing[1] / echoed[1]
    report.add(
        Row(
            "Classify of one row while another process pushes and the forest grows, p99 (wall time)",
            f"{growing[1]:.2f} ms; alone {alone[1]:.2f} ms",
            f"empty echo {echoed_growing[1]:.2f} ms; alone {echoed[1]:.2f} ms",
            f"{worse:.1f} × alone; the echo {echo_worse:.1f} ×",
            f"≤ {P99_TARGET:g} × alone",
            bool(worse <= P99_TARGET),
        )
    )


def main() -> None:
    quick = options().quick
    with reporting("The service from outside", ("grpcio",), quick=quick) as report:
        add_pushes(report, quick)
        with tempfile.TemporaryDirectory() as name, served(Path(name)) as (server, _), echoing() as echo:
            add_classify(report, server.address, echo.address, quick)


if __name__ == "__main__":
    if sys.argv[1:] == ["echo"]:
        asyncio.run(echo_server())
    elif sys.argv[1:2] == ["push"]:
        push_for_ever(sys.argv[2])
    else:
        main()
