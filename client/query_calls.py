"""The calls of both clients about queries and labellers: requests, and how to read the responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from quercus.client import convert
from quercus.client.labelling_results import Filter, Labeller, LabellingPolicy, Neighbour, QueryStep
from quercus.client.labels import LabelEncoder, LabelLike
from quercus.client.messages import filled
from quercus.client.query_results import AnswerReport, Lease, Query
from quercus.client.requests import state_numbers, to_duration
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
        model=convert.model_resource(model),
        labeller=labeller,
        max_queries=1,
        lease_duration=to_duration(lease_s, "lease_s"),
        wait=to_duration(wait_s, "wait_s"),
        min_sequence=min_sequence,
        filter=None
        if wanted is None
        else filled(query_pb2.QueryFilter, classes=wanted.classes, values=wanted.values, tags=wanted.tags),
    )
    return CallSpec("LeaseQueries", request, convert.lease_from_proto)


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
    return CallSpec("ListNeighbours", request, _neighbours_from_proto)


def _neighbours_from_proto(message: query_pb2.ListNeighboursResponse) -> list[Neighbour]:
    return [
        Neighbour(
            convert.instance_of(each.instance),
            convert.row_values(each.values),
            each.class_name,
            each.same_leaf,
            each.distance,
            tuple(each.differing),
        )
        for each in message.neighbours
    ]


def list_queries(model: str, wanted: Iterable[str]) -> query_pb2.ListQueriesRequest:
    """Request the queries in some states."""
    return filled(
        query_pb2.ListQueriesRequest,
        model=convert.model_resource(model),
        states=state_numbers(wanted),
        page_size=1000,
    )


def history_request(model: str, number: int | None) -> query_pb2.ListQueryHistoryRequest:
    """Request the steps of one query, or of all queries of a model."""
    name = convert.model_resource(model) + ("" if number is None else f"/queries/{number}")
    return filled(query_pb2.ListQueryHistoryRequest, name=name, page_size=1000)


def labellers(model: str) -> CallSpec[list[Labeller]]:
    """Request the statistics of each labeller."""
    request = filled(query_pb2.ListLabellersRequest, model=convert.model_resource(model))
    return CallSpec(
        "ListLabellers", request, lambda response: [_labeller_from_proto(each) for each in response.labellers]
    )


def policy(model: str) -> CallSpec[LabellingPolicy]:
    """Request the labelling policy of a model."""
    request = filled(query_pb2.GetLabellingPolicyRequest, model=convert.model_resource(model))
    return CallSpec("GetLabellingPolicy", request, _policy_from_proto)


def set_policy(model: str, new: LabellingPolicy, fields: Iterable[str]) -> CallSpec[LabellingPolicy]:
    """Change the labelling policy of a model: the named fields, or all if none is named."""
    message = filled(
        query_pb2.LabellingPolicy,
        answers_per_query=new.answers_per_query,
        max_conflict=new.max_conflict,
        reliability=convert.enum_value(
            query_pb2.ReliabilitySource, "RELIABILITY_SOURCE", "reliability", new.reliability
        ),
        per_labeller=new.per_labeller,
        per_hour=new.per_hour,
        max_held=new.max_held,
        corrections=convert.enum_value(
            query_pb2.CorrectionPermission, "CORRECTION_PERMISSION", "corrections", new.corrections
        ),
        tags=new.tags,
    )
    request = filled(
        query_pb2.UpdateLabellingPolicyRequest, model=convert.model_resource(model), policy=message
    )
    request.update_mask.paths.extend(fields)
    return CallSpec("UpdateLabellingPolicy", request, _policy_from_proto)


def step_from_proto(message: query_pb2.QueryStep) -> QueryStep:
    """Read a step of a query."""
    return QueryStep(
        query=int(convert.last_segment(message.query)),
        kind=convert.enum_word(query_pb2.QueryStepKind, message.kind, "QUERY_STEP_KIND"),
        state=convert.enum_word(query_pb2.QueryState, message.state, "QUERY_STATE"),
        labeller=message.labeller,
        lease=message.lease,
        at=convert.to_datetime(message.time),
        clock=message.clock,
        until=message.until if message.HasField("until") else None,
        sequence=message.sequence,
        why=message.why,
    )


def _policy_from_proto(message: query_pb2.LabellingPolicy) -> LabellingPolicy:
    return LabellingPolicy(
        answers_per_query=message.answers_per_query,
        max_conflict=message.max_conflict,
        reliability=convert.enum_word(query_pb2.ReliabilitySource, message.reliability, "RELIABILITY_SOURCE"),
        per_labeller=message.per_labeller if message.HasField("per_labeller") else None,
        per_hour=message.per_hour if message.HasField("per_hour") else None,
        max_held=message.max_held,
        corrections=convert.enum_word(
            query_pb2.CorrectionPermission, message.corrections, "CORRECTION_PERMISSION"
        ),
        tags=tuple(message.tags),
    )


def _labeller_from_proto(message: query_pb2.LabellerStatistics) -> Labeller:
    return Labeller(
        name=message.labeller,
        answered=message.answered,
        refused=message.refused,
        skipped=message.skipped,
        postponed=message.postponed,
        expired=message.expired,
        corrected=message.corrected,
        undone=message.undone,
        held=message.held,
        agreement=message.agreement if message.HasField("agreement") else None,
        reliability=message.reliability if message.HasField("reliability") else None,
        median_s=convert.seconds_of(message.median_time) if message.HasField("median_time") else None,
        stated=message.stated,
        agreement_deviation=message.agreement_deviation if message.HasField("agreement_deviation") else None,
        reliability_deviation=message.reliability_deviation
        if message.HasField("reliability_deviation")
        else None,
    )


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
        return AnswerReport(
            message.name,
            message.committed_sequence,
            message.conflict,
            message.wants_more,
            message.degree_of_conflict,
            message.ignorance,
            message.reliability,
            message.model_uid,
        )
    conflict = isinstance(message, query_pb2.CorrectAnswerResponse) and message.conflict
    return AnswerReport(message.name, message.committed_sequence, conflict, model_uid=message.model_uid)
