"""Messages on a stream of queries, for both clients."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol

from quercus.client import resources
from quercus.client.errors import QuercusError, from_code
from quercus.client.filters import ANY, Filter
from quercus.client.query_calls import CallSpec, answer_report
from quercus.client.requests import to_duration
from quercus.client.results import IDLE, Query
from quercus.client.retrying import CallAttempts
from quercus.client.transport import SeenSequences, is_beyond
from quercus.v1 import query_pb2

Request = query_pb2.StreamQueriesRequest
Response = query_pb2.StreamQueriesResponse
_PARTS = {"AnswerQuery": "answer", "RefuseQuery": "refusal", "ReturnQuery": "returned"}


@dataclass(frozen=True)
class StreamOptions:
    """The options of a stream of queries: model, labeller, length of the leases, number at once, and filter."""

    model: str
    labeller: str
    lease_s: float
    prefetch: int
    only: Filter | None = None

    @property
    def is_one_model(self) -> bool:
        """True if all queries belong to one model."""
        return self.model != ANY


class Awaited(Protocol):
    """A future, of either kind."""

    def done(self) -> bool:
        """Return whether the future has a result."""

    def set_result(self, result: Any, /) -> None:
        """Set the result."""

    def set_exception(self, exception: Any, /) -> None:
        """Set the exception."""


def opening_message(terms: StreamOptions, min_sequence: int) -> Request:
    """Return the message that opens a stream."""
    wanted = terms.only
    return Request(
        model=resources.model_resource(terms.model),
        labeller=terms.labeller,
        lease_duration=to_duration(terms.lease_s, "lease_s"),
        credits=terms.prefetch,
        min_sequence=min_sequence if terms.is_one_model else 0,
        filter=None if wanted is None else wanted.to_message(),
    )


def resume_s(error: QuercusError, trial: CallAttempts, sequences: SeenSequences, model: str) -> float | None:
    """Return the seconds after which to reopen a broken stream; None: give up."""
    if is_beyond(error) and sequences.newest_sequence(model):  # the known number belongs to a deleted model
        sequences.forget_model(model)
        return 0.0
    return trial.pause_s(error)


def heartbeat_message() -> Request:
    """Return the message that extends all leases of a stream."""
    return Request(heartbeat=True)


def message_of(ask: CallSpec[Any]) -> Request:
    """Return the message of a stream that corresponds to a separate call."""
    return Request(**{_PARTS[ask.method]: ask.request})


def read_event(response: Response, waiting: MutableMapping[str, Any]) -> Query | str | None:
    """Read a message of the server.

    Parameters
    ----------
    response : response of the server.
    waiting : futures by the name of the query; the one that the message is about gets its result.

    Returns
    -------
    Query or str or None : a query, the reason why there is none, or None for another event.
    """
    event = response.WhichOneof("event")
    if event == "query":
        return Query.from_message(response.query)
    if event == "idle":
        return str(IDLE[response.idle])
    if event is None:  # of a later version
        return None
    reply: Any = getattr(response, event)
    future: Awaited | None = waiting.pop(reply.name, None)
    if future is None or future.done():
        return None
    if event == "failed":
        future.set_exception(from_code(reply.code, reply.message, reply.field))
    else:
        future.set_result(None if event == "returned" else answer_report(reply))
    return None
