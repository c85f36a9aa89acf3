"""Calls that must not lose data wait for the end of transient errors; calls that must not run twice run once."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import grpc
import paho.mqtt.client as paho
import pytest
from integration.client.serving import Serving
from paho.mqtt.enums import CallbackAPIVersion
from support.broker import RunningBroker
from support.hooks import SECRET, RunningReceiver
from support.proxy import Proxy, running_proxy
from support.waiting import until

from quercus.cli.label_queue import TerminalQueue, UnsentAnswer
from quercus.client import Client, Nominal, Specification, Unavailable
from quercus.client.bridges.arriving import BridgeTally
from quercus.client.bridges.messages import MessageFormat
from quercus.client.bridges.mqtt import Broker, MqttBridge
from quercus.client.bridges.webhook import Receiver, WebhookBridge
from quercus.client.bridges.webhook_messages import Signer
from quercus.client.bridges.webhook_position import Position
from quercus.client.sync.held_queries import HeldQueries

WAIT_S = 60.0
CODE = grpc.StatusCode
PASSING = [
    (CODE.UNAVAILABLE, None),
    (CODE.DEADLINE_EXCEEDED, None),  # a server that stalls
    (CODE.CANCELLED, None),
    (CODE.RESOURCE_EXHAUSTED, 0.1),
    (CODE.FAILED_PRECONDITION, 0.1),  # a store that can only be read
]


@pytest.fixture
def proxy(serving: Serving) -> Iterator[Proxy]:
    with running_proxy(serving.address) as running:
        yield running


@pytest.fixture
def behind(proxy: Proxy) -> Iterator[Client]:
    with Client(proxy.address, outage_s=0) as connected:
        yield connected


@pytest.fixture
def asking(client: Client, name: str) -> str:
    client.create_model(name, Specification([Nominal("X", "abc")], ["o", "s"], budget=9))
    client.push(name, [["a"], ["b"], ["c"]], ids=["1", "2", "3"])
    return name


def break_for_a_while(proxy: Proxy, concerns: str, code: grpc.StatusCode, retry_s: float | None) -> None:
    proxy.concerns, proxy.retry_s, proxy.broken, proxy.refused = concerns, retry_s, code, 0


def mend(proxy: Proxy, after: int = 2) -> None:
    """Wait until the proxy has refused, then let calls pass."""
    until(lambda: proxy.refused >= after)
    proxy.broken = None


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running = RunningBroker(tmp_path_factory.mktemp("broker"))
    yield running
    running.close()


def test_an_mqtt_bridge_outlives_what_passes(
    broker: RunningBroker, proxy: Proxy, behind: Client, client: Client, name: str
) -> None:
    client.create_model(name, Specification([Nominal("X", "ab")], ["o", "s"]))
    told: list[str] = []
    bridge = MqttBridge(
        behind, name, Broker(broker.url, [f"{name}/#"], name), MessageFormat(), notify=told.append
    )
    tallies: list[BridgeTally] = []
    thread = threading.Thread(target=lambda: tallies.append(bridge.run(len(PASSING))))
    thread.start()
    sensor = paho.Client(CallbackAPIVersion.VERSION2, client_id=f"sensor-{name}")
    sensor.connect("127.0.0.1", broker.port)
    sensor.loop_start()
    try:
        until(lambda: any("connected" in line for line in told))
        for number, (code, retry_s) in enumerate(PASSING, 1):
            break_for_a_while(proxy, "/Push", code, retry_s)
            payload = json.dumps({"id": str(number), "X": "a"})
            sensor.publish(f"{name}/a", payload, qos=1).wait_for_publish(WAIT_S)
            until(lambda: proxy.refused >= 2 or not thread.is_alive())
            assert thread.is_alive(), code
            mend(proxy)
            until(lambda number=number: client.get_model(name).instance_count == number)  # type: ignore[misc]
    finally:
        bridge.stop()
        thread.join(WAIT_S)
        sensor.disconnect()
        sensor.loop_stop()
    assert [(tally.stored, tally.rejected) for tally in tallies] == [(len(PASSING), 0)]


def test_a_webhook_bridge_outlives_what_passes(
    proxy: Proxy, behind: Client, client: Client, asking: str, tmp_path: Path
) -> None:
    receiver = RunningReceiver(lambda *_: None)
    with closing(receiver), closing(Position(tmp_path / "state", asking)) as position:
        made = WebhookBridge(behind, asking, Receiver(receiver.url), Signer(SECRET), position)
        thread = threading.Thread(target=made.run)
        thread.start()
        try:
            for number, (code, retry_s) in enumerate(PASSING, 4):
                break_for_a_while(proxy, "/WatchEvents", code, retry_s)
                client.push(asking, [["a"]], ids=[str(number)])
                until(lambda: proxy.refused >= 2 or not thread.is_alive())
                assert thread.is_alive(), code
                mend(proxy)
                until(lambda number=number: len(receiver.posted) == number)  # type: ignore[misc]
        finally:
            made.stop()
            thread.join(WAIT_S)
    assert [each.event["data"]["sequence"] for each in receiver.posted] == list(range(1, 4 + len(PASSING)))


def test_a_person_at_a_terminal_loses_nothing_to_what_passes(
    proxy: Proxy, behind: Client, client: Client, asking: str
) -> None:
    client.wait_grown(asking)
    queue = TerminalQueue(behind, HeldQueries(behind, asking, "ann", lease_s=WAIT_S), None, delay_s=0.0)
    with closing(queue):
        queue.open()
        for code, retry_s in PASSING[1:4]:
            shown = queue.next_query(WAIT_S)
            assert shown is not None
            break_for_a_while(proxy, "/AnswerQuery", code, retry_s)
            queue.submit_answer(UnsentAnswer("o", partial(behind.answer, shown, "o"), shown, asking))
            until(lambda: proxy.refused >= 2 or "answers" in queue._failed)
            assert not queue._failed, code
            mend(proxy)
            assert queue.is_sent(WAIT_S)
    assert client.get_model(asking).queries_answered == 3


@pytest.mark.parametrize(("code", "retry_s"), [*PASSING, (CODE.INTERNAL, None)])
def test_a_lease_that_could_not_be_extended_just_now_is_not_given_up(
    code: grpc.StatusCode, retry_s: float | None, proxy: Proxy, behind: Client, client: Client, asking: str
) -> None:
    client.wait_grown(asking)
    queries = HeldQueries(behind, asking, "ann", lease_s=WAIT_S)
    query = queries.take(WAIT_S)
    assert query is not None
    break_for_a_while(proxy, "/ExtendLease", code, retry_s)
    assert queries.extend() == []
    assert queries.held == (query,)
    assert behind._keep_lease(query, WAIT_S)
    proxy.broken = None
    client.end_lease(query.name)
    assert queries.extend() == [query.name]
    assert not behind._keep_lease(query, WAIT_S)


@pytest.mark.parametrize(("code", "retry_s"), [PASSING[0], *PASSING[3:]])
def test_a_stream_outlasts_what_the_server_says_will_pass(
    code: grpc.StatusCode, retry_s: float | None, proxy: Proxy, client: Client, asking: str
) -> None:
    """Within `outage_s`, as a call does: a watch of events, a stream of queries and a push."""
    client.wait_grown(asking)
    with Client(proxy.address, outage_s=WAIT_S) as patient:
        patient.get_model(asking)
        break_for_a_while(proxy, "Service/", code, retry_s)
        mending = threading.Timer(0.5, mend, [proxy])
        mending.start()
        assert next(iter(patient.watch_events(asking, timeout_s=WAIT_S))).sequence == 1
        mending.join()
        break_for_a_while(proxy, "/StreamQueries", code, retry_s)
        mending = threading.Timer(0.5, mend, [proxy])
        mending.start()
        with patient.stream_queries(asking, "ann", idle_s=WAIT_S) as stream:
            assert next(stream).model == asking
        mending.join()
        break_for_a_while(proxy, "/Push", code, retry_s)
        mending = threading.Timer(0.5, mend, [proxy])
        mending.start()
        assert patient.push(asking, [["a"]] * 4, batch_rows=2).stored == 4
        mending.join()


def test_a_lease_is_ended_once_though_the_answer_is_lost(proxy: Proxy, client: Client, asking: str) -> None:
    """Said again it would end the lease of whoever has the query by then."""
    client.wait_grown(asking)
    (query,) = client.lease(asking, "ann", wait_s=WAIT_S).queries
    with Client(proxy.address, outage_s=WAIT_S) as operator:
        operator.get_model(asking)
        proxy.concerns, proxy.loses, proxy.asked = "/ReleaseLease", 1, 0
        with pytest.raises(Unavailable, match="the answer is lost"):
            operator.end_lease(query.name)
        assert (proxy.asked, proxy.loses) == (1, 0)
    assert [each.number for each in client.list_queries(asking, ["leased"])] == []


def test_idempotent_calls_are_repeated_when_the_response_is_lost(
    proxy: Proxy, client: Client, asking: str
) -> None:
    client.wait_grown(asking)
    with Client(proxy.address, outage_s=WAIT_S) as patient:
        (query,) = patient.lease(asking, "ann", wait_s=WAIT_S).queries

        def say_once(method: str, call: Callable[[], object]) -> None:
            proxy.concerns, proxy.loses, proxy.asked = method, 1, 0
            call()
            assert (proxy.asked, proxy.loses) == (2, 0), method

        say_once("/ReturnQuery", partial(patient.release, query))
        (query,) = patient.lease(asking, "ann", wait_s=WAIT_S).queries
        say_once("/AnswerQuery", partial(patient.answer, query, "o"))
        say_once("/CorrectAnswer", partial(patient.correct, query, "s"))
        say_once("/UndoAnswer", partial(patient.undo, query))
        say_once("/UpdateModel", partial(patient.update_model, asking, budget=8))
