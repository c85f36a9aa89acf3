"""Answers of labellers, and statements that they make without a query."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from google.protobuf.timestamp_pb2 import Timestamp

from quercus.client import convert
from quercus.client.errors import invalid
from quercus.client.labels import LabelEncoder, LabelLike, label_from_proto
from quercus.client.messages import filled
from quercus.client.results import Value
from quercus.specification.bounds import MAX_STATEMENTS
from quercus.v1 import instance_pb2, query_pb2

AnswerKind = Literal["answered", "refused", "corrected", "undone", "stated", "retracted"]
AnswerState = Literal["counts", "pending", "replaced", "undone", "empty"]


@dataclass(frozen=True)
class Answer:
    """An answer of a labeller about an instance.

    Attributes
    ----------
    number
        Number of its event in the log.
    instance, labeller, at
        Id of the instance, name of the labeller, and time (UTC).
    kind
        The action: ``answered``, ``refused``, ``corrected``, ``undone``; without a query ``stated`` and ``retracted``.
    state
        The current state: it ``counts``, is ``pending`` until its query has all its answers, was ``replaced`` or
        ``undone``; or it has no label (``empty``).
    label, text
        The label in the form of ``Client.answer``, and in words (``?``: vacuous; empty: no label).
    reliability, comment, took_s, shown
        Reliability with which it counts, comment, time in seconds, and name of the presentation on the labeller's
        screen.
    query
        Number of its query; ``None`` for a statement.
    former, former_label, former_text
        The answer that it replaced or took back; ``None`` if there is none.
    later
        Number of the answer that replaced it or took it back.
    conflict
        True if it contradicted the earlier evidence totally.
    known, class_name
        Current plausibility of each class, and the class if only one is left, else ``None``.
    values
        Values of the instance by attribute, if they were requested.
    """

    number: int
    instance: str
    labeller: str
    at: datetime
    kind: AnswerKind
    state: AnswerState
    label: LabelLike
    text: str
    reliability: float
    comment: str
    took_s: float | None
    query: int | None
    former: int | None
    former_label: LabelLike
    former_text: str
    later: int | None
    conflict: bool
    known: Mapping[str, float]
    class_name: str | None
    values: Mapping[str, Value]
    shown: str = ""


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
class StatementReport:
    """The outcome of statements: newest event of the log, and numbers of new statements and of known ones."""

    committed_sequence: int
    stored: int
    known: int
    model_uid: str = ""


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
            model=convert.model_resource(model),
            labellers=wanted.labellers,
            classes=wanted.classes,
            kinds=[
                convert.enum_value(query_pb2.AnswerKind, "ANSWER_KIND", "kinds", each)
                for each in wanted.kinds
            ],
            states=[
                convert.enum_value(query_pb2.AnswerState, "ANSWER_STATE", "states", each)
                for each in wanted.states
            ],
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
        return answer_from_proto(message, self._classes)

    is_over = False
    """True if the requested number of answers has come."""


def answer_from_proto(message: query_pb2.Answer, classes: Sequence[str]) -> Answer:
    """Read an answer."""

    def read_label(field: Literal["label", "former_label"]) -> LabelLike:
        return label_from_proto(getattr(message, field), classes) if message.HasField(field) else None

    return Answer(
        number=message.sequence,
        instance=convert.instance_of(message.instance),
        labeller=message.labeller,
        at=convert.to_datetime(message.create_time),
        kind=convert.enum_word(query_pb2.AnswerKind, message.kind, "ANSWER_KIND"),
        state=convert.enum_word(query_pb2.AnswerState, message.state, "ANSWER_STATE"),
        label=read_label("label"),
        text=message.text,
        reliability=message.reliability,
        comment=message.comment,
        took_s=convert.seconds_of(message.took) if message.HasField("took") else None,
        query=int(convert.last_segment(message.query)) if message.query else None,
        former=message.former_sequence or None,
        former_label=read_label("former_label"),
        former_text=message.former_text,
        later=message.later_sequence or None,
        conflict=message.conflict,
        known=dict(zip(classes, message.contour.plausibilities, strict=True)),
        class_name=message.class_name or None,
        values=convert.row_values(message.values),
        shown=message.shown,
    )


def amending_request(
    model: str, classes: Sequence[str], given: Answer, label: LabelLike, words: CorrectionRequest
) -> query_pb2.CorrectAnswerRequest | Statement:
    """Return the request that replaces an answer: a correction, or a new statement in the place of a statement."""
    if given.query is None:
        return Statement(given.instance, label, words.labeller, words.reliability, words.comment)
    return filled(
        query_pb2.CorrectAnswerRequest,
        name=f"{convert.model_resource(model)}/queries/{given.query}",
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
    name = f"{convert.model_resource(model)}/queries/{given.query}"
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
            model=convert.model_resource(model),
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


def report_from_proto(message: instance_pb2.StateEvidenceResponse) -> StatementReport:
    """Return the report of a request."""
    return StatementReport(
        message.committed_sequence, message.statements_stored, message.statements_known, message.model_uid
    )


def _timestamp_of(at: datetime | None) -> Timestamp | None:
    if at is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(at.astimezone(UTC) if at.tzinfo else at)
    return stamp
