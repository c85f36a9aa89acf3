"""The server goes away and comes back: what a client goes on with, and what it says when it gives up."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.client.serving import Serving

from quercus.client import (
    AlreadyExists,
    BufferFull,
    Client,
    DeadlineExceeded,
    InvalidArgument,
    Nominal,
    Outbox,
    QuercusError,
    RejectedRow,
    ResourceExhausted,
    ServerError,
    Specification,
    TextItem,
    Unavailable,
)
from quercus.client.retrying import MAX_BACKOFF_S, Outage, is_repeated, service_config
from quercus.v1 import instance_pb2, model_pb2, query_pb2

SPECIFICATION = Specification([Nominal("X", "ab")], ["o", "s"], budget=5, alpha=0.9)
ROWS = [{"X": "a"}, {"X": "b"}]


class Machine:
    """A server that can be switched off and on, always at the same address; it grows trees if asked to."""

    def __init__(self, folder: Path, *, grower: bool = False) -> None:
        self.folder, self.grower = folder, grower
        self.running: Serving | None = Serving(folder, grower=grower)
        self.port = self.running.port
        self.address = self.running.address

    def off(self) -> None:
        assert self.running is not None
        self.running.kill()
        self.running = None

    def on(self) -> None:
        self.running = Serving(self.folder, self.port, grower=self.grower)

    def on_later(self, seconds: float) -> threading.Timer:
        timer = threading.Timer(seconds, self.on)
        timer.start()
        return timer

    def close(self) -> None:
        if self.running is not None:
            self.running.stop()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.close()


@pytest.fixture
def growing_machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path, grower=True)
    yield made
    made.close()


@pytest.mark.slow
def test_calls_that_may_be_made_twice_wait_for_a_server_that_was_there(machine: Machine) -> None:
    with Client(machine.address, outage_s=60) as client:
        client.create_model("m", SPECIFICATION)
        machine.off()
        timer = machine.on_later(2.0)
        assert client.get_model("m").name == "m"
        timer.join()


def test_a_server_that_never_answered_is_not_waited_for() -> None:
    with Client("127.0.0.1:1", outage_s=60) as client:
        started = time.monotonic()
        with pytest.raises(Unavailable, match=r"no server answers at 127\.0\.0\.1:1"):
            client.get_model("m")
        assert time.monotonic() - started < 30


@pytest.mark.slow
def test_an_outage_that_is_too_long_is_reported(machine: Machine) -> None:
    with Client(machine.address, outage_s=1.0) as client:
        client.create_model("m", SPECIFICATION)
        machine.off()
        with pytest.raises(Unavailable, match="no server answers"):
            client.get_model("m")
        with pytest.raises(Unavailable, match="no server answers"):
            client.create_model("n", SPECIFICATION)
    with pytest.raises(InvalidArgument, match="outage_s: is -1"):
        Client(machine.address, outage_s=-1)


def test_what_must_not_be_done_twice_is_not() -> None:
    """The client and gRPC beneath it keep to one list; a stream goes on by itself, from where it broke."""
    once = (model_pb2.CreateModelRequest(), model_pb2.DeleteModelRequest(), query_pb2.ReleaseLeaseRequest())
    assert not any(is_repeated(request) for request in once)
    assert is_repeated(model_pb2.GetModelRequest())
    assert is_repeated(instance_pb2.PushBatchRequest())
    (part,) = service_config()["methodConfig"]
    names = {name["method"] for name in part["name"]}
    assert {
        "GetModel",
        "PushBatch",
        "AnswerQuery",
        "UndoAnswer",
        "Classify",
        "GetStatus",
        "RenderTree",
    } <= names
    assert not names & {
        "CreateModel",
        "DeleteModel",
        "ReleaseLease",
        "PushInstances",
        "StreamQueries",
        "WatchTree",
    }
    outage = Outage(30.0)
    outage.reached = True
    assert outage.start_attempts().pause_s(Unavailable("gone"))
    assert outage.start_attempts().pause_s(Unavailable("gone"), is_repeated=False) is None
    assert outage.start_attempts().pause_s(ServerError("bug")) is None
    busy = ResourceExhausted("busy")
    busy.retry_s = 1.5
    assert outage.start_attempts().pause_s(busy, is_repeated=False) == 1.5


def test_pauses_grow_with_jitter_and_end_with_the_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    outage, gone = Outage(30.0), Unavailable("gone")
    assert outage.start_attempts().pause_s(gone) is None
    trial = outage.start_attempts()
    trial.note_success()
    pauses = []
    while (pause_s := trial.pause_s(gone)) is not None:
        pauses.append(pause_s)
        now += pause_s
    assert sum(pauses) == pytest.approx(30.0)
    assert max(pauses) <= MAX_BACKOFF_S
    assert pauses[0] <= 0.1
    assert len(set(pauses)) == len(pauses)
    now += 1000
    trial.note_success()
    assert trial.pause_s(gone) is not None


def test_an_outage_may_last_for_days() -> None:
    outage = Outage(float("inf"))
    outage.reached = True
    trial = outage.start_attempts()
    assert all(trial.pause_s(Unavailable("gone")) for _ in range(2_000))


@pytest.mark.slow
def test_a_watch_goes_on_after_an_outage_with_what_is_newer(growing_machine: Machine) -> None:
    machine = growing_machine
    with Client(machine.address, outage_s=60) as client:
        client.create_model("m", SPECIFICATION)
        seen = []
        for update in client.watch("m", timeout_s=100):
            seen.append(update.tree.version)
            if len(seen) == 1:
                machine.off()
                machine.on()
                client.push("m", ROWS, ["o", "s"])
            if update.tree.as_of == 2:
                break
        assert seen == sorted(set(seen))


@pytest.mark.slow
def test_labelling_goes_on_after_an_outage(growing_machine: Machine) -> None:
    machine = growing_machine
    with Client(machine.address, outage_s=60) as client:
        two = Specification([Nominal("X", "ab"), Nominal("Y", "cd")], ["o", "s"], budget=5, alpha=0.9)
        client.create_model("m", two)
        client.push("m", [{"X": x, "Y": y} for x in "ab" for y in "cd"] * 5)
        for number, query in enumerate(client.queries("m", "ann", idle_s=30), 1):
            if number == 2:
                machine.off()
                machine.on()
            client.answer(query, "o" if query.values["X"] == "a" else "s")
            if number == 3:
                break
        assert client.get_model("m").queries_answered == 3


@pytest.mark.slow
def test_rows_wait_in_memory_while_the_server_is_away(machine: Machine) -> None:
    with Client(machine.address) as client:
        client.create_model("m", SPECIFICATION)
        with client.outbox("m") as outbox:
            outbox.put(ROWS, ["o", None], ids=["1", "2"])
            outbox.flush(30)
            machine.off()
            for i in range(100):
                outbox.put(ROWS, ids=[f"a{i}", f"b{i}"])
            with pytest.raises(DeadlineExceeded, match=r"200 rows still wait after 0\.2 s"):
                outbox.flush(0.2)
            machine.on()
            outbox.flush(60)
            assert outbox.waiting_rows == 0
        assert client.get_model("m").instance_count == 202


def leave_unsent(outbox: Outbox, rows: list[Any], ids: list[str] | None = None) -> None:
    """Put rows while the server is away, and close the outbox: they stay in its file."""
    outbox.put(rows, ids=ids)
    with pytest.raises(DeadlineExceeded):
        outbox.close(0.1)


def fill(outbox: Outbox) -> None:
    for i in range(10**6):
        outbox.put(ROWS, ids=[f"a{i}", f"b{i}"])


def test_a_buffer_is_bounded_and_takes_all_or_nothing(machine: Machine) -> None:
    with Client(machine.address) as client:
        client.create_model("m", SPECIFICATION)
        outbox = client.outbox("m", max_bytes=2000)
        machine.off()
        with pytest.raises(BufferFull, match=r"bytes wait for .* do not fit into 2,000"):
            fill(outbox)
        count = outbox.waiting_rows // 2
        assert count > 0
        machine.on()
        outbox.close(60)
        assert client.get_model("m").instance_count == 2 * count


def test_put_refuses_rows_that_the_server_would_refuse(machine: Machine) -> None:
    """Row by row where somebody takes them; nothing waits that would be refused."""
    refused: list[RejectedRow] = []
    rows: list[Any] = [{"X": "a"}, {"X": b"a"}, {"Y": "a"}, {"X": "b"}, {"X": "a\nb"}, {"X": "b"}]
    ids = ["0", "1", "2", "3/x", "4", "5\n"]
    with Client(machine.address) as client:
        client.create_model("m", SPECIFICATION)
        with client.outbox("m", on_rejected=refused.extend) as outbox:
            outbox.put(rows, ids=ids)
            assert [(each.position, each.id) for each in refused] == [
                (1, "1"),
                (2, "2"),
                (4, "4"),
                (5, "5\n"),
            ]
            outbox.flush(30)
        assert [each.id for each in client.instances("m")] == ["0", "3/x"]
        outbox = client.outbox("m")
        with pytest.raises(InvalidArgument, match=r"^rows\[1\]\.X: ") as caught:
            outbox.put(rows, ids=ids)
        assert (caught.value.row, outbox.waiting_rows) == (1, 0)
        outbox.put(rows[:1], ids=["later"])
        outbox.close(30)
        assert client.get_model("m").instance_count == 3


def test_what_only_the_server_can_refuse_does_not_stop_an_outbox(machine: Machine, tmp_path: Path) -> None:
    """The rows of the message are stored but for the refused one, which is kept in a file; the next flush says so."""
    path = tmp_path / "rows.buffer"
    with Client(machine.address) as client:
        client.create_model("m", SPECIFICATION)
        client.push("m", ROWS[:1], ids=["1"])
        outbox = client.outbox("m", path)
        outbox.put([*ROWS, *ROWS], [None, ["o"], "s", None], ids=["0", "1", "2", "3"])
        with pytest.raises(
            AlreadyExists, match=r"1 row was refused, and kept in .*\.buffer\.rejected; the first: "
        ):
            outbox.flush(30)
        outbox.put(ROWS, ids=["4", "5"])
        outbox.flush(30)
        outbox.close(30)
        assert [each.id for each in client.instances("m")] == ["1", "0", "2", "3", "4", "5"]
    (kept,) = map(json.loads, Path(f"{path}.rejected").read_text().splitlines())
    reason = "instance 1 already exists in model m with other values"
    assert kept == {"id": "1", "values": {"X": "b"}, "label": "o", "reason": reason}


def test_a_buffer_goes_on_where_somebody_takes_what_is_refused(machine: Machine, tmp_path: Path) -> None:
    """Refused rows leave the file, also that of an earlier process; displays of rows wait in it too."""
    path = tmp_path / "rows.buffer"
    refused: list[RejectedRow] = []
    with Client(machine.address) as client:
        client.create_model("m", SPECIFICATION)
        client.push("m", ROWS[:1], ids=["1"])
        machine.off()
        outbox = client.outbox("m", path, specification=SPECIFICATION)
        leave_unsent(outbox, ROWS[1:] * 2, ids=["1", "2"])
        machine.on()
        with client.outbox("m", path, on_rejected=refused.extend) as outbox:
            beside = [[TextItem("note", "seen")]] * 40
            outbox.put(ROWS * 20, ids=[f"r{i}" for i in range(40)], displays=beside)
            outbox.flush(60)
            assert outbox.waiting_rows == 0
        assert [(each.position, each.id, type(each.error)) for each in refused] == [
            (None, "1", AlreadyExists)
        ]
        assert refused[0].values == {"X": "b"}
        assert client.get_model("m").instance_count == 42
        assert client.get_instance("m", "r39").display[0].title == "note"


PRODUCER = """
import sys
from quercus.client import Client, Nominal, Specification
address, path = sys.argv[1:]
client = Client(address)
outbox = client.outbox("m", path, specification=Specification([Nominal("X", "ab")], ["o", "s"]))
for i in range(10**9):
    outbox.put([{"X": "a"}, {"X": "b"}], ids=[f"a{i}", f"b{i}"])
    print(i, flush=True)
"""


@pytest.mark.slow
def test_a_file_outlives_the_process_and_stores_nothing_twice(machine: Machine, tmp_path: Path) -> None:
    """Rows that `put` took are stored after the process was killed and the server was away, each once."""
    path = tmp_path / "rows.buffer"
    with Client(machine.address) as client:
        client.create_model("m", SPECIFICATION)
        told = -1
        for away in (False, True):
            if away:
                machine.off()
            process = subprocess.Popen(
                [sys.executable, "-c", PRODUCER, machine.address, str(path)],
                stdout=subprocess.PIPE,
                text=True,
            )
            assert process.stdout is not None
            for line in process.stdout:
                last = int(line)
                if last >= 50 * (1 + away):
                    break
            os.kill(process.pid, signal.SIGKILL)
            rest, _ = process.communicate(timeout=30)
            told = max([told, last, *(int(line) for line in rest.split("\n")[:-1])])
        machine.on()
        with client.outbox("m", path) as outbox:
            outbox.flush(60)
        ids = [instance.id for instance in client.instances("m")]
        assert len(set(ids)) == len(ids)
        assert {f"{letter}{i}" for letter in "ab" for i in range(told + 1)} <= set(ids)
        with client.outbox("m", path) as outbox:
            assert outbox.waiting_rows == 0


def test_rows_without_ids_that_a_file_still_holds_are_stored_once(machine: Machine, tmp_path: Path) -> None:
    """Also if the server has stored them: the file may still hold them after the process was killed."""
    path = tmp_path / "rows.buffer"
    with Client(machine.address) as client:
        client.create_model("m", SPECIFICATION)
    machine.off()
    with Client(machine.address) as client:
        outbox = client.outbox("m", path, specification=SPECIFICATION)
        outbox.put(ROWS)
        leave_unsent(outbox, ROWS[:1])
    unsent = path.read_bytes()
    machine.on()
    with Client(machine.address) as client:
        for _ in range(2):
            path.write_bytes(unsent)
            with client.outbox("m", path) as outbox:
                outbox.flush(60)
            assert client.get_model("m").instance_count == 3


def test_a_file_belongs_to_one_model_and_one_process(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "rows.buffer"
    with Client(machine.address) as client:
        for name in ("m", "n"):
            client.create_model(name, SPECIFICATION)
        outbox = client.outbox("m", path)
        with pytest.raises(InvalidArgument, match="is the buffer of another process"):
            client.outbox("m", path)
        machine.off()
        leave_unsent(outbox, ROWS)
        with pytest.raises(InvalidArgument, match="is the buffer of models/m"):
            Outbox(client, "n", path, specification=SPECIFICATION)
        with pytest.raises(InvalidArgument, match="max_bytes: is 0"):
            Outbox(client, "m", max_bytes=0)
        with pytest.raises(InvalidArgument, match="cannot open"):
            Outbox(client, "m", tmp_path / "no" / "folder", specification=SPECIFICATION)


def test_an_outbox_stops_with_an_error_when_its_client_is_closed(machine: Machine) -> None:
    client = Client(machine.address)
    client.create_model("m", SPECIFICATION)
    outbox = client.outbox("m")
    client.close()
    outbox.put([{"X": "a"}])
    with pytest.raises(QuercusError, match="the outbox has stopped"):
        outbox.flush(30)
    with pytest.raises(QuercusError, match="the outbox has stopped"):
        outbox.close(1)


@pytest.mark.slow
def test_a_file_tells_a_process_that_starts_during_an_outage_what_its_rows_are(
    machine: Machine, tmp_path: Path
) -> None:
    path = tmp_path / "rows.buffer"
    with Client(machine.address) as client:
        client.create_model("m", SPECIFICATION)
        first = client.outbox("m", path)
        machine.off()
        leave_unsent(first, ROWS, ids=["1", "2"])
    assert path.stat().st_mode & 0o777 == 0o600
    with Client(machine.address) as client:
        with pytest.raises(Unavailable, match="give the outbox a specification"):
            client.outbox("m", tmp_path / "other.buffer")
        second = client.outbox("m", path)
        second.put(ROWS, ids=["3", "4"])
        machine.on()
        second.close(60)
        assert client.get_model("m").instance_count == 4
    with Client(machine.address) as client, client.outbox("m", path) as outbox:
        assert outbox.waiting_rows == 0


@pytest.mark.release
def test_a_server_that_is_too_busy_is_waited_for(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.off()
    monkeypatch.setenv("QUERCUS_CALLS_PER_S", "2")
    machine.on()
    with Client(machine.address) as client:
        client.create_model("m", SPECIFICATION)
        with client.outbox("m", specification=SPECIFICATION) as outbox:
            for number in range(10):
                outbox.put(ROWS, ids=[f"a{number}", f"b{number}"])
            outbox.flush(60)
        assert client.push("m", ROWS * 10, batch_rows=2).rows == 20
        for _ in range(6):
            assert client.get_model("m").instance_count == 40
