"""Many models: what a commit costs server and grower, how long a push takes, and what the grower costs a model.

One of the models is pushed to, a row at a time, on one stream; the others rest. What a commit costs is CPU time of
both processes as the system counts it. A server with one model runs beside each, and they take turns, because a machine
is not as fast in one minute as in another. ``--before CHECKOUT`` has another checkout of Quercus serve too. Then
labellers wait for a query of any model while rows are pushed.
"""

import argparse
import os
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
from _report import Report, Row, reporting
from service import push_of

from quercus.client import Client, Numeric, Specification
from quercus.v1 import (
    classify_pb2,
    classify_pb2_grpc,
    instance_pb2_grpc,
    model_pb2_grpc,
    query_pb2,
    query_pb2_grpc,
)
from quercus.v1 import model_pb2 as wire

ROOT = Path(__file__).resolve().parent.parent
COUNTS, QUICK_COUNTS = (1, 100, 400, 1_000, 10_000), (1, 100)
WAITING_MODELS, LABELLERS = 600, 20
CPU_TARGET_MS, JUDGED_CPU = 2.0, 400
PUSH_TARGETS = {1_000: 1.3, 10_000: 1.5}
MOST_COMPARED = 1_000  # models beside which another checkout is measured
TURNS = 6
COMPILED_S = 600.0
START = "import sys; sys.argv[0] = 'quercus'; from quercus.cli.main import main; main()"


@dataclass
class Served:
    """A server and its grower, and a connection to it."""

    pids: list[int]
    channel: grpc.Channel
    client: Client
    started_s: float = 0.0
    started_cpu_s: float = 0.0

    def cpu_s(self) -> float:
        return sum(map(cpu_s, self.pids))


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def children_of(pid: int) -> list[int]:
    return [
        int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    ]


@contextmanager
def serving(checkout: Path, store: Path):
    """Serve a store by a checkout; what is there need not be grown yet."""
    env = os.environ | {"PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-c", START, "serve", "--store", str(store), "--port", "0"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, cwd=checkout)
    try:
        address = next(
            line.split("listening on ")[1].split()[0] for line in child.stdout if "listening on " in line
        )
        children = children_of(child.pid)
        until = time.monotonic() + COMPILED_S
        while len(children) > 1 and time.monotonic() < until:  # one of them helps to compile, and ends
            time.sleep(0.5)
            children = children_of(child.pid)
        with grpc.insecure_channel(address) as channel, Client(address) as client:
            yield Served([child.pid, *children], channel, client)
    finally:
        child.terminate()
        child.wait(60)


def make_models(served: Served, count: int) -> None:
    """Make models m0, m1, ...; wait until the grower has published a tree of each."""
    attributes = [Numeric(f"x{i}") for i in range(13)]
    tree = Specification(attributes, ["low", "middle", "high"], algorithm="abc45")
    served.client.create_model("m0", tree)
    stub = model_pb2_grpc.ModelServiceStub(served.channel)
    specification = stub.GetModel(wire.GetModelRequest(name="models/m0")).specification
    started, before = time.monotonic(), served.cpu_s()
    for number in range(1, count):
        stub.CreateModel(wire.CreateModelRequest(model_id=f"m{number}", specification=specification))
    served.client.wait_grown("m0", timeout_s=600)
    while not all(each.tree_version for each in served.client.models()):
        time.sleep(max(1.0, count / 1_000))  # to list them costs CPU time, too
    served.started_s, served.started_cpu_s = time.monotonic() - started, served.cpu_s() - before
    row = push_of(np.zeros((1, 13)), "").rows
    classify = classify_pb2_grpc.ClassifyServiceStub(served.channel).Classify
    for number in range(count):  # the server remembers those in use
        classify(classify_pb2.ClassifyRequest(model=f"models/m{number}", rows=row))


def pushed(served: Served, pushes: int, tag: str) -> tuple[list[float], float]:
    """Milliseconds of each push of one row to m0, and CPU milliseconds of a commit."""
    rows = np.random.default_rng(0).random((pushes, 13))
    stub = instance_pb2_grpc.InstanceServiceStub(served.channel)
    taken, sent = [], [0.0]

    def requests():
        for number in range(pushes):
            sent[0] = time.perf_counter()
            yield push_of(rows[number : number + 1], "m0", [f"{tag}-{number}"])

    before = served.cpu_s()
    stream = stub.PushInstances(one_by_one(requests(), gate := [True]))
    for _ in stream:
        taken.append(1e3 * (time.perf_counter() - sent[0]))
        gate[0] = True
    return taken, 1e3 * (served.cpu_s() - before) / pushes


def one_by_one(requests, gate):
    """Give the next request when the one before is acknowledged."""
    for request in requests:
        while not gate[0]:
            time.sleep(0.0002)
        gate[0] = False
        yield request


@contextmanager
def labellers(served: Served, count: int):
    """Have labellers wait for a query of any model, and none come."""
    stub = query_pb2_grpc.QueryServiceStub(served.channel)
    calls = []
    for number in range(count):
        request = query_pb2.LeaseQueriesRequest(model="models/-", labeller=f"l{number}")
        request.wait.FromSeconds(60)
        calls.append(stub.LeaseQueries.future(request))
    time.sleep(1.0)
    try:
        yield
    finally:
        for call in calls:
            call.cancel()


def alike(versions: dict[str, Path], folder: Path, count: int, stack: ExitStack) -> dict[str, Served]:
    """Start a server of each version with `count` models."""
    found = {}
    folder.mkdir(exist_ok=True)
    for name, checkout in versions.items():
        found[name] = stack.enter_context(serving(checkout, folder / f"{name}-{count}.db"))
        make_models(found[name], count)
    return found


def in_turns(
    served: dict[str, Served], pushes: int, turns: int, tag: str
) -> dict[str, tuple[float, float, float]]:
    """Return for each version: p50 of a push in ms, CPU ms per commit, pushes per second; the versions take turns."""
    taken: dict[str, list[float]] = {name: [] for name in served}
    cpu: dict[str, list[float]] = {name: [] for name in served}
    for turn in range(turns):
        for name, each in served.items():
            found, cost = pushed(each, pushes, f"{tag}{turn}")
            taken[name] += found
            cpu[name].append(cost)
    return {
        name: (float(np.median(taken[name])), float(np.median(cpu[name])), 1e3 / float(np.mean(taken[name])))
        for name in served
    }


def figures(name: str, found: dict[str, tuple[float, float, float]]) -> str:
    p50, cpu, rate = found[name]
    return f"{cpu:.2f} ms CPU a commit; push p50 {p50:.1f} ms, {rate:,.0f} pushes/s"


def measure_counts(report: Report, versions: dict[str, Path], counts, folder: Path, pushes: int) -> None:
    with ExitStack() as whole:
        alone = {"alone": alike({"now": versions["now"]}, folder / "alone", 1, whole)["now"]}
        for count in counts:
            with ExitStack() as stack:
                compared = versions if count <= MOST_COMPARED else {"now": versions["now"]}
                served = alike(compared, folder, count, stack)
                found = in_turns(alone | served, pushes, TURNS, f"c{count}")
                add_count(report, found, count)
                if count > 1:
                    note_cost(report, served["now"], count, resident_bytes(alone["alone"].pids[1]))


def add_count(report: Report, found: dict[str, tuple[float, float, float]], count: int) -> None:
    ratio = found["now"][0] / found["alone"][0]
    judged = {JUDGED_CPU: found["now"][1] <= CPU_TARGET_MS}
    targets = {JUDGED_CPU: f"≤ {CPU_TARGET_MS:g} ms CPU a commit"}
    for models, most in PUSH_TARGETS.items():
        judged[models] = ratio <= most
        targets[models] = f"push ≤ {most:g} × of one at 1 model"
    beside = f"{ratio:.2f} × that at 1 model, in turns with it ({figures('alone', found)})"
    report.add(
        Row(
            f"one row a push, {count:,} models, server and grower (CPU; wall time of a push)",
            f"{figures('now', found)}, {beside}",
            f"before: {figures('before', found)}" if "before" in found else "",
            times(found["before"][1] / found["now"][1]) + " CPU" if "before" in found else "",
            targets.get(count, ""),
            judged.get(count),
        )
    )


def note_cost(report: Report, served: Served, count: int, memory_of_one: int) -> None:
    each = max(0, resident_bytes(served.pids[1]) - memory_of_one) / count / 1024
    cost = 1e3 * served.started_cpu_s / count
    report.note(
        f"{count:,} models: the grower holds {each:.1f} KiB a model without rows; to make one and to publish "
        f"its first tree costs {cost:.1f} ms of CPU of both processes ({served.started_s:.0f} s in all)."
    )


def measure_waiting(
    report: Report, versions: dict[str, Path], folder: Path, models: int, pushes: int
) -> None:
    with ExitStack() as stack:
        served = alike(versions, folder, models, stack)
        without = in_turns(served, pushes, 2, "quiet")
        for each in served.values():
            stack.enter_context(labellers(each, LABELLERS))
        with_them = in_turns(served, pushes, 2, "waited")
    report.add(
        Row(
            f"one row a push, {models:,} models, {LABELLERS} labellers waiting for any model (wall time)",
            f"{with_them['now'][2]:,.1f} pushes/s, {without['now'][2]:,.1f} without them",
            f"before: {with_them['before'][2]:,.1f}, {without['before'][2]:,.1f} without"
            if "before" in served
            else "",
            times(with_them["now"][2] / with_them["before"][2]) if "before" in served else "",
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--quick", action="store_true", help="fewer models and pushes: a look, not a measurement"
    )
    parser.add_argument("--before", type=Path, help="another checkout of Quercus, to compare with")
    parser.add_argument("--counts", type=lambda text: tuple(map(int, text.split(","))))
    given = parser.parse_args()
    versions = {"now": ROOT} | ({"before": given.before.resolve()} if given.before else {})
    counts = given.counts or (QUICK_COUNTS if given.quick else COUNTS)
    pushes = 30 if given.quick else 150
    with (
        reporting("Many models", ("grpcio",), quick=given.quick) as report,
        tempfile.TemporaryDirectory() as name,
    ):
        measure_counts(report, versions, counts, Path(name), pushes)
        measure_waiting(report, versions, Path(name), 60 if given.quick else WAITING_MODELS, pushes)


if __name__ == "__main__":
    main()
