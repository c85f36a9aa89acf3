"""Messages of a bus on their way to a model: rows are pushed until they are committed; anything else is rejected.

A bridge acknowledges a message to its bus once `RowBridge.push` has returned True.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO, Any, Final, Generic, TypeVar

from quercus.client.bridges.messages import BadMessageError, MessageFormat, MessageRow
from quercus.client.client import Client
from quercus.client.errors import QuercusError, RejectedRow
from quercus.client.retrying import is_transient
from quercus.client.rows import later_attributes
from quercus.client.unseen import first_reports

RETRY_S: Final = 1.0
MAX_REJECTED_BYTES: Final = 256 * 2**20
"""Maximum size of the file of rejected messages: otherwise anybody who may send could fill the disk."""
Source = TypeVar("Source")


def without_password(url: str) -> str:
    """Return an address for people, without a possible password in it.

    Examples
    --------
    >>> without_password("redis://ann:sesame@broker:6379"), without_password("redis://broker?password=sesame")
    ('redis://***@broker:6379', 'redis://broker?***')
    """
    return re.sub(r"([?#]).*", r"\1***", re.sub(r"//.*@", "//***@", url))


@dataclass
class BridgeTally:
    """Counts of the messages so far, and of their rows; ``known`` rows were already in the log.

    ``rejected`` counts refused rows and invalid messages.
    """

    messages: int = 0
    stored: int = 0
    known: int = 0
    rejected: int = 0


@dataclass(frozen=True, eq=False)
class Message:
    """A message; ``origin`` is its place on the bus, and ``rows`` has its rows by their position in it."""

    origin: Mapping[str, str]
    payload: bytes
    rows: Sequence[tuple[int, MessageRow]]

    def text(self, place: int | None) -> str:
        """Return the message as text; if it has several rows, only the row at ``place``."""
        if place is None or not isinstance(self._content, list):
            return self.payload.decode("utf-8", "replace")
        return json.dumps(self._content[place], ensure_ascii=False)

    @cached_property
    def _content(self) -> Any:
        return json.loads(self.payload)


@dataclass(eq=False)
class RowBridge(Generic[Source]):
    """Reads the messages of a bus as rows of a model, and pushes them.

    Attributes
    ----------
    client
        Client of the server.
    model
        Name of the model that receives the rows.
    source
        The bus that sends the messages.
    form
        The format of messages.
    rejected
        Receives a line of JSON for each refused row or invalid message before the message is acknowledged; a file grows
        to at most `MAX_REJECTED_BYTES`.
    batch
        Maximum number of rows (MQTT) or entries (Redis) in one push.
    notify
        Called with messages for people.
    tally
        The counts so far.
    """

    client: Client
    model: str
    source: Source
    form: MessageFormat
    rejected: IO[str] | None = None
    batch: int = 500
    notify: Callable[[str], None] = lambda _: None
    stopping: threading.Event = field(init=False, default_factory=threading.Event)
    tally: BridgeTally = field(init=False, default_factory=BridgeTally)
    _reported: set[tuple[str, bool]] = field(init=False, default_factory=set)
    _names: set[str] = field(init=False, default_factory=set)
    _later: frozenset[str] = field(init=False, default=frozenset())
    # attributes of earlier rows: a row without one of them has a missing value there
    _seen: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self._rejected_room = math.inf
        if self.rejected is not None and self.rejected.seekable():
            self._rejected_room = MAX_REJECTED_BYTES - self.rejected.tell()

    def stop(self) -> None:
        """End the bridge after the push under way."""
        self.stopping.set()

    def read_attributes(self) -> None:
        """Fetch the attributes' names, so that errors of server, token or name are raised before the first message."""
        model = self.client.get_model(self.model)
        self._names = {each.name for each in model.specification.attributes}
        self._later = later_attributes(model)

    def read(self, origin: Mapping[str, str], payload: bytes, made_id: str) -> Message:
        """Return a message with its rows; reject what is not a row. ``made_id`` is the id of a row without one."""
        rows: list[tuple[int, MessageRow]] = []
        message = Message(origin, payload, rows)
        try:
            for place, row in enumerate(self.form.rows(payload, made_id)):
                if isinstance(row, BadMessageError):
                    self.reject(message, place, "", str(row))
                else:
                    rows.append((place, row))
        except BadMessageError as error:
            self.reject(message, None, "", str(error))
        return message

    def push(self, messages: Sequence[Message]) -> bool:
        """Push rows and return whether they are committed; False if the bridge stops while the server is unreachable.

        Raises
        ------
        QuercusError
            If the server will never accept the rows, for example because there is no such model.
        """
        rows = [row for each in messages for _, row in each.rows]
        places = [(each, place) for each in messages for place, _ in each.rows]
        if not rows:
            return True
        seen = self._names & self._seen.union(*(row.values for row in rows))
        absent = sorted(self._names - self._later - seen)
        if absent:  # from all rows so far: a misspelt field, or one that is never sent
            reason = f"have no {', '.join(map(repr, absent))}, only {', '.join(map(repr, sorted(seen)))}"
            for (message, place), row in zip(places, rows, strict=True):
                self.reject(message, place, row.id, f"{reason}; an unknown value is null")
            return True
        filled = [
            dict.fromkeys(seen) | dict(row.values) if row.values.keys() <= self._names else dict(row.values)
            for row in rows
        ]
        while True:
            rejected: list[RejectedRow] = []
            try:
                report = self.client.push(
                    self.model,
                    filled,
                    [row.label for row in rows],
                    [row.id for row in rows],
                    on_rejected=rejected.extend,
                )
            except QuercusError as error:
                if not is_transient(error):
                    raise
                if self.stopping.wait(max(RETRY_S, error.retry_s or 0.0)):
                    return False
                self.notify(f"{error}; the broker keeps the messages meanwhile")
            else:
                for each in rejected:
                    if each.position is not None:
                        self.reject(*places[each.position], each.id, each.reason)
                self.tally.stored += report.stored
                self.tally.known += report.known
                for names in first_reports(report.unseen, self._reported):
                    self.notify(f"{names.text}; further ones of this attribute are not reported")
                self._seen = seen
                return True

    def reject(self, message: Message, place: int | None, name: str, reason: str) -> None:
        """Reject a row of a message, or the whole message if it has no rows."""
        self.tally.rejected += 1
        what = "is not a row" if place is None else f"has a wrong row {place}"
        self.notify(f"message of {' '.join(message.origin.values())} {what}: {reason}")
        if (rejected := self.rejected) is not None:  # another thread may set it to None
            line = {
                **message.origin,
                "payload": message.text(place),
                "row": place,
                "id": name,
                "reason": reason,
                "at": time.time(),
            }
            text = json.dumps(line, ensure_ascii=False) + "\n"
            self._rejected_room -= len(text.encode())
            if self._rejected_room < 0:
                self.rejected = None
                self.notify(
                    f"the file of rejected messages has {MAX_REJECTED_BYTES >> 20} MiB: further ones are "
                    "only counted; move the file away and start the bridge again"
                )
                return
            rejected.write(text)
            rejected.flush()
