"""MQTT to rows: a message is acknowledged to the broker after the server has committed its rows.

The broker keeps unacknowledged messages (QoS 1, a persistent session), and sends them again when the bridge returns.
Rows have ids, so committed but unacknowledged rows are stored once.
"""

from __future__ import annotations

import hashlib
import queue
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from quercus.client.bridges.arriving import BridgeTally, Message, RowBridge, without_password
from quercus.client.errors import FailedPrecondition, Unavailable, invalid

MAX_QUEUED: Final = 10_000
"""Maximum number of messages that wait here; the broker holds back the others."""

TICK_S: Final = 0.2


@dataclass(frozen=True)
class Broker:
    """The source of messages; ``url`` is ``mqtt://HOST:PORT``, or ``mqtts://`` for TLS.

    ``client_id`` names the session that the broker keeps; two running bridges must not share it.
    """

    url: str
    topics: Sequence[str]
    client_id: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca: str | None = None

    def has_topic(self, topic: str) -> bool:
        """Return whether a topic matches one of the subscriptions.

        Examples
        --------
        >>> Broker("mqtt://broker.example", ["plant/+/wine", "$share/bridges/cellar/#"], "b").has_topic("cellar/7")
        True
        """
        # $share/GROUP/TOPIC: the broker divides the messages of the topic among a group
        filters = (each.split("/", 2)[2] if each.startswith("$share/") else each for each in self.topics)
        return any(paho.topic_matches_sub(each, topic) for each in filters)

    def address(self) -> tuple[str, int, bool]:
        """Return host, port, and whether to use TLS.

        Raises
        ------
        InvalidArgument
            If the URL is not that of an MQTT broker.

        Examples
        --------
        >>> Broker("mqtts://broker.example", ["a/#"], "b").address()
        ('broker.example', 8883, True)
        """
        try:
            parts = urlsplit(self.url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise invalid("broker", f"{without_password(self.url)!r}: {error}") from None
        if (
            parts.scheme not in {"mqtt", "mqtts"}
            or not host
            or parts.path.strip("/")
            or {"@", "?", "#"} & set(self.url)
        ):
            raise invalid(
                "broker",
                f"{without_password(self.url)!r} is not mqtt://HOST:PORT or mqtts://HOST:PORT; "
                "name and password are read from QUERCUS_MQTT_USERNAME and QUERCUS_MQTT_PASSWORD",
            )
        is_tls = parts.scheme == "mqtts"
        return host, port or (8883 if is_tls else 1883), is_tls


@dataclass(frozen=True)
class _Arrived:
    message: Message
    mid: int
    qos: int
    session: int


@dataclass(eq=False)
class MqttBridge(RowBridge[Broker]):
    """Pushes the messages of a broker to a model."""

    _arrived: queue.Queue[_Arrived] = field(init=False, default_factory=lambda: queue.Queue(MAX_QUEUED))
    # Messages of an earlier connection are sent again, so they are not acknowledged on this one.
    _session: int = field(init=False, default=0)
    _refused: str | None = field(init=False, default=None)
    _failure: Exception | None = field(init=False, default=None)

    def run(self, most: int | None = None) -> BridgeTally:
        """Push until `stop` is called, or ``most`` messages are acknowledged.

        Raises
        ------
        Unavailable
            If no broker answers at the start, or it refuses the connection or a subscription.
        FailedPrecondition
            If the session at the broker still has subscriptions to topics that are not this bridge's. Their messages
            are not acknowledged, so the broker keeps them.
        QuercusError
            If the server will never accept the rows, for example because there is no such model.
        """
        self.read_attributes()
        host, port, is_tls = self.source.address()
        connection = self._make_connection(is_tls)
        try:
            connection.connect(host, port)
        except (OSError, ssl.SSLError) as error:
            raise Unavailable(f"no broker answers at {self.source.url}: {error}") from None
        connection.loop_start()
        try:
            while not self.stopping.is_set() and (most is None or self.tally.messages < most):
                if self._failure is not None:
                    raise self._failure
                if self._refused is not None:
                    raise Unavailable(f"the broker at {self.source.url} refuses: {self._refused}")
                batch = self._next_batch(most)
                if batch and self.push([each.message for each in batch]):
                    for each in batch:
                        if each.session == self._session:
                            connection.ack(each.mid, each.qos)
                        self.tally.messages += 1
        finally:
            connection.disconnect()
            connection.loop_stop()
        return self.tally

    def _make_connection(self, is_tls: bool) -> paho.Client:
        made = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id=self.source.client_id,
            clean_session=False,
            protocol=MQTTProtocolVersion.MQTTv311,
            manual_ack=True,
        )
        if self.source.username is not None:
            made.username_pw_set(self.source.username, self.source.password)
        if is_tls:
            made.tls_set(ca_certs=self.source.ca)
        made.on_connect = self._guarded_callback(self._on_connect)
        made.on_subscribe = self._guarded_callback(self._on_subscribe)
        made.on_disconnect = self._guarded_callback(self._on_disconnect)
        made.on_message = self._guarded_callback(self._on_message)
        made.reconnect_delay_set(1, 30)
        return made

    def _guarded_callback(self, callback: Callable[..., None]) -> Callable[..., None]:
        """Return a callback whose error ends `run`; otherwise it would silently end the connection's thread."""

        def call(*arguments: Any) -> None:
            try:
                callback(*arguments)
            except Exception as error:
                self._failure = error

        return call

    def _on_connect(self, client: paho.Client, _: Any, __: Any, reason: Any, ___: Any) -> None:
        if reason.is_failure:
            self._refused = str(reason)
            return
        try:
            client.subscribe([(topic, 1) for topic in self.source.topics])
        except ValueError as error:
            raise invalid("topic", f"{', '.join(self.source.topics)}: {error}") from None
        self.notify(f"connected to {self.source.url}, {', '.join(self.source.topics)}")

    def _on_subscribe(self, _: Any, __: Any, ___: Any, reasons: Sequence[Any], ____: Any) -> None:
        refused = [
            f"{topic} ({reason})"
            for topic, reason in zip(self.source.topics, reasons, strict=False)
            if reason.is_failure
        ]
        if refused:
            self._refused = f"no subscription to {', '.join(refused)}"

    def _on_disconnect(self, *_: Any) -> None:
        self._session += 1
        if not self.stopping.is_set():
            self.notify("the connection to the broker is lost; reconnecting")

    def _on_message(self, _: Any, __: Any, message: paho.MQTTMessage) -> None:
        """Accept a message, in the connection's thread; if many wait, block, so that the broker waits too.

        A session with its subscriptions and waiting messages outlives the bridge that opened it. Messages of another
        topic may be rows of another model, so they end the bridge.
        """
        if self._failure is not None:
            return
        if not self.source.has_topic(message.topic):
            raise FailedPrecondition(
                f"the session {self.source.client_id} at {self.source.url} still subscribes to other topics: a "
                f"message of {message.topic} arrived, and stays at the broker; give this bridge a session of its own "
                "with --client-id"
            )
        payload = bytes(message.payload)
        # equal messages of a topic are one row: MQTT gives messages no lasting id
        made_id = hashlib.sha256(message.topic.encode() + b"\0" + payload).hexdigest()[:32]
        read = self.read({"topic": message.topic}, payload, made_id)
        arrived = _Arrived(read, message.mid, message.qos, self._session)
        while not self.stopping.is_set():
            with suppress(queue.Full):
                self._arrived.put(arrived, timeout=TICK_S)
                return

    def _next_batch(self, most: int | None) -> list[_Arrived]:
        """Return the messages that have arrived, up to a batch; empty if none arrives within a moment."""
        batch: list[_Arrived] = []
        room = None if most is None else most - self.tally.messages
        try:
            batch.append(self._arrived.get(timeout=TICK_S))
            while sum(len(each.message.rows) for each in batch) < self.batch and (
                room is None or len(batch) < room
            ):
                batch.append(self._arrived.get_nowait())
        except queue.Empty:
            pass
        return batch
