"""All cores: classifications of the default model while every core is at work.

``quercus serve --workers auto`` runs beside as many client processes as there are cores, less two; each has a
connection of its own and calls without a pause, one row or 1,000 rows a call. An empty echo of one process, called by
the same clients, says what gRPC itself gives. A machine with fewer than eight cores says little, and gives no row.
"""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import grpc
import numpy as np
from _measure import cpu_s
from _report import Row, options, reporting
from classify import data, grow, request_of
from service import ECHO, process

from quercus.client import Client

CLASSIFY = "/quercus.v1.ClassifyService/Classify"
BATCH = 1_000
CALLS_TARGET, P99_TARGET_MS, ROWS_TARGET = 5_000, 6.0, 500_000
LEAST_CORES = 8


def call_when_told(address, method, rows, seconds):
    """Connect, wait for a line of input, then call without a pause; print the times taken, in milliseconds."""
    message = request_of(data()[0][:rows]).SerializeToString() if method == CLASSIFY else b""
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(method)
        call(message)
        print("ready", flush=True)
        sys.stdin.readline()
        ended, took = time.perf_counter() + seconds, []
        while (begun := time.perf_counter()) < ended:
            call(message)
            took.append(1e3 * (time.perf_counter() - begun))
    print(" ".join(f"{each:.3f}" for each in took), flush=True)


def load(address, method, rows, clients, seconds):
    """Return calls a second, and their median and 99th percentile in milliseconds."""
    command = [sys.executable, __file__, "call", address, method, str(rows), str(seconds)]
    callers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(clients)
    ]
    for each in callers:
        each.stdout.readline()
    for each in callers:
        each.stdin.write("go\n")
        each.stdin.flush()
    took = np.concatenate([np.fromstring(each.communicate()[0], sep=" ") for each in callers])
    return len(took) / seconds, *np.percentile(took, (50, 99))


@contextmanager
def serving(folder, workers):
    command = [Path(sys.executable).with_name("quercus"), "serve", "--workers", str(workers)]
    with process(*command, "--store", folder / f"{workers}.db", "--port", "0") as server:
        with Client(server.address) as client:
            grow(client, *data())
        yield server


def cores_busy(pid, run, seconds):
    """Return what a run gives, and how many cores a server and its children kept busy."""
    started = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    processes = [pid, *map(int, started)]
    before = sum(map(cpu_s, processes))
    found = run()
    return found, (sum(map(cpu_s, processes)) - before) / seconds


def main() -> None:
    quick = options().quick
    cores = os.cpu_count() or 1
    if cores < LEAST_CORES:  # rows that another machine gave stay on the page
        print(f"All cores: NOT MEASURED, this machine has {cores} cores, fewer than {LEAST_CORES}")
        return
    clients, seconds = max(2, cores - 2), 2 if quick else 8
    opened = reporting("All cores", ("grpcio",), quick=quick)
    with opened as report, tempfile.TemporaryDirectory() as name:
        with process(sys.executable, Path(__file__).with_name("service.py"), "echo") as echo:
            echoed = load(echo.address, ECHO, 0, clients, seconds)
        peer = f"echo, one process: {echoed[0]:,.0f} calls/s, p99 {echoed[2]:.1f} ms"
        for workers in (1, cores):
            settings = f"{clients} clients, {cores} cores, --workers {workers} (wall time)"
            with serving(Path(name), workers) as server:
                one, busy = cores_busy(
                    server.pid, lambda: load(server.address, CLASSIFY, 1, clients, seconds), seconds
                )
                report.add(
                    Row(
                        f"Classify one row, {settings}",
                        f"{one[0]:,.0f} calls/s, p50 {one[1]:.1f} ms, p99 {one[2]:.1f} ms, {busy:.1f} cores busy",
                        peer,
                        target=f"≥ {CALLS_TARGET:,}/s, p99 ≤ {P99_TARGET_MS:g} ms" if workers > 1 else "",
                        reached=bool(one[0] >= CALLS_TARGET and one[2] <= P99_TARGET_MS)
                        if workers > 1
                        else None,
                    )
                )
                many, busy = cores_busy(
                    server.pid, lambda: load(server.address, CLASSIFY, BATCH, clients, seconds), seconds
                )
                report.add(
                    Row(
                        f"Classify {BATCH:,} rows a call, {settings}",
                        f"{many[0] * BATCH:,.0f} rows/s, p99 {many[2]:.1f} ms, {busy:.1f} cores busy",
                        target=f"≥ {ROWS_TARGET:,} rows/s" if workers > 1 else "",
                        reached=bool(many[0] * BATCH >= ROWS_TARGET) if workers > 1 else None,
                    )
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["call"]:
        call_when_told(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
    else:
        main()
