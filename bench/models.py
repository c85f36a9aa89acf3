"""Many models: what a commit costs server and grower, how long a push takes, and what the grower holds for a model.

One of the models is pushed to, a row at a time, on one stream; the others rest. Models have default settings. What a
commit costs is CPU time of both processes as the system counts it. A server with one model runs beside the one with
many, and they take turns, because a machine is not as fast in one minute as in another.
"""

import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import numpy as np
from _measure import cpu_s, family, resident_mb
from _models import FOREST
from _report import Report, Row, parser, reporting
from service import process, push_of

from quercus.client import Client, Numeric, Specification
from quercus.v1 import classify_pb2, classify_pb2_grpc, instance_pb2_grpc, model_pb2_grpc
from quercus.v1 import model_pb2 as wire

QUERCUS = Path(sys.executable).with_name("quercus")
COUNTS, QUICK_COUNTS = (1_000,), (50,)
CPU_TARGET_MS, PUSH_TARGET = 2.0, 1.3
TURNS = 6


@dataclass
class Served:
    """A server and its grower, and a connection to it."""

    pids: list[int]
    channel: grpc.Channel
    client: Client
    started_cpu_s: float = 0.0

    def cpu_s(self) -> float:
        return sum(map(cpu_s, self.pids))


@contextmanager
def serving(store: Path, count: int, learner: str):
    """Serve a store with so many models, each with its first forest."""
    with (
        process(QUERCUS, "serve", "--store", store, "--port", "0") as server,
        grpc.insecure_channel(server.address) as channel,
        Client(server.address) as client,
    ):
        served = Served(family(server.pid), channel, client)
        make_models(served, count, learner)
        yield served


def make_models(served: Served, count: int, learner: str) -> None:
    """Make models m0, m1, ...; wait until the grower has published a version of each."""
    attributes = [Numeric(f"x{i}") for i in range(13)]
    of_all = Specification(attributes, ["low", "middle", "high"], learner=learner)
    served.client.create_model("m0", of_all)
    stub = model_pb2_grpc.ModelServiceStub(served.channel)
    specification = stub.GetModel(wire.GetModelRequest(name="models/m0")).specification
    before = served.cpu_s()
    for number in range(1, count):
        stub.CreateModel(wire.CreateModelRequest(model_id=f"m{number}", specification=specification))
    served.client.wait_grown("m0", timeout_s=600)
    while not all(each.tree_version for each in served.client.models()):
        time.sleep(max(1.0, count / 1_000))  # to list them costs CPU time, too
    served.started_cpu_s = served.cpu_s() - before
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


def in_turns(works: list[Served], pushes: int) -> list[tuple[float, float]]:
    """Return for each server the p50 of a push in ms, and CPU ms a commit."""
    taken: list[list[tuple[list[float], float]]] = [[] for _ in works]
    for turn in range(TURNS):
        for served, into in zip(works, taken, strict=True):
            into.append(pushed(served, pushes, f"{turn}"))
    return [
        (
            float(np.median(np.concatenate([ms for ms, _ in each]))),
            float(np.median([cost for _, cost in each])),
        )
        for each in taken
    ]


def measure(report: Report, count: int, folder: Path, pushes: int, learner: str) -> None:
    with ExitStack() as stack:
        one, many = (stack.enter_context(serving(folder / f"{n}.db", n, learner)) for n in (1, count))
        (alone, alone_cpu), (among, among_cpu) = in_turns([one, many], pushes)
        held = max(0.0, resident_mb(many.pids[1]) - resident_mb(one.pids[1])) / count * 1e3
        made = 1e3 * many.started_cpu_s / count
    report.add(
        Row(
            f"push a row to one of {count:,} models: p50 (wall time), CPU of server and grower",
            f"{among:.2f} ms, {among_cpu:.2f} ms",
            f"with 1 model {alone:.2f} ms, {alone_cpu:.2f} ms",
            f"{among / alone:.2f} × its time",
            f"≤ {PUSH_TARGET:g} ×, ≤ {CPU_TARGET_MS:g} ms CPU",
            among <= PUSH_TARGET * alone and among_cpu <= CPU_TARGET_MS,
        ),
    )
    report.note(
        f"{count:,} models: to make one and to publish its first version costs {made:.1f} ms of CPU of server and "
        f"grower; then the grower holds {held:.0f} kB for it."
    )


def main() -> None:
    read = parser()
    read.add_argument("--counts", type=lambda text: tuple(map(int, text.split(","))))
    read.add_argument("--learner", default=FOREST)
    given = read.parse_args()
    counts = given.counts or (QUICK_COUNTS if given.quick else COUNTS)
    with (
        reporting("Many models", ("grpcio",), quick=given.quick) as report,
        tempfile.TemporaryDirectory() as name,
    ):
        for count in counts:
            measure(report, count, Path(name), 30 if given.quick else 150, given.learner)


if __name__ == "__main__":
    main()
