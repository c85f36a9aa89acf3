"""MQTT to rows through a real broker: none lost, none twice, also when the bridge is killed."""

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from integration.client.serving import QUERCUS, Serving
from paho.mqtt.enums import CallbackAPIVersion
from support.broker import RunningBroker

from quercus.client import (
    Client,
    FailedPrecondition,
    InvalidArgument,
    Nominal,
    Numeric,
    Specification,
    Unavailable,
)
from quercus.client.bridges.messages import MessageFormat
from quercus.client.bridges.mqtt import Broker, MqttBridge

WAIT_S = 60.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running = RunningBroker(tmp_path_factory.mktemp("broker"))
    yield running
    running.close()


@pytest.fixture
def sensor(broker: RunningBroker) -> Iterator[paho.Client]:
    made = paho.Client(CallbackAPIVersion.VERSION2, client_id="sensor")
    made.max_inflight_messages_set(1000)
    made.connect("127.0.0.1", broker.port)
    made.loop_start()
    yield made
    made.disconnect()
    made.loop_stop()


@pytest.fixture
def made(client: Client, name: str) -> str:
    client.create_model(name, Specification([Nominal("hue", ["red", "blue"]), Numeric("size")], ["o", "s"]))
    return name


def subscribed(broker: RunningBroker, client: Client, model: str) -> None:
    """Open the session of the bridge, so that the broker keeps what comes before it starts."""
    first = paho.Client(CallbackAPIVersion.VERSION2, client_id=f"quercus-{model}", clean_session=False)
    first.on_connect = lambda connection, *_: connection.subscribe(f"{model}/#", 1)
    first.on_subscribe = lambda connection, *_: connection.disconnect()
    first.connect("127.0.0.1", broker.port)
    first.loop_forever()


def publish(sensor: paho.Client, topic: str, payloads: list[str]) -> None:
    sent = [sensor.publish(topic, payload, qos=1) for payload in payloads]
    for each in sent:
        each.wait_for_publish(WAIT_S)
        assert each.is_published()


def rows(count: int) -> list[str]:
    return [json.dumps({"id": f"m-{k}", "hue": "red" if k % 2 else "blue", "size": k}) for k in range(count)]


def bridge(client: Client, broker: RunningBroker, model: str, **fields: object) -> MqttBridge:
    source = Broker(broker.url, [f"{model}/#"], f"quercus-{model}")
    return MqttBridge(client, model, source, MessageFormat(label_field="class", ignored={"time"}), **fields)  # type: ignore[arg-type]


def test_messages_become_rows_with_their_labels(
    broker: RunningBroker, sensor: paho.Client, client: Client, made: str
) -> None:
    subscribed(broker, client, made)
    publish(sensor, f"{made}/a", rows(300))
    publish(
        sensor,
        f"{made}/b",
        ['[{"id": "x", "size": 1, "class": "s"}, {"id": "y", "class": ["o", "s"], "time": 3}]'],
    )
    tally = bridge(client, broker, made).run(most=301)
    assert (tally.messages, tally.stored, tally.known, tally.rejected) == (301, 302, 0, 0)
    assert client.get_model(made).instance_count == 302
    assert client.get_instance(made, "m-7").values == {"hue": "red", "size": 7.0}
    assert client.get_instance(made, "x").contour == (0.0, 1.0)
    assert client.get_instance(made, "y").values == {"hue": None, "size": None}


def test_equal_messages_without_ids_are_one_row(
    broker: RunningBroker, sensor: paho.Client, client: Client, made: str
) -> None:
    subscribed(broker, client, made)
    same = '{"hue": "red", "size": 1}'
    publish(sensor, f"{made}/a", [same, same, '{"hue": "red", "size": 1, "time": 2}'])
    publish(sensor, f"{made}/b", [same])
    tally = bridge(client, broker, made).run(most=4)
    assert (tally.stored, tally.known) == (3, 1)


def test_names_never_seen_are_told_once_for_each_attribute(
    broker: RunningBroker, sensor: paho.Client, client: Client, made: str
) -> None:
    subscribed(broker, client, made)
    publish(
        sensor, f"{made}/a", [json.dumps({"id": f"n-{k}", "hue": f"RED{k}", "size": k}) for k in range(9)]
    )
    said: list[str] = []
    tally = bridge(client, broker, made, batch=3, notify=said.append).run(most=9)
    assert tally.stored == 9
    (told,) = [text for text in said if "never seen" in text]
    assert "`hue` has " in told
    assert told.endswith("as RED0; further ones of this attribute are not reported")


def test_what_is_no_row_is_kept_aside_and_the_others_are_stored(
    broker: RunningBroker, sensor: paho.Client, client: Client, made: str, tmp_path: Path
) -> None:
    subscribed(broker, client, made)
    bad = ["{", '{"id": "u", "volume": 1}', '{"id": "v", "size": "large"}', '{"id": "w", "class": "none"}']
    some = (
        '[{"id": "a/1", "size": 1}, {"id": "a/2", "size": [1]}, {"id": "a/3", "size": 1e999}, {"id": "a/4"}]'
    )
    publish(sensor, f"{made}/a", [*rows(5), *bad, some, json.dumps({"id": "m-0", "hue": "red", "size": 99})])
    path = tmp_path / "rejected.jsonl"
    with path.open("a") as rejected:
        tally = bridge(client, broker, made, rejected=rejected).run(most=11)
    assert (tally.messages, tally.stored, tally.rejected) == (11, 7, 7)
    assert {each.id for each in client.instances(made)} == {*(f"m-{k}" for k in range(5)), "a/1", "a/4"}
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    assert {each["payload"]: each["row"] for each in kept if each["payload"] in bad} == {
        "{": None
    } | dict.fromkeys(bad[1:], 0)
    found = [
        (each["row"], each["payload"], each["id"], each["reason"])
        for each in kept
        if each["payload"] not in bad and "with other values" not in each["reason"]
    ]
    assert sorted(found) == [
        (
            1,
            '{"id": "a/2", "size": [1]}',
            "",
            "size is list, must be a number, text, null, a list of several names, or an object of low and high",
        ),
        (
            2,
            '{"id": "a/3", "size": Infinity}',
            "a/3",
            "size: is inf, must be a finite number, or None for missing",
        ),
    ]
    assert all(each["reason"] and each["topic"] == f"{made}/a" for each in kept)
    assert [each["id"] for each in kept if "with other values" in each["reason"]] == ["m-0"]


def test_an_attribute_that_no_message_had_is_rejected_and_later_it_may_be_absent(
    broker: RunningBroker, sensor: paho.Client, client: Client, made: str, tmp_path: Path
) -> None:
    """So is the misspelt field of a message that leaves an attribute out, and no other that is not an attribute."""
    subscribed(broker, client, made)
    said = [
        {"id": "a", "hue": "red"},
        {"id": "b", "hue": "red", "size": 1, "zone": 7},
        {"id": "c", "hue": " blue"},
        {"id": "d", "hue": "red", "Size": 1},
    ]
    with (tmp_path / "rejected.jsonl").open("w") as rejected:
        for each in said:
            publish(sensor, f"{made}/a", [json.dumps(each)])
        tally = bridge(client, broker, made, rejected=rejected, batch=1).run(most=4)
    assert (tally.stored, tally.rejected) == (2, 2)
    stored = {each.id: dict(each.values) for each in client.instances(made)}
    assert stored == {"b": {"hue": "red", "size": 1.0}, "c": {"hue": "blue", "size": None}}
    reasons = [json.loads(line)["reason"] for line in (tmp_path / "rejected.jsonl").read_text().splitlines()]
    assert "have no 'size', only 'hue'" in reasons[0]
    assert "no attribute 'Size'" in reasons[1]


def test_none_is_lost_or_stored_twice_when_the_bridge_is_killed(
    broker: RunningBroker, sensor: paho.Client, client: Client, made: str, serving: Serving
) -> None:
    """SIGKILL wherever it is, then another one: what was committed and not acknowledged comes again and counts once."""
    subscribed(broker, client, made)
    count = 2_000
    command = [QUERCUS, "bridge", "mqtt", "--broker", broker.url, "--topic", f"{made}/#", "--model", made]
    first = subprocess.Popen([*command, "--server", serving.address], stderr=subprocess.PIPE, text=True)
    try:
        assert first.stderr is not None
        assert "connected to" in first.stderr.readline()
        publish(sensor, f"{made}/a", rows(count)[: count // 2])
        for _ in range(10_000):
            if client.get_model(made).instance_count:
                break
    finally:
        first.kill()
        first.wait(timeout=WAIT_S)
        assert first.stderr is not None
        first.stderr.close()
    stored = client.get_model(made).instance_count
    assert stored > 0
    publish(sensor, f"{made}/a", rows(count)[count // 2 :])
    again = bridge(client, broker, made)
    tally = again.run(most=count - stored)  # at least so many were not acknowledged
    while client.get_model(made).instance_count < count:
        before = tally.messages
        tally = bridge(client, broker, made).run(most=1)
        assert tally.messages > 0 or before
    assert client.get_model(made).instance_count == count
    assert tally.rejected == 0


def test_what_ends_in_the_thread_of_the_connection_ends_the_bridge(
    broker: RunningBroker, sensor: paho.Client, client: Client, made: str
) -> None:
    subscribed(broker, client, made)
    publish(sensor, f"{made}/a", ["{"])
    with pytest.raises(OSError, match="No space left"), Path("/dev/full").open("w") as full:
        bridge(client, broker, made, rejected=full).run(most=1)
    assert bridge(client, broker, made).run(most=1).rejected == 1  # it was not acknowledged
    source = Broker(broker.url, ["a/#/b"], f"quercus-{made}")
    with pytest.raises(InvalidArgument, match="topic: a/#/b: Invalid subscription filter"):
        MqttBridge(client, made, source, MessageFormat()).run()


def test_a_subscription_that_the_broker_denies(client: Client, made: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def deny() -> None:
            talk, _ = listening.accept()
            with talk:
                talk.recv(1000)
                talk.sendall(b"\x20\x02\x00\x00")  # CONNACK
                identifier = talk.recv(1000)[2:4]
                talk.sendall(b"\x90\x03" + identifier + b"\x80")  # SUBACK, failure
                talk.recv(1000)

        thread = threading.Thread(target=deny)
        thread.start()
        source = Broker(f"mqtt://127.0.0.1:{listening.getsockname()[1]}", ["plant/#"], "b")
        with pytest.raises(Unavailable, match=r"refuses: no subscription to plant/# \(Unspecified error\)"):
            MqttBridge(client, made, source, MessageFormat()).run()
        thread.join(WAIT_S)


def test_a_broker_that_is_not_there(client: Client, made: str) -> None:
    source = Broker("mqtt://127.0.0.1:9", ["a"], "b")
    with pytest.raises(Unavailable, match=r"no broker answers at mqtt://127\.0\.0\.1:9"):
        MqttBridge(client, made, source, MessageFormat()).run()


def test_a_session_with_topics_of_another_model_ends_the_bridge_before_a_row_goes_astray(
    broker: RunningBroker, sensor: paho.Client, client: Client, made: str
) -> None:
    """The session of a client id outlives the bridge: what waits there may be rows of another model."""
    subscribed(broker, client, made)
    publish(sensor, f"{made}/a", rows(3))
    source = Broker(broker.url, ["elsewhere/+"], f"quercus-{made}")
    other = MqttBridge(client, made, source, MessageFormat())
    with pytest.raises(FailedPrecondition, match=f"a message of {made}/a arrived.*--client-id"):
        other.run(most=1)
    assert client.get_model(made).instance_count == 0
    tally = bridge(client, broker, made).run(most=3)  # none of them was acknowledged: nothing is lost
    assert (tally.stored, tally.rejected) == (3, 0)
