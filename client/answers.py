"""Answers of labellers, and statements that they make without a query."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from quercus.client import resources
from quercus.client.errors import invalid
from quercus.client.labels import LabelEncoder, LabelLike
from quercus.client.messages import enum_value, filled
from quercus.client.results import Answer, AnswerKind, AnswerState, StatementReport
from quercus.specification.bounds import MAX_STATEMENTS
from quercus.v1 import instance_pb2, query_pb2


@dataclass(frozen=True)
class Statement:
    """A label for an instance that is stated without a query.

    ``labeller`` may be omitted if the request or the token names one. ``retract`` takes back the labeller's statement;
    it has no label.
    """

    instance: str
    label: LabelLike = None
    labeller: str = ""
    reliability: float | None = None
    comment: str = ""
    retract: bool = False


@dataclass(frozen=True)
class AnswerFilter:
    """The answers that are wanted; an empty field excludes nothing.

    ``classes``: answers for which one of these classes is most plausible. Times from ``since`` on and before ``until``;
    those without a zone are UTC.
    """

    labellers: Sequence[str] = ()
    classes: Sequence[str] = ()
    kinds: Sequence[AnswerKind] = ()
    states: Sequence[AnswerState] = ()
    instances: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class CorrectionRequest:
    """The labeller who corrects an answer or takes it back, with reliability and comment."""

    labeller: str
    reliability: float | None = None
    comment: str = ""


class AnswerReader:
    """Reader of a stream of answers, which continues where the stream broke.

    Parameters
    ----------
    model
        Name of the model.
    classes
        Its frame.
    wanted
        Filter of answers; ``None``: all.
    limit
        Most answers; ``None``: all.
    newest_first, with_values
        The order, and whether answers contain the values of the instances.
    """

    def __init__(
        self,
        model: str,
        classes: Sequence[str],
        wanted: AnswerFilter | None,
        limit: int | None,
        newest_first: bool,
        with_values: bool,
    ) -> None:
        wanted = wanted or AnswerFilter()
        if limit is not None and limit < 1:
            raise invalid("limit", f"is {limit}, must be at least 1")
        self._classes = tuple(classes)
        self.request = filled(
            query_pb2.StreamAnswersRequest,
            model=resources.model_resource(model),
            labellers=wanted.labellers,
            classes=wanted.classes,
            kinds=[enum_value(query_pb2.AnswerKind.DESCRIPTOR, "kinds", each) for each in wanted.kinds],
            states=[enum_value(query_pb2.AnswerState.DESCRIPTOR, "states", each) for each in wanted.states],
            instances=wanted.instances,
            since=_timestamp_of(wanted.since),
            until=_timestamp_of(wanted.until),
            limit=limit or 0,
            newest_first=newest_first,
            include_values=with_values,
        )

    def read_answer(self, message: query_pb2.Answer) -> Answer:
        """Read an answer, and move the request behind it."""
        self.request.after_sequence = message.sequence
        if self.request.limit:
            self.request.limit -= 1
            self.is_over = self.request.limit == 0
        return Answer.from_message(message, self._classes)

    is_over = False
    """True if the requested number of answers has come."""


def amending_request(
    model: str, classes: Sequence[str], given: Answer, label: LabelLike, words: CorrectionRequest
) -> query_pb2.CorrectAnswerRequest | Statement:
    """Return the request that replaces an answer: a correction, or a new statement in the place of a statement."""
    if given.query is None:
        return Statement(given.instance, label, words.labeller, words.reliability, words.comment)
    return filled(
        query_pb2.CorrectAnswerRequest,
        name=resources.query_resource(model, given.query),
        labeller=words.labeller,
        label=LabelEncoder(classes).encode_label(label),
        reliability=words.reliability,
        comment=words.comment,
    )


def taking_back(
    model: str, given: Answer, words: CorrectionRequest
) -> query_pb2.UndoAnswerRequest | Statement:
    """Return the request that takes an answer, or a statement, back."""
    if given.query is None:
        return Statement(given.instance, labeller=words.labeller, comment=words.comment, retract=True)
    name = resources.query_resource(model, given.query)
    return filled(query_pb2.UndoAnswerRequest, name=name, labeller=words.labeller, comment=words.comment)


def statement_requests(
    model: str, classes: Sequence[str], statements: Iterable[Statement], labeller: str, request_id: str | None
) -> Iterator[instance_pb2.StateEvidenceRequest]:
    """Return as many requests as the statements need; their ids differ by the number of the request."""
    encoder, given = LabelEncoder(classes), list(statements)
    base = request_id or uuid.uuid4().hex
    for number, start in enumerate(range(0, len(given), MAX_STATEMENTS)):
        part = given[start : start + MAX_STATEMENTS]
        yield filled(
            instance_pb2.StateEvidenceRequest,
            model=resources.model_resource(model),
            statements=[_statement_to_proto(encoder, each, start + i) for i, each in enumerate(part)],
            request_id=f"{base}-{number}" if number else base,
            labeller=labeller,
        )


def _statement_to_proto(encoder: LabelEncoder, given: Statement, row: int) -> instance_pb2.Statement:
    return instance_pb2.Statement(
        instance_id=given.instance,
        labeller=given.labeller,
        label=None if given.retract else encoder.encode_label(given.label, f"statements[{row}].label"),
        retract=given.retract,
        reliability=given.reliability,
        comment=given.comment,
    )


def merge_reports(reports: Sequence[StatementReport]) -> StatementReport:
    """Return the sum of the reports of the requests of one call."""
    return StatementReport(
        max((each.committed_sequence for each in reports), default=0),
        sum(each.stored for each in reports),
        sum(each.known for each in reports),
        reports[-1].model_uid if reports else "",
    )


def _timestamp_of(at: datetime | None) -> Timestamp | None:
    if at is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(at.astimezone(UTC) if at.tzinfo else at)
    return stamp
