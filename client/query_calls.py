"""The calls of both clients about queries and labellers: requests, and how to read the responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from quercus.client import resources
from quercus.client.filters import Filter
from quercus.client.labels import LabelEncoder, LabelLike
from quercus.client.messages import filled, message_of
from quercus.client.requests import state_numbers, to_duration
from quercus.client.results import AnswerReport, Labeller, LabellingPolicy, Lease, Neighbour, Query
from quercus.v1 import query_pb2

T = TypeVar("T")
How = query_pb2.ReturnQueryRequest.How


@dataclass(frozen=True)
class CallSpec(Generic[T]):
    """A call of QueryService: the method, the request, and the conversion of the response."""

    method: str
    request: Any
    read: Callable[[Any], T]


def lease(
    model: str, labeller: str, lease_s: float, wait_s: float, min_sequence: int, wanted: Filter | None
) -> CallSpec[Lease]:
    """Lease one query."""
    request = filled(
        query_pb2.LeaseQueriesRequest,
        model=resources.model_resource(model),
        labeller=labeller,
        max_queries=1,
        lease_duration=to_duration(lease_s, "lease_s"),
        wait=to_duration(wait_s, "wait_s"),
        min_sequence=min_sequence,
        filter=None if wanted is None else wanted.to_message(),
    )
    return CallSpec("LeaseQueries", request, Lease.from_message)


def answer(
    query: Query, label: LabelLike, reliability: float | None, comment: str, took_s: float | None, shown: str
) -> CallSpec[AnswerReport]:
    """Answer a query."""
    request = filled(
        query_pb2.AnswerQueryRequest,
        name=query.name,
        lease_token=query.lease_token,
        label=LabelEncoder(query.classes).encode_label(label),
        reliability=reliability,
        comment=comment,
        took=None if took_s is None else to_duration(took_s, "took_s"),
        shown=shown,
    )
    return CallSpec("AnswerQuery", request, answer_report)


def refuse(query: Query, comment: str, shown: str = "") -> CallSpec[AnswerReport]:
    """Refuse a query because the class cannot be known."""
    request = filled(
        query_pb2.RefuseQueryRequest,
        name=query.name,
        lease_token=query.lease_token,
        comment=comment,
        shown=shown,
    )
    return CallSpec("RefuseQuery", request, answer_report)


def extend(query: Query, lease_s: float) -> CallSpec[None]:
    """Hold a query for longer."""
    length = to_duration(lease_s, "lease_s")
    request = filled(
        query_pb2.ExtendLeaseRequest, name=query.name, lease_token=query.lease_token, lease_duration=length
    )
    return CallSpec("ExtendLease", request, _read_nothing)


def give_back(
    query: Query, how: How.ValueType = How.HOW_UNSPECIFIED, delay_s: float | None = None, comment: str = ""
) -> CallSpec[None]:
    """Give a query back."""
    request = filled(
        query_pb2.ReturnQueryRequest,
        name=query.name,
        lease_token=query.lease_token,
        how=how,
        delay=None if delay_s is None else to_duration(delay_s, "delay_s"),
        comment=comment,
    )
    return CallSpec("ReturnQuery", request, _read_nothing)


def end_lease(name: str, labeller: str, comment: str) -> CallSpec[None]:
    """End the lease of a query, as an operator."""
    request = filled(query_pb2.ReleaseLeaseRequest, name=name, labeller=labeller, comment=comment)
    return CallSpec("ReleaseLease", request, _read_nothing)


def correct(
    query: Query, label: LabelLike, labeller: str | None, reliability: float | None, comment: str
) -> CallSpec[AnswerReport]:
    """Replace the labeller's own answer."""
    request = filled(
        query_pb2.CorrectAnswerRequest,
        name=query.name,
        labeller=labeller or query.labeller,
        label=LabelEncoder(query.classes).encode_label(label),
        reliability=reliability,
        comment=comment,
    )
    return CallSpec("CorrectAnswer", request, answer_report)


def undo(query: Query, labeller: str | None, comment: str) -> CallSpec[AnswerReport]:
    """Take an answer or a refusal back."""
    request = filled(
        query_pb2.UndoAnswerRequest, name=query.name, labeller=labeller or query.labeller, comment=comment
    )
    return CallSpec("UndoAnswer", request, answer_report)


def neighbours(query: Query, limit: int) -> CallSpec[list[Neighbour]]:
    """Request rows of known class that are similar to the row of a query."""
    request = filled(
        query_pb2.ListNeighboursRequest, name=query.name, lease_token=query.lease_token, limit=limit
    )
    return CallSpec("ListNeighbours", request, lambda found: [*map(Neighbour.from_message, found.neighbours)])


def list_queries(model: str, wanted: Iterable[str]) -> query_pb2.ListQueriesRequest:
    """Request the queries in some states."""
    return filled(
        query_pb2.ListQueriesRequest,
        model=resources.model_resource(model),
        states=state_numbers(wanted),
        page_size=1000,
    )


def history_request(model: str, number: int | None) -> query_pb2.ListQueryHistoryRequest:
    """Request the steps of one query, or of all queries of a model."""
    name = resources.model_resource(model) + ("" if number is None else f"/queries/{number}")
    return filled(query_pb2.ListQueryHistoryRequest, name=name, page_size=1000)


def labellers(model: str) -> CallSpec[list[Labeller]]:
    """Request the statistics of each labeller."""
    request = filled(query_pb2.ListLabellersRequest, model=resources.model_resource(model))
    return CallSpec("ListLabellers", request, lambda found: [*map(Labeller.from_message, found.labellers)])


def policy(model: str) -> CallSpec[LabellingPolicy]:
    """Request the labelling policy of a model."""
    request = filled(query_pb2.GetLabellingPolicyRequest, model=resources.model_resource(model))
    return CallSpec("GetLabellingPolicy", request, LabellingPolicy.from_message)


def set_policy(model: str, new: LabellingPolicy, fields: Iterable[str]) -> CallSpec[LabellingPolicy]:
    """Change the labelling policy of a model: the named fields, or all if none is named."""
    request = filled(
        query_pb2.UpdateLabellingPolicyRequest,
        model=resources.model_resource(model),
        policy=message_of(query_pb2.LabellingPolicy, new),
    )
    request.update_mask.paths.extend(fields)
    return CallSpec("UpdateLabellingPolicy", request, LabellingPolicy.from_message)


def _read_nothing(_: Any) -> None:
    return None


def answer_report(
    message: query_pb2.AnswerQueryResponse
    | query_pb2.RefuseQueryResponse
    | query_pb2.CorrectAnswerResponse
    | query_pb2.UndoAnswerResponse,
) -> AnswerReport:
    """Return the report of a committed answer, refusal, correction or undoing."""
    if isinstance(message, query_pb2.AnswerQueryResponse):
        return AnswerReport.from_message(message)
    conflict = isinstance(message, query_pb2.CorrectAnswerResponse) and message.conflict
    return AnswerReport(message.name, message.committed_sequence, conflict, model_uid=message.model_uid)
