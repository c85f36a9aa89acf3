"""Many labellers of one model at one server: each leases a query, answers it, and leases the next."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import numpy as np

from quercus.belief.codec import encode_sets
from quercus.client import Client, Numeric, Specification
from quercus.storage import AgendaEntry, Store
from quercus.v1 import query_pb2, query_pb2_grpc, values_pb2

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from support.processes import cpu_s

MODEL, ROWS, PAUSE_S = "q", 20_000, 0.005
CALLER = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
import _labellers
print(asyncio.run(_labellers.label(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))), flush=True)
"""


@dataclass(frozen=True)
class Served:
    """Pairs of lease and answer a second, and milliseconds of the server's CPU for each."""

    rate: float
    cpu_ms: float


def keep_open(store: Store, model: str, count: int, stop: threading.Event) -> None:
    """Keep up to `count` queries open until `stop`, as a grower does: each agenda contains those still open."""
    key, last = store.get_model(model).key, 0  # the newest row that was asked about; leases take the oldest
    while not stop.is_set():
        record = store.get_model(model)
        if record.queries_open < count // 2:
            first = last - record.queries_open + 1
            last = first + count - 1
            entries = [AgendaEntry(i, b"[[],null,null,[]]", b"") for i in range(first, last + 1)]
            store.publish_agenda(model, as_of=record.sequence_committed, agenda=entries, key=key)
        stop.wait(PAUSE_S)


@contextmanager
def _server(url: str) -> Iterator[tuple[str, int]]:
    """A server without a grower; its address and process."""
    quercus = str(Path(sys.executable).with_name("quercus"))
    command = [quercus, "serve", "--store", url, "--port", "0"]
    env = os.environ | {"QUERCUS_GROWER": "false"}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    try:
        for line in child.stdout:
            if "listening on " in line:
                yield line.split("listening on ")[1].split()[0], child.pid
                return
        raise SystemExit("the server did not start")
    finally:
        child.terminate()
        child.wait(30)


def served_pairs(url: str, labellers: int, open_queries: int, seconds: float) -> Served:
    """Lease and answer through a server on this store, by a process of its own."""
    with _server(url) as (address, process), Store.open(url) as store:
        with Client(address) as client:
            attributes = [Numeric(f"x{i}") for i in range(13)]
            client.create_model(MODEL, Specification(attributes, ["low", "middle", "high"], budget=10**6))
        rows = np.random.default_rng(7).random((ROWS, 13))
        store.append_instances(
            MODEL, [f"i{n}" for n in range(ROWS)], rows, encode_sets(np.full(ROWS, 7, np.uint64))
        )
        stop = threading.Event()
        keeper = threading.Thread(target=keep_open, args=(store, MODEL, open_queries, stop))
        keeper.start()
        try:
            command = [sys.executable, "-c", CALLER, str(Path(__file__).parent), address, str(labellers)]
            subprocess.run([*command, "1"], check=True, stdout=subprocess.DEVNULL)  # warms up
            spent = cpu_s(process)
            ran = subprocess.run([*command, str(seconds)], check=True, stdout=subprocess.PIPE, text=True)
            spent = cpu_s(process) - spent
        finally:
            stop.set()
            keeper.join()
    pairs = int(ran.stdout)
    return Served(pairs / seconds, 1e3 * spent / max(pairs, 1))


async def label(address: str, labellers: int, seconds: float) -> int:
    """Number of pairs by so many labellers in this time."""
    until = time.monotonic() + seconds
    said = values_pb2.Label(class_name="low")

    async def work(stub: query_pb2_grpc.QueryServiceStub, mine: int) -> int:
        count = 0
        while time.monotonic() < until:
            # always another labeller: one who has answered waits for a tree with the answer
            name = f"l{os.getpid()}-{mine}-{count}"
            request = query_pb2.LeaseQueriesRequest(model=f"models/{MODEL}", labeller=name, max_queries=1)
            queries = (await stub.LeaseQueries(request)).queries
            for query in queries:
                await stub.AnswerQuery(
                    query_pb2.AnswerQueryRequest(name=query.name, lease_token=query.lease_token, label=said)
                )
                count += 1
            if not queries:
                await asyncio.sleep(PAUSE_S)
        return count

    async with grpc.aio.insecure_channel(address) as channel:
        stub = query_pb2_grpc.QueryServiceStub(channel)
        return sum(await asyncio.gather(*(work(stub, mine) for mine in range(labellers))))
