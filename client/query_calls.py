"""Requests about queries, sent alone or on a stream, and the rule for how long to wait for a query."""

from __future__ import annotations

import time
from collections.abc import MutableMapping
from typing import Any, Final, Protocol

from quercus.client.errors import DeadlineExceeded, FailedPrecondition, QuercusError, from_code
from quercus.client.labels import LabelEncoder, LabelLike
from quercus.client.messages import filled, to_duration
from quercus.client.results import IDLE, AnswerReport, Model, Query
from quercus.v1 import query_pb2

How = query_pb2.ReturnQueryRequest.How
Settlement = query_pb2.AnswerQueryRequest | query_pb2.RefuseQueryRequest | query_pb2.ReturnQueryRequest
"""A request that ends a lease."""
LONGEST_POLL_S: Final = 10.0
"""Seconds of one long poll; longer waits are several polls, so that a lost server is noticed."""
LONGEST_GROWTH_S: Final = 600.0
"""Seconds after which the client stops waiting for a tree that contains its writes."""

_PARTS: Final = {
    query_pb2.AnswerQueryRequest.DESCRIPTOR: "answer",
    query_pb2.RefuseQueryRequest.DESCRIPTOR: "refusal",
    query_pb2.ReturnQueryRequest.DESCRIPTOR: "returned",
}


def answer(
    query: Query, label: LabelLike, reliability: float | None, comment: str, took_s: float | None, shown: str
) -> query_pb2.AnswerQueryRequest:
    """Return the request that answers a query."""
    return filled(
        query_pb2.AnswerQueryRequest,
        name=query.name,
        lease_token=query.lease_token,
        label=LabelEncoder(query.classes).encode_label(label),
        reliability=reliability,
        comment=comment,
        took=None if took_s is None else to_duration(took_s, "took_s"),
        shown=shown,
    )


def refuse(query: Query, comment: str, shown: str) -> query_pb2.RefuseQueryRequest:
    """Return the request that refuses a query because the class cannot be known."""
    return filled(
        query_pb2.RefuseQueryRequest,
        name=query.name,
        lease_token=query.lease_token,
        comment=comment,
        shown=shown,
    )


def give_back(
    query: Query, how: How.ValueType = How.HOW_UNSPECIFIED, delay_s: float | None = None, comment: str = ""
) -> query_pb2.ReturnQueryRequest:
    """Return the request that gives a query back."""
    return filled(
        query_pb2.ReturnQueryRequest,
        name=query.name,
        lease_token=query.lease_token,
        how=how,
        delay=None if delay_s is None else to_duration(delay_s, "delay_s"),
        comment=comment,
    )


def read_reply(
    message: query_pb2.AnswerQueryResponse
    | query_pb2.RefuseQueryResponse
    | query_pb2.ReturnQueryResponse
    | query_pb2.CorrectAnswerResponse
    | query_pb2.UndoAnswerResponse,
) -> AnswerReport | None:
    """Return the report of a committed answer, refusal, correction or undo; ``None`` for a query given back."""
    match message:
        case query_pb2.ReturnQueryResponse():
            return None
        case query_pb2.AnswerQueryResponse():
            return AnswerReport.from_message(message)
    conflict = isinstance(message, query_pb2.CorrectAnswerResponse) and message.conflict
    return AnswerReport(message.name, message.committed_sequence, conflict, model_uid=message.model_uid)


def stream_message(request: Settlement) -> query_pb2.StreamQueriesRequest:
    """Return the stream message for a request."""
    return filled(query_pb2.StreamQueriesRequest, **{_PARTS[request.DESCRIPTOR]: request})  # type: ignore[arg-type]


class Awaited(Protocol):
    """A future, of asyncio or of threads."""

    def done(self) -> bool:
        """Return whether the future has a result."""

    def set_result(self, result: Any, /) -> None:
        """Set the result."""

    def set_exception(self, exception: Any, /) -> None:
        """Set the exception."""


def read_event(
    response: query_pb2.StreamQueriesResponse, waiting: MutableMapping[str, Any]
) -> Query | str | None:
    """Read a message of the server on a stream.

    Parameters
    ----------
    response : response of the server.
    waiting : futures by name of the query; that of the query in the message gets its result.

    Returns
    -------
    Query or str or None : a query, the reason why there is none, or None for another event.
    """
    event = response.WhichOneof("event")
    if event == "query":
        return Query.from_message(response.query)
    if event == "idle":
        return str(IDLE[response.idle])
    if event is None:  # of a newer version
        return None
    reply: Any = getattr(response, event)
    future: Awaited | None = waiting.pop(reply.name, None)
    if future is None or future.done():
        return None
    if event == "failed":
        future.set_exception(from_code(reply.code, reply.message, reply.field))
    else:
        future.set_result(read_reply(reply))
    return None


def is_beyond(error: QuercusError) -> bool:
    """Return whether the log ends before ``min_sequence``, by this error: the number belongs to a deleted model."""
    return isinstance(error, FailedPrecondition) and any(v.field == "min_sequence" for v in error.violations)


def is_spent(model: Model) -> bool:
    """Return whether no query can be leased any more. Before that, leased queries may still be given back."""
    return model.queries_answered >= model.budget


class WaitPolicy:
    """The rule that ends a loop of queries when none come.

    Parameters
    ----------
    idle_s
        Seconds without a query after which to end; ``None``: no limit. Time in which the tree is still learning from
        this client's writes does not count.
    """

    def __init__(self, idle_s: float | None) -> None:
        self._idle_s = idle_s
        self._has_called = self._growing = False
        self.restart_wait()

    def restart_wait(self) -> None:
        """Restart the wait after a query came."""
        self._since = self._growing_since = time.monotonic()

    @property
    def wait_s(self) -> float:
        """Seconds for which the next call may wait; 0 for the first, since the budget may already be spent."""
        if not self._has_called:
            return 0.0
        if self._idle_s is None:
            return LONGEST_POLL_S
        left = self._since + self._idle_s - time.monotonic()
        return min(LONGEST_POLL_S, max(1.0 if self._growing else 0.0, left))

    def is_over(self, idle: str | None, model: Model | None) -> bool:
        """Return whether no more queries will come.

        Parameters
        ----------
        idle : the reason why there was no query, as in ``Lease.idle``.
        model : needed only if the budget is spent.
        """
        self._has_called = True
        self._growing = idle == "growing"
        if self._growing:
            self._since = time.monotonic()
            if self._since - self._growing_since > LONGEST_GROWTH_S:
                raise DeadlineExceeded(
                    f"the tree did not catch up with this client within {LONGEST_GROWTH_S:g} s"
                )
            return False
        self._growing_since = time.monotonic()
        if idle == "share_spent":  # nothing is held here that could be given back
            return True
        if model is not None and is_spent(model):
            return True
        return self._idle_s is not None and time.monotonic() - self._since >= self._idle_s
