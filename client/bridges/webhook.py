"""Events to a webhook: each is signed and posted until the receiver accepts it; then the position advances.

Events are posted at least once, in the order of the log. The id of an event stays the same, so a receiver whose
response was lost recognises a repetition.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import IO, Final

import urllib3

from quercus.client.bridges.webhook_messages import CONTENT_TYPE, Signer, event_message
from quercus.client.bridges.webhook_position import Position
from quercus.client.client import Client
from quercus.client.errors import DeadlineExceeded, FailedPrecondition, QuercusError, invalid
from quercus.client.results import LogEvent
from quercus.client.retrying import backoff_s, is_transient
from quercus.specification.hosts import is_loopback
from quercus.specification.pauses import growing_pause_s

POST_S: Final = 15.0
"""Maximum seconds that a receiver may take for one message."""
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 300.0
LONGEST_WISH_S: Final = 3600.0
"""Maximum pause, in seconds, that a receiver may request by ``Retry-After``."""
MOST_ANSWER_BYTES: Final = 1 << 16
"""Maximum size of a receiver's response, in bytes. It is ignored; a longer one ends the connection."""
STOP_POLL_S: Final = 1.0
"""Seconds between checks whether a waiting bridge should stop."""
LONGEST_POLL_S: Final = 60.0
"""Maximum seconds between checks while events are on their way, for slow connections."""
GONE: Final = 410


@dataclass(frozen=True)
class Receiver:
    """The receiver of events.

    Attributes
    ----------
    url : ``https://``; ``http://`` for this machine only.
    most_attempts : number of attempts after which an event is given up; None: never.
    ca : PEM file of the authorities that may have signed the receiver's certificate; None: those of the system.
    """

    url: str
    most_attempts: int | None = None
    ca: str | None = None

    def __post_init__(self) -> None:
        try:
            parts = urllib3.util.parse_url(self.url)
        except urllib3.exceptions.LocationParseError:
            raise invalid("url", "cannot be read") from None
        if parts.scheme not in {"http", "https"} or not parts.host:
            raise invalid("url", "is not https://HOST/PATH")
        if parts.auth:
            raise invalid("url", "has a name or a password in it: messages are signed instead")
        if parts.scheme == "http" and not is_loopback(parts.host.strip("[]")):
            raise invalid("url", f"sends to {parts.host} without TLS: write https://")


@dataclass
class WebhookTally:
    """Counts of the events so far."""

    delivered: int = 0
    attempts: int = 0
    given_up: int = 0
    sequence: int = 0


class WebhookBridge:
    """Posts the events of a model.

    Parameters
    ----------
    client
        Client of the server, with a reader's token.
    model
        Name of the model whose events are sent.
    receiver
        The receiver of the events.
    signer
        Signs with the receiver's secret.
    position
        The stored position in the log.
    kinds
        Kinds of events by name; none: all.
    with_values
        Whether the values of rows are sent.
    given_up
        Takes a line of JSON for each event that was given up.
    notify
        Called with messages for people.
    """

    def __init__(
        self,
        client: Client,
        model: str,
        receiver: Receiver,
        signer: Signer,
        position: Position,
        *,
        kinds: Iterable[str] = (),
        with_values: bool = False,
        given_up: IO[str] | None = None,
        first_pause_s: float = FIRST_PAUSE_S,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._client, self._model = client, model
        self._receiver, self._signer, self._position = receiver, signer, position
        self._kinds, self._with_values = tuple(kinds), with_values
        self._given_up, self._notify, self._first_pause_s = given_up, notify, first_pause_s
        self._stopping = threading.Event()
        timeout = urllib3.Timeout(POST_S)
        self._http = urllib3.PoolManager(
            num_pools=1, timeout=timeout, retries=False, ca_certs=receiver.ca, cert_reqs="CERT_REQUIRED"
        )
        self.tally = WebhookTally(sequence=position.sequence)

    def stop(self) -> None:
        """End `run` soon; the next run posts unfinished events again."""
        self._stopping.set()

    def run(self, most: int | None = None) -> WebhookTally:
        """Post until `stop` is called, or ``most`` events are delivered.

        Raises
        ------
        FailedPrecondition
            If the receiver wants no more events (410), another model has the name, or the log was reset to an earlier
            state, so that it is unknown which events after the position the receiver has.
        QuercusError
            If there is no such model, or no server answers at the start.
        """
        self._client.get_model(self._model)
        handled = attempt = 0
        poll_s, since = STOP_POLL_S, -1
        while not self._stopping.is_set() and (most is None or handled < most):
            try:
                poll_s = self._next_poll_s(poll_s, since)
                self._check_log()
                since = self._position.sequence
                watch = self._client.watch_events(
                    self._model,
                    self._position.sequence,
                    kinds=self._kinds,
                    with_values=self._with_values,
                    model_uid=self._position.model_uid,
                    timeout_s=poll_s,
                    on_position=self._position.record_delivered,
                )
                with closing(watch) as events:
                    for event in events:
                        attempt = 0
                        if not self._deliver_event(event):
                            return self.tally
                        handled += 1
                        if handled == most:
                            break
            except DeadlineExceeded:
                attempt = 0  # a check whether to stop
            except QuercusError as error:
                if not is_transient(error):
                    raise
                attempt += 1
                self._notify(f"{error}; waiting for the server")
                self._stopping.wait(backoff_s(attempt, error))
        return self.tally

    def _check_log(self) -> None:
        """Raise if the event of the position is no longer in the log; record it if it was not known yet."""
        position = self._position
        if not position.sequence:
            return
        watch = self._client.watch_events(
            self._model, position.sequence - 1, model_uid=position.model_uid, timeout_s=LONGEST_POLL_S
        )
        model = self._client.get_model(self._model)
        is_there = model.uid != position.model_uid or model.sequence_committed >= position.sequence
        with closing(watch) as events:
            found = next(events).id if is_there else ""
        if not is_there or position.event not in {"", found}:
            raise FailedPrecondition(
                f"the log of model {self._model} was reset to an earlier state, by a restored backup or a failover: "
                f"event {position.sequence} is not the one that was delivered; to post the whole log again, start with "
                "a new --state file (a receiver recognises by their ids the events that it has)"
            )
        if not position.event:
            position.record_delivered(position.model_uid, position.sequence, found)

    def _next_poll_s(self, poll_s: float, since: int) -> float:
        """Return the seconds of the next watch: longer than the last one if events exist but none arrived."""
        if self._position.sequence > since:
            return STOP_POLL_S
        is_behind = self._client.get_model(self._model).sequence_committed > since
        return min(2 * poll_s, LONGEST_POLL_S) if is_behind else STOP_POLL_S

    def _deliver_event(self, event: LogEvent) -> bool:
        """Post an event until it is accepted or given up; return False if the bridge is stopped before."""
        body = event_message(event)
        attempt = 0
        most = self._receiver.most_attempts
        while not self._stopping.is_set():
            attempt += 1
            self.tally.attempts += 1
            trouble, wish_s = self._post_event(event, body)
            if trouble and (most is None or attempt < most):
                pause_s = max(growing_pause_s(attempt, self._first_pause_s, LONGEST_PAUSE_S), wish_s)
                self._notify(
                    f"event {event.sequence} was not accepted ({trouble}); retrying in {pause_s:.3g} s"
                )
                self._stopping.wait(pause_s)
                continue
            if trouble:
                self.tally.given_up += 1
                self._notify(f"event {event.sequence} is given up: {trouble}")
                if self._given_up is not None:
                    line = {"reason": trouble, "at": time.time(), "event": json.loads(body)}
                    self._given_up.write(json.dumps(line, ensure_ascii=False) + "\n")
                    self._given_up.flush()
            else:
                self.tally.delivered += 1
            self._position.record_delivered(event.model_uid, event.sequence, event.id)
            self.tally.sequence = event.sequence
            return True
        return False

    def _post_event(self, event: LogEvent, body: bytes) -> tuple[str, float]:
        """Return why the receiver did not accept an event (empty: it did), and the pause (s) that it requests."""
        headers = {"content-type": CONTENT_TYPE, "user-agent": "quercus-webhook"}
        headers |= self._signer.headers(event.id, int(time.time()), body)
        try:
            answer = self._http.request(
                "POST", self._receiver.url, body=body, headers=headers, redirect=False, preload_content=False
            )
            read = len(answer.read(MOST_ANSWER_BYTES))
        except urllib3.exceptions.HTTPError as error:
            return str(getattr(error, "reason", None) or error), 0.0
        if read < MOST_ANSWER_BYTES:
            answer.release_conn()  # it was read to its end, so the connection can be reused
        else:
            answer.close()
        if answer.status == GONE:
            raise FailedPrecondition("the receiver wants no more events (410 Gone)")
        if 200 <= answer.status < 300:
            return "", 0.0
        retry_after = answer.headers.get("retry-after", "")
        wish_s = min(float(retry_after), LONGEST_WISH_S) if retry_after.isdecimal() else 0.0
        hint = ", redirects are not followed" if 300 <= answer.status < 400 else ""
        return f"HTTP {answer.status}{hint}", wish_s
