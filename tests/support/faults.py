"""Faults around a server: the errors that the caller sees, and whether any acknowledged row is lost.

    python tests/support/faults.py

Each fault hits its own server with acknowledged rows, once with a model of the default learner (the active forest) and
once with the published tree. Afterwards the store is opened again and compared with the acknowledged rows. Faults of
disks need root and the right to mount; without them two faults are NOT TESTED.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import grpc
import pytest

from quercus.client import Client, QuercusError
from quercus.client.transport import SpreadChannel
from quercus.v1 import instance_pb2, instance_pb2_grpc, tree_pb2, tree_pb2_grpc
from support.mounts import aborted_disk, fill, small_disk
from support.processes import children, resident_bytes
from support.struck import LEARNERS, MODEL, WAIT_S, Trial
from support.waiting import until

DEFAULT: Final = next(iter(LEARNERS))
HELD_S: Final = 3600
SLOW_GROWTH_BYTES: Final = 64 * 1024 * 1024
"""Maximum growth of the server while readers do not read, in bytes: buffers of gRPC and sockets, fragmentation."""

SLEEPER: Final = """
import sys, threading
sys.path.insert(0, sys.argv[2])
import grpc
from quercus.v1 import query_pb2, query_pb2_grpc, tree_pb2, tree_pb2_grpc
channel = grpc.insecure_channel(sys.argv[1])
done = threading.Event()
if sys.argv[3] == "hold":
    def asks():
        yield query_pb2.StreamQueriesRequest(
            model="models/m", labeller="ann", credits=2, lease_duration={"seconds": 3600}
        )
        done.wait()
    stream = query_pb2_grpc.QueryServiceStub(channel).StreamQueries(asks())
    print(next(stream).query.name, flush=True)
else:
    watches = [
        tree_pb2_grpc.TreeServiceStub(channel).WatchTree(tree_pb2.WatchTreeRequest(model="models/m"))
        for _ in range(20)
    ]
    for watch in watches:
        next(watch)
    print("watching", flush=True)
done.wait()
"""


def disk_full(folder: Path, learner: str = DEFAULT) -> Trial:
    """The disk fills, and is emptied again."""
    with small_disk(folder / "disk", megabytes=16) as disk:
        trial = Trial(disk, outage_s=2.0, learner=learner)
        with trial.server() as client:
            trial.answer(client)
            filler = fill(disk, left_bytes=400_000)
            rows = [["a", "b", "c"]] * 500
            until(lambda: _fails(trial, client, rows), "a full disk", seconds=WAIT_S)
            assert trial.refused("push", lambda: trial.push(client, rows))
            assert not trial.refused("classify", lambda: client.classify(MODEL, rows[:1]))
            filler.unlink()
            until(lambda: not _fails(trial, client, rows[:1]), "room to write again", seconds=WAIT_S)
            trial.answer(client)
            trial.saw.append("with room again: OK")
        trial.check()
    return trial


def _fails(trial: Trial, client: Client, rows: Any) -> bool:
    try:
        trial.push(client, rows)
    except QuercusError:
        return True
    return False


def read_only(folder: Path, learner: str = DEFAULT) -> Trial:
    """The file system of the store becomes read-only under the running server."""
    with aborted_disk(folder / "disk", megabytes=48) as (disk, abort, mount_again):
        trial = Trial(disk, outage_s=2.0, learner=learner)
        with trial.server() as client:
            trial.answer(client)
            # Nothing may be on its way to the disk: Linux can report a flush that this abort cuts short as done, so a
            # row would be acknowledged that no program could have kept (2 of 60 times, with fdatasync alone).
            with trial.quiet():
                abort()
            # whether the system calls such a disk read-only, or only refuses to write, differs between kernels
            is_said = bool(os.statvfs(disk).f_flag & os.ST_RDONLY)
            assert trial.refused("push", lambda: trial.push(client, [["a", "b", "c"]]))
            assert trial.saw[-1].startswith("push: FailedPrecondition" if is_said else "push: Unavailable"), (
                trial.saw
            )
            trial.refused("classify", lambda: client.classify(MODEL, [["a", "b", "c"]]))
            trial.refused("get model", lambda: client.get_model(MODEL))
            trial.serving.kill()  # nothing can be written any more, so there is no reason to wait
        mount_again()
        trial.deliver()
        trial.check()
    return trial


def grower_stopped(folder: Path, learner: str = DEFAULT, rows: int = 2000, silent: bool = True) -> Trial:
    """The grower is stopped by SIGSTOP, and continued by SIGCONT."""
    trial = Trial(folder, learner=learner)
    with trial.server() as client:
        (grower,) = children(trial.serving.process.pid)
        os.kill(grower, signal.SIGSTOP)
        try:
            trial.push(client, [["a", "b", "c"]] * rows)
            trial.answer(client)
            trial.saw.append("push, answer: OK")
            assert not trial.refused("classify", lambda: client.classify(MODEL, [["a", "b", "c"]]))
            assert client.get_model(MODEL).sequence_grown < client.get_model(MODEL).sequence_committed
            if silent:
                until(lambda: client.status().grower == "silent", "the grower to be silent", seconds=WAIT_S)
                trial.saw.append("status: the grower is silent")
        finally:
            os.kill(grower, signal.SIGCONT)
        client.wait_grown(MODEL, timeout_s=WAIT_S)
        trial.saw.append("after SIGCONT: grown to the end")
    trial.check()
    return trial


@contextmanager
def sleeper(trial: Trial, what: str) -> Iterator[str]:
    """Run a client that is stopped once it has its streams; yield its output."""
    command = [
        sys.executable,
        "-c",
        SLEEPER,
        trial.serving.address,
        str(Path(__file__).parents[2] / "src"),
        what,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = process.stdout.readline().strip()
        assert said
        process.send_signal(signal.SIGSTOP)
        yield said
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def slow_readers(folder: Path, learner: str = DEFAULT, pushes: int = 1500) -> Trial:
    """Twenty watches whose client reads nothing, while many trees are published."""
    trial = Trial(folder, ("--snapshot-interval-s", "0"), learner=learner)
    with trial.server() as client, sleeper(trial, "watch"):
        for _ in range(pushes // 5):
            trial.push(client, [["a", "b", "c"]], ["o"])
        before, tree = resident_bytes(trial.serving.process.pid), client.get_model(MODEL).tree_version
        for _ in range(pushes):
            trial.push(client, [["a", "b", "c"]], ["o"])
        client.wait_grown(MODEL, timeout_s=WAIT_S)
        grown = resident_bytes(trial.serving.process.pid) - before
        trees = client.get_model(MODEL).tree_version - tree
        assert grown < SLOW_GROWTH_BYTES, f"the server grew by {grown / 1e6:.0f} MB"
        trial.saw.append(f"others: OK; server {grown / 1e6:+.1f} MB after {trees:,} trees")
    trial.check()
    return trial


def half_open(folder: Path, learner: str = DEFAULT) -> Trial:
    """A client with leases of an hour falls silent; its connection stays, no FIN comes."""
    trial = Trial(folder, learner=learner)
    with trial.server() as client, sleeper(trial, "hold") as held:
        since = time.monotonic()
        until(
            lambda: held not in {query.name for query in client.list_queries(MODEL, ["leased"])},
            "the leases to be free",
            seconds=WAIT_S,
        )
        free = time.monotonic()
        trial.answer(client)
        trial.saw.append(f"leases of {HELD_S} s free after {free - since:.0f} s")
        until(lambda: client.status().calls <= 1, "the stream to end", seconds=WAIT_S)
        trial.saw.append(f"its stream gone {time.monotonic() - free:.0f} s later")
    trial.check()
    return trial


def idle_streams(folder: Path, learner: str = DEFAULT, count: int = 1000) -> Trial:
    """Many idle streams."""
    trial = Trial(folder, learner=learner)
    with trial.server() as client:
        before = resident_bytes(trial.serving.process.pid)
        address, own = trial.serving.address, [("grpc.use_local_subchannel_pool", 1)]
        with closing(SpreadChannel(lambda: grpc.insecure_channel(address, own))) as channel:
            stub: Any = tree_pb2_grpc.TreeServiceStub(channel)
            watches = [
                stub.WatchTree(tree_pb2.WatchTreeRequest(model=f"models/{MODEL}")) for _ in range(count)
            ]
            for watch in watches:
                next(watch)
            each = (resident_bytes(trial.serving.process.pid) - before) / count
            trial.push(client, [["a", "b", "c"]] * 10)
            trial.answer(client)
            assert len(client.classify(MODEL, [["a", "b", "c"]]).labels) == 1
            trial.saw.append(f"push, answer, classify: OK; {each / 1e3:.0f} kB a stream")
            for watch in watches:
                assert next(watch).tree.version  # all receive the new tree
                watch.cancel()
        until(lambda: client.status().calls <= 1, "all streams to end", seconds=WAIT_S)
    trial.check()
    return trial


def queued_pushes(folder: Path, learner: str = DEFAULT, count: int = 10_000) -> Trial:
    """Pushes sent without waiting for one acknowledgement."""
    trial = Trial(folder, learner=learner)
    with trial.server() as client:
        ids = [f"queued-{k}" for k in range(count)]
        rows = {"packed": {"values": [0.0, 1.0, 2.0]}}
        batches = (
            instance_pb2.PushInstancesRequest(model=f"models/{MODEL}", rows=rows, ids=[each], batch_id=each)
            for each in ids
        )
        before = resident_bytes(trial.serving.process.pid)
        with grpc.insecure_channel(trial.serving.address) as channel:
            stub: Any = instance_pb2_grpc.InstanceServiceStub(channel)
            acks = [ack.batch_id for ack in stub.PushInstances(batches, timeout=10 * WAIT_S)]
        assert acks == ids, "not every push was acknowledged once, in order"
        trial.pushed += acks
        grown = resident_bytes(trial.serving.process.pid) - before
        trial.answer(client)
        trial.saw.append(f"{count:,} acknowledgements in order; server {grown / 1e6:+.1f} MB")
    trial.check()
    return trial


def late_answer(folder: Path, learner: str = DEFAULT) -> Trial:
    """A labeller thinks for longer than the lease; another has the query by then."""
    trial = Trial(folder, learner=learner)
    with trial.server() as client:
        late = client.lease(MODEL, "eve", lease_s=1.0, wait_s=30).queries[0]
        until(lambda: _takes(client, late.name), "another to get it", seconds=WAIT_S)
        assert trial.refused("late answer", lambda: client.answer(late, "s"))
    trial.check()
    return trial


def _takes(client: Client, name: str) -> bool:
    return any(query.name == name for query in client.lease(MODEL, "bob", lease_s=60).queries)


FAULTS: Final[dict[str, Callable[[Path, str], Trial]]] = {
    "disk full": disk_full,
    "disk read-only": read_only,
    "grower stopped": grower_stopped,
    "20 readers that do not read": slow_readers,
    "half-open connection": half_open,
    "answer after the lease": late_answer,
    "1,000 idle streams": idle_streams,
    "10,000 queued pushes": queued_pushes,
}


def main() -> None:
    """Run every fault, or those named (`disk full`, `disk full, abc45`), and print the results."""
    wanted = set(sys.argv[1:])
    both = [(name, learner) for name in FAULTS for learner in LEARNERS]
    chosen = [each for each in both if not wanted or wanted & {each[0], ", ".join(each)}]
    fine = [_strikes(*each) for each in chosen]
    sys.exit(fine.count(False))


def _strikes(name: str, learner: str) -> bool:
    """Run a fault; return True if the server passed, or the fault could not be tried."""
    title = f"{name}, {learner}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            trial = FAULTS[name](Path(folder), learner)
        except pytest.skip.Exception as reason:
            print(f"{title:43} | {reason}", flush=True)
            return True
        except (AssertionError, QuercusError, ValueError) as error:
            print(f"{title:43} | FAILED: {error}", flush=True)
            return False
    kept = (
        f"{len(trial.pushed):,} rows and {len(trial.answered)} answers acknowledged, {len(trial.sensed)} rows "
        "through an outbox, none lost"
    )
    print(f"{title:43} | {'; '.join(trial.saw)} | {kept}", flush=True)
    return True


if __name__ == "__main__":
    main()
