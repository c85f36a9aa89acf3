# Generated from client/aio/labelling.py by `make client`; edit that file.
"""The part of the client that labellers use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TypeVar

from quercus.client import query_calls
from quercus.client.answers import (
    AnswerFilter,
    AnswerReader,
    CorrectionRequest,
    Statement,
    amending_request,
    merge_reports,
    statement_requests,
    taking_back,
)
from quercus.client.labels import LabelLike
from quercus.client.query_calls import CallSpec
from quercus.client.results import (
    Answer,
    AnswerReport,
    Labeller,
    LabellingPolicy,
    Neighbour,
    Query,
    QueryStep,
    StatementReport,
)
from quercus.client.sync.connection import Connection

T = TypeVar("T")


class LabellingCalls(Connection):
    """The calls for labellers, and the results about them."""

    def _send_call(self, ask: CallSpec[T], timeout_s: float | None = None) -> T:
        return ask.read(self._call(getattr(self._stubs.queries, ask.method), ask.request, timeout_s))

    def _call_and_record(self, model: str, ask: CallSpec[AnswerReport]) -> AnswerReport:
        report = self._send_call(ask)
        self._sequences.record_sequence(model, report.model_uid, report.committed_sequence)
        return report

    def answer(
        self,
        query: Query,
        label: LabelLike,
        reliability: float | None = None,
        *,
        comment: str = "",
        took_s: float | None = None,
        shown: str = "",
    ) -> AnswerReport:
        """Answer a query.

        Parameters
        ----------
        query
            A query that :meth:`queries` yielded.
        label
            A class name, a set of names, a dict name -> plausibility (an omitted name is impossible), a dict
            frozenset of names -> mass, an array (l,) of plausibilities, or ``None`` (or NaN) for a vacuous label.
        reliability
            Reliability of the answer: the probability that it is right, in (0, 1]; ``None``: 1, or estimated, depending
            on the labelling policy.
        comment
            Comment that is kept with the answer.
        took_s
            Seconds that you took; ``None``: the time since the query was leased.
        shown
            Name of your view of the query, at most 200 characters. :func:`quercus.client.shown.shown_text` makes the
            names of Quercus's screens.

        Raises
        ------
        FailedPrecondition
            If the lease ended and the query was answered, withdrawn or leased to another labeller since.
        """
        return self._call_and_record(
            query.model, query_calls.answer(query, label, reliability, comment, took_s, shown)
        )

    def refuse(self, query: Query, *, comment: str = "", shown: str = "") -> AnswerReport:
        """Refuse a query because the class cannot be known: the instance is not queried again."""
        return self._call_and_record(query.model, query_calls.refuse(query, comment, shown))

    def skip(self, query: Query, *, comment: str = "") -> None:
        """Skip a query: other labellers get it, you are not asked about the instance again."""
        self._send_call(query_calls.give_back(query, query_calls.How.HOW_SKIP, comment=comment))

    def postpone(self, query: Query, delay_s: float = 600.0, *, comment: str = "") -> None:
        """Return a query for later: no labeller gets it within ``delay_s`` seconds (1 to 86,400)."""
        self._send_call(query_calls.give_back(query, query_calls.How.HOW_POSTPONE, delay_s, comment))

    def release(self, query: Query) -> None:
        """Return a query to the next labeller who asks."""
        self._send_call(query_calls.give_back(query))

    def end_lease(self, name: str, labeller: str = "", *, comment: str = "") -> None:
        """End the lease of the query ``models/{model}/queries/{number}`` of any labeller; for operators.

        Parameters
        ----------
        labeller : end the lease only if this labeller holds it.
        comment : the reason, which is kept in the history.
        """
        self._send_call(query_calls.end_lease(name, labeller, comment))

    def extend_lease(self, query: Query, lease_s: float) -> None:
        """Hold a query for ``lease_s`` seconds from now."""
        self._send_call(query_calls.extend(query, lease_s))

    def correct(
        self,
        query: Query,
        label: LabelLike,
        reliability: float | None = None,
        *,
        labeller: str | None = None,
        comment: str = "",
    ) -> AnswerReport:
        """Replace your answer; the old one stays in the history.

        Parameters
        ----------
        query
            The answered query.
        label, reliability, comment
            See :meth:`answer`.
        labeller
            The labeller who corrects. If omitted, the one who leased the query. The labelling policy decides who may
            correct.
        """
        return self._call_and_record(
            query.model, query_calls.correct(query, label, labeller, reliability, comment)
        )

    def undo(self, query: Query, *, labeller: str | None = None, comment: str = "") -> AnswerReport:
        """Undo your answer or refusal: the instance may be queried again. The budget stays spent."""
        return self._call_and_record(query.model, query_calls.undo(query, labeller, comment))

    def neighbours(self, query: Query, limit: int = 5) -> list[Neighbour]:
        """Return rows of known class that are most like the row of a query you hold; those in its leaf first."""
        return self._send_call(query_calls.neighbours(query, limit))

    def answers(
        self,
        model: str,
        wanted: AnswerFilter | None = None,
        *,
        limit: int | None = None,
        newest_first: bool = False,
        after: int = 0,
        with_values: bool = False,
    ) -> Iterator[Answer]:
        """Yield the answers and statements of labellers about a model's rows, in the order of the log.

        If the connection breaks, the stream continues where it was.

        Parameters
        ----------
        model
            Name of the model.
        wanted
            Filter of answers; ``None``: all.
        limit
            Most answers to yield; ``None``: all.
        newest_first
            Whether the newest answer comes first.
        after
            Yield only answers after the one of this number, in the requested order.
        with_values
            Whether answers contain the values of their rows.
        """
        reader = AnswerReader(model, self._fetch_classes(model), wanted, limit, newest_first, with_values)
        reader.request.after_sequence = after
        stream = self._stream_messages(
            self._stubs.queries.StreamAnswers, reader.request, is_over=lambda: reader.is_over
        )
        with closing(stream) as messages:
            for message in messages:
                yield reader.read_answer(message)

    def state(
        self,
        model: str,
        statements: Iterable[Statement],
        *,
        labeller: str = "",
        request_id: str | None = None,
    ) -> StatementReport:
        """State labels of stored rows without a query. No budget is spent.

        Parameters
        ----------
        model
            Name of the model.
        statements
            Up to 10,000 are stored all or none; more are sent in several requests.
        labeller
            Labeller of statements that name none. If omitted with a token, the token's name.
        request_id
            Makes the call idempotent over restarts of the caller. If omitted, a random one.
        """
        classes, method = self._fetch_classes(model), self._stubs.instances.StateEvidence
        requests = statement_requests(model, classes, statements, labeller, request_id)
        merged = merge_reports(
            [StatementReport.from_message(self._call(method, request)) for request in requests]
        )
        if merged.model_uid:
            self._sequences.record_sequence(model, merged.model_uid, merged.committed_sequence)
        return merged

    def correct_answer(
        self,
        model: str,
        answer: Answer,
        label: LabelLike,
        reliability: float | None = None,
        *,
        labeller: str | None = None,
        comment: str = "",
    ) -> int:
        """Replace the label of an answer that :meth:`answers` yielded; return the number of the newest event.

        Another labeller may do so if the policy, or a token with the role corrector, allows it. Only its labeller may
        change a statement.
        """
        words = CorrectionRequest(answer.labeller if labeller is None else labeller, reliability, comment)
        request = amending_request(model, self._fetch_classes(model), answer, label, words)
        if isinstance(request, Statement):
            return self.state(model, [request]).committed_sequence
        done = self._call(self._stubs.queries.CorrectAnswer, request)
        self._sequences.record_sequence(model, done.model_uid, done.committed_sequence)
        return int(done.committed_sequence)

    def undo_answer(
        self, model: str, answer: Answer, *, labeller: str | None = None, comment: str = ""
    ) -> int:
        """Undo an answer that :meth:`answers` yielded; return the number of the newest event."""
        words = CorrectionRequest(answer.labeller if labeller is None else labeller, comment=comment)
        request = taking_back(model, answer, words)
        if isinstance(request, Statement):
            return self.state(model, [request]).committed_sequence
        done = self._call(self._stubs.queries.UndoAnswer, request)
        self._sequences.record_sequence(model, done.model_uid, done.committed_sequence)
        return int(done.committed_sequence)

    def labellers(self, model: str) -> list[Labeller]:
        """Return the statistics of each labeller of a model, in order of name."""
        return self._send_call(query_calls.labellers(model))

    def labelling_policy(self, model: str) -> LabellingPolicy:
        """Return the labelling policy of a model."""
        return self._send_call(query_calls.policy(model))

    def set_labelling_policy(
        self, model: str, policy: LabellingPolicy, fields: Iterable[str] = ()
    ) -> LabellingPolicy:
        """Replace the labelling policy of a model; it applies to leases and answers from now on.

        If ``fields`` are named (``["per_hour"]``), only these change, so concurrent changes of others are kept.
        """
        return self._send_call(query_calls.set_policy(model, policy, fields))

    def list_queries(self, model: str, states: Iterable[str] = ()) -> Iterator[Query]:
        """Yield the queries in the given states (open, leased, answered, refused, withdrawn; default: all)."""
        request = query_calls.list_queries(model, states)
        with closing(self._list_pages(self._stubs.queries.ListQueries, request)) as pages:
            for page in pages:
                for each in page.queries:
                    yield Query.from_message(each)

    def query_history(self, model: str, number: int | None = None) -> Iterator[QueryStep]:
        """Yield every step of one query of a model, or of all its queries, in order of time."""
        request = query_calls.history_request(model, number)
        with closing(self._list_pages(self._stubs.queries.ListQueryHistory, request)) as pages:
            for page in pages:
                for each in page.steps:
                    yield QueryStep.from_message(each)
