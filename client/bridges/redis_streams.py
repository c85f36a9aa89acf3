"""Redis streams to rows: an entry is acknowledged to its consumer group after the server has committed its rows.

The group remembers which entries it delivered, and to which consumer, until they are acknowledged. After a lost
connection, and at every start, the bridge first reads the entries that it was sent before. It takes over entries that
another consumer has not acknowledged within a minute. Rows have ids, so committed but unacknowledged rows are stored
once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from quercus.client.bridges.arriving import RETRY_S, BridgeTally, Message, RowBridge, without_password
from quercus.client.errors import FailedPrecondition, Unavailable, invalid

TICK_MS: Final = 200
TIMEOUT_S: Final = 10.0
"""Seconds within which the broker must answer; otherwise the bridge reconnects."""
LEFT_ALONE_S: Final = 60.0
"""Seconds after which unacknowledged entries of another consumer are taken over."""
CLAIM_EVERY_S: Final = 10.0
FIRST_ENTRIES: Final = 8
"""Number of entries in the first read; it doubles whenever a read was full and small."""
BATCH_BYTES: Final = 16 * 2**20
"""Size of a read, in bytes, above which the next one is smaller, since Redis bounds a reply only by its number of
entries."""
UNREAD: Final = ">"
"""The position of entries that were not delivered to any consumer of the group yet."""
FIRST: Final = "0"
"""The position before all entries: those delivered to this consumer, or, for a new group, those of the stream."""


@dataclass(frozen=True)
class StreamGroup:
    """The source of messages: streams of a Redis server, read by one consumer of a group.

    Attributes
    ----------
    url
        ``redis://HOST:PORT``, or ``rediss://`` for TLS; a number after it (``/2``) is a database.
    streams
        Keys of the streams; missing ones are created, empty.
    group
        The group, which stores the position. A new one begins with the first entry of each stream.
    consumer
        The name of this bridge in the group: a new bridge of the same name continues at once with unacknowledged
        entries.
    payload_field
        The field of an entry that holds the message.
    """

    url: str
    streams: Sequence[str]
    group: str
    consumer: str
    payload_field: str = "data"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca: str | None = None

    def connection_options(self) -> dict[str, Any]:
        """Return the keyword arguments of `redis.Redis`.

        Raises
        ------
        InvalidArgument
            If the URL is not that of a Redis server.

        Examples
        --------
        >>> options = StreamGroup("rediss://redis.example/2", ["wine"], "quercus-wine", "a").connection_options()
        >>> options["host"], options["port"], options["db"], options["ssl"]
        ('redis.example', 6379, 2, True)
        """
        try:
            parts = urlsplit(self.url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise invalid("broker", f"{without_password(self.url)!r}: {error}") from None
        database = parts.path.strip("/") or "0"
        if (
            parts.scheme not in {"redis", "rediss"}
            or not host
            or port == 0
            or {"@", "?", "#"} & set(self.url)
            or not (database.isascii() and database.isdigit())
        ):
            raise invalid(
                "broker",
                f"{without_password(self.url)!r} is not redis://HOST:PORT/DATABASE or rediss://HOST:PORT/DATABASE; "
                "name and password are read from QUERCUS_REDIS_USERNAME and QUERCUS_REDIS_PASSWORD",
            )
        is_tls = parts.scheme == "rediss"
        return {
            "host": host,
            "port": 6379 if port is None else port,
            "db": int(database),
            "username": self.username,
            "password": self.password,
            "ssl": is_tls,
            **({"ssl_ca_certs": self.ca} if is_tls else {}),
        }


@dataclass(frozen=True)
class _Entry:
    stream: str
    id: str
    message: Message


@dataclass(eq=False)
class RedisBridge(RowBridge[StreamGroup]):
    """Pushes the entries of streams to a model; a row without an id gets the names of its stream and entry."""

    _positions: dict[str, str] = field(init=False, default_factory=dict)
    _next_claim_s: float = field(init=False, default=0.0)
    _room: int = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._room = min(FIRST_ENTRIES, self.batch)

    def run(self, most: int | None = None) -> BridgeTally:
        """Push until `stop` is called, or ``most`` messages are acknowledged.

        Raises
        ------
        Unavailable
            If no broker answers at the start, or it refuses user or password.
        FailedPrecondition
            If the broker refuses the group, for example because a key is not a stream.
        QuercusError
            If the server will never accept the rows, for example because there is no such model.
        """
        self.read_attributes()
        # A command whose reply was lost is not repeated: its entries are read again at the next start.
        connection: Any = redis.Redis(
            **self.source.connection_options(),
            protocol=2,
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
        )
        with connection:
            self._start(connection)
            is_away = False
            while not self.stopping.is_set() and (most is None or self.tally.messages < most):
                try:
                    if is_away:
                        self._open_groups(connection)
                        self.notify(f"connected to {self.source.url} again")
                        is_away = False
                    entries = self._next_entries(connection, most)
                    if entries and self.push([each.message for each in entries]):
                        self._acknowledge(connection, entries)
                    self._take_over(connection)
                except redis.RedisError as error:
                    if not is_away:
                        self.notify(f"the broker at {self.source.url} fails: {error}; retrying")
                    is_away = True
                    self.stopping.wait(RETRY_S)
        return self.tally

    def _start(self, connection: Any) -> None:
        url = self.source.url
        try:
            self._open_groups(connection)
        except redis.AuthenticationError as error:
            raise Unavailable(f"the broker at {url} refuses: {error}") from None
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise Unavailable(f"no broker answers at {url}: {error}") from None
        except redis.ResponseError as error:
            raise FailedPrecondition(
                f"the broker at {url} refuses the group {self.source.group}: {error}"
            ) from None
        streams = ", ".join(self.source.streams)
        self.notify(f"connected to {url}, {streams}, as {self.source.consumer} of {self.source.group}")

    def _open_groups(self, connection: Any) -> None:
        """Create the group if it is missing (a broker may lose it), and go back to the entries this bridge was sent."""
        for stream in self.source.streams:
            try:
                connection.xgroup_create(stream, self.source.group, id=FIRST, mkstream=True)
            except redis.ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):  # it exists
                    raise
        self._positions = dict.fromkeys(self.source.streams, FIRST)

    def _take_over(self, connection: Any) -> None:
        """Take over abandoned entries of other consumers; they are read with those that this one was sent before."""
        if time.monotonic() < self._next_claim_s:
            return
        for stream in self.source.streams:
            _, found, *deleted = connection.xautoclaim(
                stream,
                self.source.group,
                self.source.consumer,
                int(1000 * LEFT_ALONE_S),
                count=self.batch,
            )
            if found:
                self._positions[stream] = FIRST
            for gone in deleted[0] if deleted else ():  # Redis 7 removes them from the group
                self._read_entry(stream, gone.decode(), {})
                self.tally.messages += 1
        self._next_claim_s = time.monotonic() + CLAIM_EVERY_S

    def _next_entries(self, connection: Any, most: int | None) -> list[_Entry]:
        """Return the entries that have arrived, up to a batch; empty if none arrives within a moment."""
        room = self._room if most is None else min(self._room, most - self.tally.messages)
        answer = connection.xreadgroup(
            self.source.group, self.source.consumer, self._positions, count=room, block=TICK_MS
        )
        entries: list[_Entry] = []
        for key, found in answer:
            stream = key.decode()
            if self._positions[stream] != UNREAD:
                self._positions[stream] = found[-1][0].decode() if found else UNREAD
            for raw_id, fields in found:
                entries.append(self._read_entry(stream, raw_id.decode(), fields))
        size = sum(len(each.message.payload) for each in entries)
        if size > BATCH_BYTES:
            self._room = max(1, self._room // 2)
        elif len(entries) >= self._room:
            self._room = min(self.batch, 2 * self._room)
        return entries if most is None else entries[: most - self.tally.messages]  # COUNT is per stream

    def _read_entry(self, stream: str, entry_id: str, fields: Mapping[bytes, bytes]) -> _Entry:
        origin = {"stream": stream, "entry": entry_id}
        payload = fields.get(self.source.payload_field.encode())
        if payload is not None:
            return _Entry(stream, entry_id, self.read(origin, payload, f"{stream}/{entry_id}"))
        named = {
            name.decode("utf-8", "replace"): text.decode("utf-8", "replace") for name, text in fields.items()
        }
        message = Message(origin, json.dumps(named, ensure_ascii=False).encode(), ())
        found = (
            f"only {', '.join(map(repr, sorted(named)))}"
            if named
            else "for it was deleted before it was read"
        )
        self.reject(message, None, "", f"has no field {self.source.payload_field!r}, {found}")
        return _Entry(stream, entry_id, message)

    def _acknowledge(self, connection: Any, entries: Sequence[_Entry]) -> None:
        for stream in self._positions:
            if ids := [each.id for each in entries if each.stream == stream]:
                connection.xack(stream, self.source.group, *ids)
                self.tally.messages += len(ids)
