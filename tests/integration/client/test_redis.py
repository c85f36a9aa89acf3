"""Redis streams to rows through a real broker: none lost, none twice, whichever process is killed."""

import json
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from integration.client.serving import QUERCUS, Serving
from support.broker import RunningRedis
from support.waiting import until

from quercus.client import (
    Client,
    FailedPrecondition,
    InvalidArgument,
    Nominal,
    NotFound,
    Numeric,
    Specification,
    Unavailable,
)
from quercus.client.bridges import arriving, redis_streams
from quercus.client.bridges.messages import MessageFormat
from quercus.client.bridges.redis_streams import RedisBridge, StreamGroup

WAIT_S = 60.0
SPECIFICATION = Specification([Nominal("hue", ["red", "blue"]), Numeric("size")], ["o", "s"])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRedis]:
    running = RunningRedis(tmp_path_factory.mktemp("redis"))
    yield running
    running.close()


@pytest.fixture
def sensor(broker: RunningRedis) -> Iterator[Any]:
    with redis.Redis(port=broker.port, protocol=2) as made:
        yield made


@pytest.fixture
def made(client: Client, name: str) -> str:
    client.create_model(name, SPECIFICATION)
    return name


def source(broker: RunningRedis, model: str, **fields: Any) -> StreamGroup:
    return StreamGroup(**{"url": broker.url, "streams": [model], "group": "g", "consumer": "a"} | fields)


def bridge(client: Client, group: StreamGroup, model: str, **fields: Any) -> RedisBridge:
    return RedisBridge(client, model, group, MessageFormat(label_field="class", ignored={"time"}), **fields)


def row(k: int) -> str:
    return json.dumps({"id": f"m-{k}", "hue": "red" if k % 2 else "blue", "size": k})


def unacknowledged(sensor: Any, stream: str, group: str = "g") -> int:
    return int(sensor.xpending(stream, group)["pending"])


def test_entries_of_two_streams_become_rows_with_their_labels(
    broker: RunningRedis, sensor: Any, client: Client, made: str
) -> None:
    for k in range(300):
        sensor.xadd(f"{made}/a", {"data": row(k)})
    two = '[{"id": "x", "size": 1, "class": "s"}, {"id": "y", "class": ["o", "s"], "time": 3}]'
    sensor.xadd(f"{made}/b", {"data": two, "trace": "5f"})
    group = source(broker, made, streams=[f"{made}/a", f"{made}/b"])
    tally = bridge(client, group, made, batch=70).run(most=301)
    assert (tally.messages, tally.stored, tally.known, tally.rejected) == (301, 302, 0, 0)
    assert client.get_instance(made, "m-7").values == {"hue": "red", "size": 7.0}
    assert client.get_instance(made, "x").contour == (0.0, 1.0)
    assert unacknowledged(sensor, f"{made}/a") == unacknowledged(sensor, f"{made}/b") == 0
    for k in range(4):
        sensor.xadd(f"{made}/{'ab'[k % 2]}", {"data": row(1000 + k)})
    assert bridge(client, group, made).run(most=1).stored == 1  # the others are read by the next
    assert bridge(client, group, made).run(most=3).stored == 3


def test_a_row_without_an_id_is_named_by_its_entry(
    broker: RunningRedis, sensor: Any, client: Client, made: str
) -> None:
    same = '{"hue": "red", "size": 1}'
    entries = [sensor.xadd(made, {"data": same}).decode() for _ in range(2)]
    assert (
        bridge(client, source(broker, made), made).run(most=2).stored == 2
    )  # two measurements that are equal
    assert {each.id for each in client.instances(made)} == {f"{made}/{entry}" for entry in entries}
    again = bridge(client, source(broker, made, group="other"), made).run(most=2)
    assert (again.stored, again.known) == (0, 2)


def test_what_is_no_row_is_kept_aside_and_the_others_are_stored(
    broker: RunningRedis, sensor: Any, client: Client, made: str, tmp_path: Path
) -> None:
    for payload in (row(0), "{", row(1), '{"id": "v", "size": "large"}'):
        sensor.xadd(made, {"data": payload})
    sensor.xadd(made, {"alcohol": "13", "hue": "red"})
    path = tmp_path / "rejected.jsonl"
    with path.open("a") as rejected:
        tally = bridge(client, source(broker, made), made, rejected=rejected).run(most=5)
    assert (tally.messages, tally.stored, tally.rejected) == (5, 2, 3)
    kept = {each["payload"]: each for each in map(json.loads, path.read_text().splitlines())}
    assert {each["stream"] for each in kept.values()} == {made}
    assert kept["{"]["reason"].startswith("is not JSON")
    fields = kept['{"alcohol": "13", "hue": "red"}']
    assert fields["reason"] == "has no field 'data', only 'alcohol', 'hue'"
    assert unacknowledged(sensor, made) == 0


def test_the_file_of_what_is_refused_is_bounded(
    broker: RunningRedis,
    sensor: Any,
    client: Client,
    made: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A line holds one row of its message, and not the whole of it; a full file takes no more lines."""
    monkeypatch.setattr(arriving, "MAX_REJECTED_BYTES", 200_000)
    wrong = json.dumps([{"id": f"w-{k}", "size": "large"} for k in range(500)])
    path, said = tmp_path / "rejected.jsonl", list[str]()
    for turn in range(3):
        sensor.xadd(made, {"data": wrong})
        with path.open("a") as rejected:
            tally = bridge(client, source(broker, made), made, rejected=rejected, notify=said.append).run(
                most=1
            )
        assert (tally.messages, tally.rejected, unacknowledged(sensor, made)) == (1, 500, 0)
        full = [line for line in said if "move the file away" in line]
        assert len(full) == (0, 1, 2)[turn]
        assert path.stat().st_size <= 200_000
    assert json.loads(path.read_text().splitlines()[-1])["reason"]


def test_what_was_sent_and_not_acknowledged_comes_again(
    broker: RunningRedis, sensor: Any, client: Client, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the next bridge of the name at once, to one of another name when it was left alone for a while."""
    sensor.xgroup_create(made, "g", id="0", mkstream=True)
    for k in range(5):
        last = sensor.xadd(made, {"data": row(k)}).decode()
    assert sensor.xreadgroup("g", "a", {made: ">"}, count=2)
    assert sensor.xreadgroup("g", "dead", {made: ">"}, count=3)
    sensor.xdel(made, last)  # as MAXLEN would
    said: list[str] = []
    tally = bridge(client, source(broker, made), made, notify=said.append).run(most=2)
    assert (tally.stored, tally.rejected, unacknowledged(sensor, made)) == (2, 1, 2)
    monkeypatch.setattr(redis_streams, "LEFT_ALONE_S", 0.05)
    time.sleep(0.1)
    tally = bridge(client, source(broker, made), made).run(most=2)
    assert (tally.stored, unacknowledged(sensor, made)) == (2, 0)
    gone = "has no field 'data', for it was deleted before it was read"
    assert [line for line in said if "is not a row" in line] == [
        f"message of {made} {last} is not a row: {gone}"
    ]
    last = sensor.xadd(made, {"data": row(7)}).decode()
    assert sensor.xreadgroup("g", "a", {made: ">"})
    sensor.xdel(made, last)
    tally = bridge(client, source(broker, made), made, notify=said.append).run(most=1)
    assert (tally.stored, tally.rejected, unacknowledged(sensor, made)) == (0, 1, 0)
    assert said[-1] == f"message of {made} {last} is not a row: {gone}"


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_none_is_lost_or_stored_twice_when_bridge_server_and_broker_are_killed(tmp_path: Path) -> None:
    """SIGKILL of one after the other while a sensor goes on; it sends again what no broker acknowledged to it."""
    (tmp_path / "redis").mkdir()
    broker = RunningRedis(tmp_path / "redis")
    serving = Serving(tmp_path, grower=False)
    with Client(serving.address) as first:
        first.create_model("m", SPECIFICATION)
    command = [QUERCUS, "bridge", "redis", "--broker", broker.url, "--stream", "m", "--model", "m"]
    command += ["--server", serving.address]

    def start_bridge() -> subprocess.Popen[str]:
        return subprocess.Popen(command, stderr=subprocess.DEVNULL, text=True)

    ended, sent = threading.Event(), 0

    def send() -> None:
        nonlocal sent
        with redis.Redis(port=broker.port) as made:
            while not ended.is_set():
                try:
                    made.xadd("m", {"data": row(sent)})
                except redis.RedisError:  # not acknowledged: it may be there
                    time.sleep(0.01)
                else:
                    sent += 1

    sensor = threading.Thread(target=send)
    sensor.start()
    running = start_bridge()
    try:
        for victim in ("bridge", "server", "broker", "bridge", "broker", "server"):
            with Client(serving.address) as client:
                before = client.get_model("m").instance_count
                until(lambda client=client, before=before: client.get_model("m").instance_count > before)  # type: ignore[misc]
            time.sleep(random.uniform(0, 0.1))  # noqa: S311
            match victim:
                case "bridge":
                    running.kill()
                    running.wait(timeout=WAIT_S)
                    running = start_bridge()
                case "server":
                    serving.kill()
                    serving = Serving(tmp_path, serving.port, grower=False)
                case "broker":
                    broker.kill()
                    broker.start()
        ended.set()
        sensor.join(WAIT_S)
        with Client(serving.address) as client, redis.Redis(port=broker.port) as made:
            until(lambda: client.get_model("m").instance_count >= sent)
            until(lambda: unacknowledged(made, "m", "quercus-m") == 0)
            assert sorted(each.id for each in client.instances("m")) == sorted(f"m-{k}" for k in range(sent))
        running.terminate()
        assert running.wait(timeout=WAIT_S) == 0
    finally:
        ended.set()
        running.kill()
        sensor.join(WAIT_S)
        broker.close()
        assert serving.stop() == 0


def test_a_broker_that_lost_its_group_is_read_from_the_beginning(
    broker: RunningRedis, sensor: Any, client: Client, made: str
) -> None:
    told: list[str] = []
    running = bridge(client, source(broker, made), made, notify=told.append)
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        sensor.xadd(made, {"data": row(0)})
        until(lambda: client.get_model(made).instance_count == 1)
        sensor.delete(made)
        sensor.xadd(made, {"data": row(1)})
        until(lambda: client.get_model(made).instance_count == 2)
    finally:
        running.stop()
        thread.join(WAIT_S)
    assert any(
        "fails: " in line and "retrying" in line for line in told
    )  # NOGROUP, or UNBLOCKED while it waited
    assert told[-1] == f"connected to {broker.url} again"


def test_faults_are_told_at_the_start(
    broker: RunningRedis, sensor: Any, client: Client, made: str, name: str, tmp_path: Path
) -> None:
    sensor.set(f"{made}-text", "7")
    with pytest.raises(FailedPrecondition, match="refuses the group g: WRONGTYPE"):
        bridge(client, source(broker, made, streams=[f"{made}-text"]), made).run()
    with pytest.raises(Unavailable, match=r"no broker answers at redis://127\.0\.0\.1:9: "):
        bridge(client, source(broker, made, url="redis://127.0.0.1:9"), made).run()
    for url in ("http://a", "redis://", "redis://u:p@a", "redis://a/b", "redis://a:x"):
        with pytest.raises(InvalidArgument, match="broker: "):
            bridge(client, source(broker, made, url=url), made).run()
    for url in (
        "redis://ann:sesame@a", "redis://a/1?password=sesame", "redis://a:1#sesame", "redis://u:sesame@[::1",
        "redis://a:0",
    ):  # fmt: skip
        with pytest.raises(InvalidArgument, match="broker: ") as refused:
            bridge(client, source(broker, made, url=url), made).run()
        assert "sesame" not in str(refused.value)
    with pytest.raises(NotFound):
        bridge(client, source(broker, made), "nobody").run()
    locked = RunningRedis(tmp_path, "--requirepass", "sesame")
    try:
        with pytest.raises(Unavailable, match="refuses: "):
            bridge(client, source(locked, made), made).run()
        with pytest.raises(Unavailable, match="refuses: "):
            bridge(client, source(locked, made, password="wrong"), made).run()
        with redis.Redis(port=locked.port, password="sesame") as inside:
            inside.xadd(made, {"data": row(0)})
        assert bridge(client, source(locked, made, password="sesame"), made).run(most=1).stored == 1
    finally:
        locked.close()


def test_a_stream_that_is_named_twice_counts_once(
    broker: RunningRedis, sensor: Any, client: Client, made: str
) -> None:
    for k in range(2):
        sensor.xadd(made, {"data": row(k)})
    tally = bridge(client, source(broker, made, streams=[made, made]), made).run(most=2)
    assert (tally.messages, tally.stored) == (2, 2)


def test_fewer_large_entries_are_read_at_once(
    broker: RunningRedis, sensor: Any, client: Client, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_streams, "BATCH_BYTES", 2_000)
    pushed: list[int] = []
    for k in range(40):
        sensor.xadd(made, {"data": row(k) + " " * (1_000 if 10 <= k < 30 else 0)})
    made_bridge = bridge(client, source(broker, made), made)
    push = client.push

    def counted(model: str, rows: Any, *rest: Any, **more: Any) -> Any:
        pushed.append(len(rows))
        return push(model, rows, *rest, **more)

    monkeypatch.setattr(client, "push", counted)
    assert made_bridge.run(most=40).stored == 40
    assert pushed == [8, 16, 8, 4, 4]  # twice as many while they are small, half while they are large
