"""Messages of a bus on their way to a model: rows are pushed until they are committed, anything else is set aside.

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
"""Size of a file up to which what is refused is appended to it: whoever may send could fill the disk."""
Source = TypeVar("Source")


def without_password(url: str) -> str:
    """Return an address for people, without what may be the password in it.

    Examples
    --------
    >>> without_password("redis://ann:sesame@broker:6379"), without_password("redis://broker?password=sesame")
    ('redis://***@broker:6379', 'redis://broker?***')
    """
    return re.sub(r"([?#]).*", r"\1***", re.sub(r"//.*@", "//***@", url))


@dataclass
class BridgeTally:
    """Counts of the messages so far, and of their rows; ``known`` rows were in the log before.

    ``rejected`` are rows that were refused, and messages that are none.
    """

    messages: int = 0
    stored: int = 0
    known: int = 0
    rejected: int = 0


@dataclass(frozen=True, eq=False)
class Message:
    """A message; ``origin`` says where on the bus it was, ``rows`` have their places in it."""

    origin: Mapping[str, str]
    payload: bytes
    rows: Sequence[tuple[int, MessageRow]]

    def text(self, place: int | None) -> str:
        """Return the message as text, of one with several rows only that at ``place``."""
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
        Takes a line of JSON for each row that is refused, and each message that is not a row, before the message is
        acknowledged; a file takes them up to `MAX_REJECTED_BYTES`.
    batch
        Most rows (MQTT) or entries (Redis) of one push.
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
    # attributes that earlier rows had: in a row without one, its value is missing
    _seen: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self._rejected_room = math.inf
        if self.rejected is not None and self.rejected.seekable():
            self._rejected_room = MAX_REJECTED_BYTES - self.rejected.tell()

    def stop(self) -> None:
        """End the bridge after the push under way."""
        self.stopping.set()

    def read_attributes(self) -> None:
        """Learn the names of the attributes; errors of server, token or name are raised before the first message."""
        model = self.client.get_model(self.model)
        self._names = {each.name for each in model.specification.attributes}
        self._later = later_attributes(model)

    def read(self, origin: Mapping[str, str], payload: bytes, made_id: str) -> Message:
        """Return a message with its rows; what is none is set aside. ``made_id`` is the id of a row without one."""
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
        """Return whether the rows are committed; False if the bridge stops while the server is unreachable.

        Raises
        ------
        QuercusError
            When the server will never take the rows, for example because there is no such model.
        """
        rows = [row for each in messages for _, row in each.rows]
        places = [(each, place) for each in messages for place, _ in each.rows]
        if not rows:
            return True
        seen = self._names & self._seen.union(*(row.values for row in rows))
        absent = sorted(self._names - self._later - seen)
        if absent:  # of all rows so far: a misspelt field, or one that is not sent
            reason = f"have no {', '.join(map(repr, absent))}, only {', '.join(map(repr, sorted(seen)))}"
            for (message, place), row in zip(places, rows, strict=True):
                self.reject(message, place, row.id, f"{reason}; a value that is not known is null")
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
        """Set aside a row of a message, or the whole message if it has no rows."""
        self.tally.rejected += 1
        what = "is not a row" if place is None else f"has a wrong row {place}"
        self.notify(f"message of {' '.join(message.origin.values())} {what}: {reason}")
        if (rejected := self.rejected) is not None:  # another thread may end it meanwhile
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
                    f"the file of what is refused has {MAX_REJECTED_BYTES >> 20} MiB: what is refused from now on is "
                    "only counted; move the file away and start the bridge again"
                )
                return
            rejected.write(text)
            rejected.flush()
