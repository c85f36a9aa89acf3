"""One process compared with two workers: cost of a call, division of the work, and rate of 64 clients.

64 connections of 8 processes call single-row Classify of the default forest; 64 clients of 8 processes push a row and
wait for its commit. Servers of one process and of two workers run side by side and take turns; callers run on the same
cores, so a rate says little where these are busy. CPU time is that of all processes that answer calls.

Two servers that share nothing, with half of the callers each, show what a second process costs by itself: fewer calls
arrive together at each, and caches serve more processes. So do two empty echoes beside one.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import numpy as np
from _measure import cpu_s, times
from _report import Row, options, reporting
from service import ECHO, process

from quercus.client import Client, Numeric, Specification
from quercus.v1 import classify_pb2, instance_pb2, values_pb2

ATTRIBUTES, CLASSES, ROWS = 13, ("low", "middle", "high"), 2_000
CONNECTIONS, CALLERS = 64, 8
CPU_TARGET, SHARE_TARGET = 1.1, 0.35
CLASSIFY = "/quercus.v1.ClassifyService/Classify"
PUSH = "/quercus.v1.InstanceService/PushBatch"
OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1),)


@dataclass
class Load:
    """The load by callers: calls, calls per second, and the CPU seconds of each process that answered."""

    calls: int
    rate: float
    cpu: list[float]

    @property
    def cost_ms(self) -> float:
        return 1e3 * sum(self.cpu) / self.calls


async def call_when_told(address, method, seconds, seed):
    """Connect, wait for a line of input, then call on each connection, one call after the other; print their number."""
    rng = np.random.default_rng(seed)
    calls = 0

    async def call(channel, mine):
        nonlocal calls
        made = channel.unary_unary(method)
        while time.monotonic() < ended:
            rows = values_pb2.Rows(packed=values_pb2.PackedRows(values=rng.random(ATTRIBUTES)))
            if method == CLASSIFY:
                request = classify_pb2.ClassifyRequest(model="models/bench", rows=rows)
            else:
                named = f"{seed}-{mine}-{calls}-{ended}"
                request = instance_pb2.PushBatchRequest(model="models/bench", batch_id=named, rows=rows)
            await made(request.SerializeToString())
            calls += 1

    channels = [
        grpc.aio.insecure_channel(address, options=OWN_CONNECTION) for _ in range(CONNECTIONS // CALLERS)
    ]
    await asyncio.gather(*(each.channel_ready() for each in channels))
    print("ready", flush=True)
    sys.stdin.readline()
    ended = time.monotonic() + seconds
    await asyncio.gather(*(call(channel, mine) for mine, channel in enumerate(channels)))
    print(calls, flush=True)


def load(addresses, processes, method, seconds):
    """Let eight processes call a server, or several in equal parts, and measure the CPU time of their processes."""
    callers = [
        subprocess.Popen(
            [
                sys.executable,
                __file__,
                "call",
                addresses[seed % len(addresses)],
                method,
                str(seconds),
                str(seed),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        for seed in range(CALLERS)
    ]
    for each in callers:
        each.stdout.readline()
    before = [cpu_s(pid) for pid in processes]
    for each in callers:
        each.stdin.write("go\n")
    told = [each.stdout.readline() for each in callers]
    used = [cpu_s(pid) - earlier for pid, earlier in zip(processes, before, strict=True)]
    for each in callers:
        each.communicate()
    if not all(told):
        raise SystemExit(f"callers ended with codes {[each.returncode for each in callers]}")
    calls = sum(map(int, told))
    return Load(calls, calls / seconds, used)


@contextmanager
def serving(folder, workers):
    """Run a server with a forest; yield its address, and the processes that answer calls, each in a list."""
    folder.mkdir()
    command = [Path(sys.executable).with_name("quercus"), "serve", "--workers", str(workers)]
    command += ["--store", str(folder / "bench.db"), "--port", "0"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        address = child.stdout.readline().split()[-1]
        rows = np.random.default_rng(0).random((ROWS, ATTRIBUTES))
        labels = [CLASSES[int(x[0] > 0.5) + int(x[1] > 0.5)] for x in rows]
        with Client(address) as client:
            client.create_model(
                "bench", Specification([Numeric(f"x{i}") for i in range(ATTRIBUTES)], CLASSES)
            )
            client.push("bench", rows.tolist(), labels)
            client.wait_grown("bench", timeout_s=600)
        started = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
        yield [address], [child.pid] if workers == 1 else [int(pid) for pid in started]
    finally:
        child.terminate()
        child.wait(60)


def main() -> None:
    quick = options().quick
    turns, seconds = (3, 2) if quick else (9, 5)
    with (
        reporting("Workers", ("grpcio",), quick=quick) as report,
        tempfile.TemporaryDirectory() as name,
        ExitStack() as running,
    ):
        one, other, two = (
            running.enter_context(serving(Path(name) / part, workers))
            for part, workers in (("one", 1), ("other", 1), ("two", 2))
        )
        echo, second = (
            running.enter_context(process(sys.executable, Path(__file__).with_name("service.py"), "echo"))
            for _ in range(2)
        )
        apart = [*one[0], *other[0]], [*one[1], *other[1]]
        one_echo = [echo.address], [echo.pid]
        two_echoes = [echo.address, second.address], [echo.pid, second.pid]
        for method, work in (
            (CLASSIFY, "Classify of one row, default forest"),
            (PUSH, "push a row and wait"),
        ):
            runs = [
                [load(*server, method, seconds) for server in (one, two, apart)]
                + [load(*server, ECHO, seconds) for server in (one_echo, two_echoes)]
                for _ in range(turns)
            ]
            cost, rate = (
                np.median([[getattr(run, what) for run in turn] for turn in runs], axis=0)
                for what in ("cost_ms", "rate")
            )
            share = np.median([min(turn[1].cpu) / sum(turn[1].cpu) for turn in runs])
            settings = f"{work}, {CONNECTIONS} connections of {CALLERS} processes, two workers"
            costs = f"{cost[1]:.2f} ms CPU of the server a call, {rate[1]:,.0f} calls/s (wall time)"
            peer = f"one process {cost[0]:.2f} ms, {rate[0]:,.0f} calls/s; "
            peer += f"two servers apart {cost[2]:.2f} ms, {rate[2]:,.0f} calls/s; "
            peer += f"one empty echo {cost[3]:.2f} ms, {rate[3]:,.0f} calls/s, "
            peer += f"two {cost[4]:.2f} ms, {rate[4]:,.0f} calls/s"
            if method == CLASSIFY:
                ratio = f"{cost[1] / cost[0]:.2f} × the CPU (two servers apart {cost[2] / cost[0]:.2f} ×, "
                ratio += f"two echoes {cost[4] / cost[3]:.2f} ×); the less busy worker {share:.0%}"
                target = f"≤ {CPU_TARGET:g} ×, ≥ {SHARE_TARGET:.0%}"
                reached = bool(cost[1] <= CPU_TARGET * cost[0] and share >= SHARE_TARGET)
            else:
                ratio = f"{times(rate[1] / rate[0])} (two servers apart {times(rate[2] / rate[0])}, "
                ratio += f"two echoes {times(rate[4] / rate[3])})"
                target = "≥ 1 ×"
                reached = bool(rate[1] >= rate[0])
            report.add(Row(settings, costs, peer, ratio, target, reached))


if __name__ == "__main__":
    if sys.argv[1:2] == ["call"]:
        asyncio.run(call_when_told(sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5])))
    else:
        main()
