# Generated from client/aio/queries.py by `make client`; edit that file.
"""The calls of labellers: queries leased one by one or on a stream, answers, statements, and results about them."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, Final, Self

import grpc

from quercus.client import query_calls
from quercus.client.answers import AnswerFilter, Statement, merge_reports
from quercus.client.concurrency import (
    BidirectionalCall,
    Future,
    Inbox,
    Repeating,
    result,
    sleep,
)
from quercus.client.errors import FailedPrecondition, QuercusError, Unavailable, from_rpc, invalid
from quercus.client.filters import ANY, Filter
from quercus.client.labels import LabelEncoder, LabelLike
from quercus.client.messages import enum_value, filled, message_of, to_duration, to_timestamp
from quercus.client.query_calls import LONGEST_POLL_S, How, Settlement, WaitPolicy, read_reply
from quercus.client.resources import instance_resource, model_resource, query_resource
from quercus.client.results import (
    AdjudicationReport,
    Agreement,
    Answer,
    AnswerReport,
    Dispute,
    GoldQuestion,
    GoldReport,
    Labeller,
    LabellingPolicy,
    Lease,
    Neighbour,
    Query,
    QueryStep,
    StatementReport,
)
from quercus.client.retrying import is_transient
from quercus.client.sync.models import ModelCalls
from quercus.specification.bounds import MAX_STATEMENTS
from quercus.v1 import instance_pb2, query_pb2

CLOSE_S: Final = 1.0
GIVE_BACK_S: Final = 3.0
"""Seconds that a client leaving a loop of queries waits for the server to take back the current one."""


class QueryCalls(ModelCalls):
    """The calls that lease queries to labellers and take their answers, and the results about them."""

    def lease(
        self,
        model: str,
        labeller: str,
        *,
        lease_s: float = 60.0,
        wait_s: float = 0.0,
        only: Filter | None = None,
    ) -> Lease:
        """Lease one query, waiting up to ``wait_s`` (at most 60) for one.

        :meth:`queries` calls this for you.
        """
        request = filled(
            query_pb2.LeaseQueriesRequest,
            model=model_resource(model),
            labeller=labeller,
            max_queries=1,
            lease_duration=to_duration(lease_s, "lease_s"),
            wait=to_duration(wait_s, "wait_s"),
            min_sequence=self._sequences.newest_sequence(model),
            filter=None if only is None else only.to_message(),
        )
        try:
            return Lease.from_message(self._call(request, self.timeout_s + wait_s))
        except FailedPrecondition as error:
            if not query_calls.is_beyond(error):
                raise
        self._forget_model(model)  # the known number belongs to a deleted model
        request.min_sequence = 0
        return Lease.from_message(self._call(request, self.timeout_s + wait_s))

    def queries(
        self,
        model: str,
        labeller: str,
        *,
        lease_s: float = 60.0,
        idle_s: float | None = 10.0,
        only: Filter | None = None,
    ) -> Generator[Query, None, None]:
        """Yield queries one after another; the lease of the current one is extended while you think.

        Answer or refuse each query before you request the next one. An unanswered query goes to another labeller (or
        back to you) when its lease ends. If you leave the loop, the current query is given back at once.

        Parameters
        ----------
        model, labeller
            Name of the model (``"-"``: any model, in turn), and name of the labeller (1 to 100 characters).
        lease_s
            Length of a lease, 1 to 3,600 seconds: others get the query after it if this process dies.
        idle_s
            Seconds without a query after which to end; ``None``: end only when the budget is spent.
        only
            Filter of queries; ``None``: all.
        """
        patience = WaitPolicy(idle_s)
        while True:
            lease = self.lease(model, labeller, lease_s=lease_s, wait_s=patience.wait_s, only=only)
            if not lease.queries:
                now = self.get_model(model) if lease.idle == "budget_spent" else None
                if patience.is_over(lease.idle, now):
                    return
                continue
            patience.restart_wait()
            query = lease.queries[0]
            keeping = Repeating(
                lambda q=query: self._keep_lease(q, lease_s),  # type: ignore[misc]
                lease_s / 3,
                "quercus-lease",
            )
            keeping.start()
            try:
                yield query
            except GeneratorExit:
                self._give_back(query)
                raise
            finally:
                keeping.stop()
            if model != ANY and not lease.budget_left and query_calls.is_spent(self.get_model(model)):
                return

    def _keep_lease(self, query: Query, lease_s: float) -> bool:
        """Extend a lease, and return whether to continue; if not, the answer itself fails with the reason."""
        try:
            self.extend_lease(query, lease_s)
        except QuercusError as error:  # a transient error may be over before the lease ends
            return is_transient(error)  # otherwise the query is answered, or another labeller has it
        except ValueError:  # the channel was closed meanwhile
            return False
        return True

    def _give_back(self, query: Query) -> None:
        """Give a query back, in one attempt, so that leaving the loop does not wait for the end of an outage."""
        request = query_calls.give_back(query)
        # answered, refused, or the server is unreachable: the lease expires
        with suppress(grpc.RpcError, QuercusError, ValueError):
            self._methods[request.DESCRIPTOR](request, timeout=GIVE_BACK_S)

    def stream_queries(
        self,
        model: str,
        labeller: str,
        *,
        prefetch: int = 3,
        lease_s: float = 60.0,
        idle_s: float | None = 10.0,
        only: Filter | None = None,
    ) -> QueryStream:
        """Return a stream of queries to iterate over within ``with``; it fetches queries in advance.

        Answer on the stream (``stream.answer(query, label)``), which takes one round trip. The stream extends leases
        while you think, and continues after an outage.

        Parameters
        ----------
        model, labeller, lease_s, idle_s, only
            See :meth:`queries`.
        prefetch
            Number of queries that you hold at once, including the current one; 1 to 100.
        """
        request = filled(
            query_pb2.StreamQueriesRequest,
            model=model_resource(model),
            labeller=labeller,
            lease_duration=to_duration(lease_s, "lease_s"),
            credits=prefetch,
            filter=None if only is None else only.to_message(),
        )
        return QueryStream(self, model, request, lease_s, idle_s)

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
            Description of your view of the query, at most 200 characters. Quercus's own screens use
            :func:`quercus.client.shown.shown_text`.

        Raises
        ------
        FailedPrecondition
            If the lease has ended, and the query has since been answered, withdrawn or leased to another labeller.
        """
        request = query_calls.answer(query, label, reliability, comment, took_s, shown)
        return self._call_and_record(query.model, request)

    def refuse(self, query: Query, *, comment: str = "", shown: str = "") -> AnswerReport:
        """Refuse a query because the class cannot be known: the instance is not queried again."""
        return self._call_and_record(query.model, query_calls.refuse(query, comment, shown))

    def skip(self, query: Query, *, comment: str = "") -> None:
        """Skip a query: other labellers get it, you are not asked about the instance again."""
        self._call(query_calls.give_back(query, How.HOW_SKIP, comment=comment))

    def postpone(self, query: Query, delay_s: float = 600.0, *, comment: str = "") -> None:
        """Return a query for later: no labeller gets it within ``delay_s`` seconds (1 to 86,400)."""
        self._call(query_calls.give_back(query, How.HOW_POSTPONE, delay_s, comment))

    def release(self, query: Query) -> None:
        """Return a query to the next labeller who asks."""
        self._call(query_calls.give_back(query))

    def end_lease(self, name: str, labeller: str = "", *, comment: str = "") -> None:
        """End the lease of the query ``models/{model}/queries/{number}`` of any labeller; for operators.

        Parameters
        ----------
        labeller : end the lease only if this labeller holds it.
        comment : the reason, which is kept in the history.
        """
        self._call(filled(query_pb2.ReleaseLeaseRequest, name=name, labeller=labeller, comment=comment))

    def extend_lease(self, query: Query, lease_s: float) -> None:
        """Hold a query for ``lease_s`` seconds from now."""
        request = filled(
            query_pb2.ExtendLeaseRequest,
            name=query.name,
            lease_token=query.lease_token,
            lease_duration=to_duration(lease_s, "lease_s"),
        )
        self._call(request)

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
        request = filled(
            query_pb2.CorrectAnswerRequest,
            name=query.name,
            labeller=labeller or query.labeller,
            label=LabelEncoder(query.classes).encode_label(label),
            reliability=reliability,
            comment=comment,
        )
        return self._call_and_record(query.model, request)

    def undo(self, query: Query, *, labeller: str | None = None, comment: str = "") -> AnswerReport:
        """Undo your answer or refusal: the instance may be queried again. The budget stays spent."""
        request = filled(
            query_pb2.UndoAnswerRequest, name=query.name, labeller=labeller or query.labeller, comment=comment
        )
        return self._call_and_record(query.model, request)

    def _call_and_record(self, model: str, request: Any) -> AnswerReport:
        report: AnswerReport = read_reply(self._call(request))  # type: ignore[assignment]
        self._sequences.record_sequence(model, report.model_uid, report.committed_sequence)
        return report

    def neighbours(self, query: Query, limit: int = 5) -> list[Neighbour]:
        """Return rows of known class that are most like the row of a query you hold; those in its leaf first."""
        request = filled(
            query_pb2.ListNeighboursRequest, name=query.name, lease_token=query.lease_token, limit=limit
        )
        return [*map(Neighbour.from_message, self._call(request).neighbours)]

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
        wanted = wanted or AnswerFilter()
        if limit is not None and limit < 1:
            raise invalid("limit", f"is {limit}, must be at least 1")
        request = filled(
            query_pb2.StreamAnswersRequest,
            model=model_resource(model),
            labellers=wanted.labellers,
            classes=wanted.classes,
            kinds=[enum_value(query_pb2.AnswerKind.DESCRIPTOR, "kinds", each) for each in wanted.kinds],
            states=[enum_value(query_pb2.AnswerState.DESCRIPTOR, "states", each) for each in wanted.states],
            instances=wanted.instances,
            since=to_timestamp(wanted.since),
            until=to_timestamp(wanted.until),
            limit=limit or 0,
            newest_first=newest_first,
            include_values=with_values,
            after_sequence=after,
        )
        classes = self._fetch_classes(model)
        stream = self._stream_messages(request, is_over=lambda: limit is not None and not request.limit)
        with closing(stream) as messages:
            for message in messages:
                request.after_sequence = message.sequence  # where the next stream continues after an outage
                request.limit -= limit is not None
                classes = self._classes_for(message.contour, model, classes)
                yield Answer.from_message(message, classes)

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
            Up to 10,000 are stored all together or not at all; more are sent in several requests.
        labeller
            Labeller of statements that name none. If omitted with a token, the token's name.
        request_id
            Makes the call idempotent across restarts of the caller. If omitted, a random one.
        """
        encoder, given = LabelEncoder(self._fetch_classes(model)), list(statements)
        base = request_id or uuid.uuid4().hex
        reports = []
        for number, start in enumerate(range(0, len(given), MAX_STATEMENTS)):
            request = filled(
                instance_pb2.StateEvidenceRequest,
                model=model_resource(model),
                statements=[
                    filled(
                        instance_pb2.Statement,
                        instance_id=each.instance,
                        labeller=each.labeller,
                        label=None
                        if each.retract
                        else encoder.encode_label(each.label, f"statements[{row}].label"),
                        retract=each.retract,
                        reliability=each.reliability,
                        comment=each.comment,
                    )
                    for row, each in enumerate(given[start : start + MAX_STATEMENTS], start)
                ],
                request_id=f"{base}-{number}" if number else base,
                labeller=labeller,
            )
            reports.append(StatementReport.from_message(self._call(request)))
        merged = merge_reports(reports)
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

        Other labellers may correct it if the policy, or a token with the role corrector, allows that. A statement may
        only be changed by its labeller.
        """
        labeller = answer.labeller if labeller is None else labeller
        if answer.kind == "adjudicated":
            done = self.adjudicate(model, answer.instance, label, labeller=labeller, comment=comment)
            return done.committed_sequence
        if answer.query is None:
            statement = Statement(answer.instance, label, labeller, reliability, comment)
            return self.state(model, [statement]).committed_sequence
        request = filled(
            query_pb2.CorrectAnswerRequest,
            name=query_resource(model, answer.query),
            labeller=labeller,
            label=LabelEncoder(self._fetch_classes(model)).encode_label(label),
            reliability=reliability,
            comment=comment,
        )
        return self._call_and_record(model, request).committed_sequence

    def undo_answer(
        self, model: str, answer: Answer, *, labeller: str | None = None, comment: str = ""
    ) -> int:
        """Undo an answer that :meth:`answers` yielded; return the number of the newest event."""
        labeller = answer.labeller if labeller is None else labeller
        if answer.kind == "adjudicated":
            done = self.undo_adjudication(model, answer.instance, labeller=labeller, comment=comment)
            return done.committed_sequence
        if answer.query is None:
            statement = Statement(answer.instance, labeller=labeller, comment=comment, retract=True)
            return self.state(model, [statement]).committed_sequence
        name = query_resource(model, answer.query)
        request = filled(query_pb2.UndoAnswerRequest, name=name, labeller=labeller, comment=comment)
        return self._call_and_record(model, request).committed_sequence

    def disputes(
        self, model: str, classes: Sequence[str] = (), labellers: Sequence[str] = ()
    ) -> Iterator[Dispute]:
        """Yield the rows whose labellers name different classes, without their values.

        Parameters
        ----------
        model
            Name of the model.
        classes
            Only disputes in which a label names one of these classes; empty: all.
        labellers
            Only disputes with a label of one of these labellers; empty: all.
        """
        names = self._fetch_classes(model)
        request = filled(
            query_pb2.ListDisputesRequest,
            model=model_resource(model),
            classes=classes,
            labellers=labellers,
            page_size=1000,
        )
        with closing(self._list(request, lambda page: page.disputes)) as found:
            for each in found:
                names = self._classes_for(each.contour, model, names)
                yield Dispute.from_message(each, names)

    def get_dispute(self, model: str, instance: str) -> Dispute:
        """Return the labels of a row by labeller, whether in dispute or not, with its values and display."""
        request = filled(query_pb2.GetDisputeRequest, name=instance_resource(model, instance))
        return Dispute.from_message(self._call(request), self._fetch_classes(model))

    def adjudicate(
        self, model: str, instance: str, label: LabelLike, *, labeller: str = "", comment: str = ""
    ) -> AdjudicationReport:
        """Decide between the labellers of a row: your label overrules theirs, which stay in the history.

        The labelling policy, or a token with the role corrector, allows it. No budget is spent.

        Parameters
        ----------
        model
            Name of the model.
        instance
            Id of the row.
        label
            The right label; see :meth:`answer`.
        labeller
            Name of the person who decides. If omitted with a token, the token's name.
        comment
            Comment that is kept with the decision.
        """
        request = filled(
            query_pb2.AdjudicateRequest,
            name=instance_resource(model, instance),
            labeller=labeller,
            label=LabelEncoder(self._fetch_classes(model)).encode_label(label),
            comment=comment,
        )
        return self._adjudicate(model, request)

    def undo_adjudication(
        self, model: str, instance: str, *, labeller: str = "", comment: str = ""
    ) -> AdjudicationReport:
        """Take back the adjudication of a row: the labels of its labellers count again."""
        request = filled(
            query_pb2.AdjudicateRequest,
            name=instance_resource(model, instance),
            labeller=labeller,
            retract=True,
            comment=comment,
        )
        return self._adjudicate(model, request)

    def _adjudicate(self, model: str, request: query_pb2.AdjudicateRequest) -> AdjudicationReport:
        report = AdjudicationReport.from_message(self._call(request))
        self._sequences.record_sequence(model, report.model_uid, report.committed_sequence)
        return report

    def mark_gold(
        self, model: str, labels: Mapping[str, LabelLike], *, labeller: str = "", comment: str = ""
    ) -> GoldReport:
        """Make rows of known class gold questions, which measure the reliability of labellers.

        They are mixed with the queries, each at most once per labeller, at the ``gold_share`` of the labelling policy.
        At most 1,000 rows; all of them are marked or none.

        Parameters
        ----------
        model
            Name of the model.
        labels
            The right answer of each row, by its id; see :meth:`answer`.
        labeller
            Name of the person who marks them. If omitted with a token, the token's name.
        comment
            Comment that is kept with each mark.
        """
        encoder = LabelEncoder(self._fetch_classes(model))
        marks = [
            filled(
                query_pb2.GoldLabel,
                instance_id=row,
                label=encoder.encode_label(label, f"labels[{i}].label"),
                comment=comment,
            )
            for i, (row, label) in enumerate(labels.items())
        ]
        return self._mark_gold(model, marks, labeller)

    def unmark_gold(
        self, model: str, rows: Iterable[str], *, labeller: str = "", comment: str = ""
    ) -> GoldReport:
        """Make gold questions ordinary rows again: the labels of their labellers count again."""
        marks = [filled(query_pb2.GoldLabel, instance_id=row, retract=True, comment=comment) for row in rows]
        return self._mark_gold(model, marks, labeller)

    def _mark_gold(self, model: str, marks: Sequence[query_pb2.GoldLabel], labeller: str) -> GoldReport:
        request = filled(
            query_pb2.MarkGoldRequest, model=model_resource(model), labels=marks, labeller=labeller
        )
        report = GoldReport.from_message(self._call(request))
        self._sequences.record_sequence(model, report.model_uid, report.committed_sequence)
        return report

    def gold_questions(self, model: str) -> list[GoldQuestion]:
        """Return the gold questions of a model, with the number of right answers to each."""
        request = filled(query_pb2.ListGoldRequest, model=model_resource(model))
        return [*map(GoldQuestion.from_message, self._call(request).questions)]

    def agreement(self, model: str) -> Agreement:
        """Return the agreement of a model's labellers: by pair, beyond chance, and with the accepted labels."""
        request = filled(query_pb2.GetAgreementRequest, model=model_resource(model))
        return Agreement.from_message(self._call(request))

    def labellers(self, model: str) -> list[Labeller]:
        """Return the statistics of each labeller of a model, in order of name."""
        request = filled(query_pb2.ListLabellersRequest, model=model_resource(model))
        return [*map(Labeller.from_message, self._call(request).labellers)]

    def labelling_policy(self, model: str) -> LabellingPolicy:
        """Return the labelling policy of a model."""
        request = filled(query_pb2.GetLabellingPolicyRequest, model=model_resource(model))
        return LabellingPolicy.from_message(self._call(request))

    def set_labelling_policy(
        self, model: str, policy: LabellingPolicy, fields: Iterable[str] = ()
    ) -> LabellingPolicy:
        """Replace the labelling policy of a model; it applies to leases and answers from now on.

        If ``fields`` are given (``["per_hour"]``), only these change, so that concurrent changes of others are kept.
        """
        request = filled(
            query_pb2.UpdateLabellingPolicyRequest,
            model=model_resource(model),
            policy=message_of(query_pb2.LabellingPolicy, policy),
        )
        request.update_mask.paths.extend(fields)
        return LabellingPolicy.from_message(self._call(request))

    def list_queries(self, model: str, states: Iterable[str] = ()) -> Iterator[Query]:
        """Yield the queries in the given states (open, leased, answered, refused, withdrawn; default: all)."""
        request = filled(
            query_pb2.ListQueriesRequest,
            model=model_resource(model),
            states=[enum_value(query_pb2.QueryState.DESCRIPTOR, "states", each) for each in states],
            page_size=1000,
        )
        return self._list(request, lambda page: map(Query.from_message, page.queries))

    def query_history(self, model: str, number: int | None = None) -> Iterator[QueryStep]:
        """Yield every step of one query of a model, or of all its queries, in order of time."""
        name = model_resource(model) if number is None else query_resource(model, number)
        request = filled(query_pb2.ListQueryHistoryRequest, name=name, page_size=1000)
        return self._list(request, lambda page: map(QueryStep.from_message, page.steps))


class QueryStream:
    """A stream of queries, and of a labeller's answers to them; `Client.stream_queries` makes it.

    The stream extends leases while you think. A query without an answer is given back when you request the next one. If
    the connection breaks, the stream is reopened; an unacknowledged answer is sent again in a separate call, and counts
    once.
    """

    def __init__(
        self,
        client: QueryCalls,
        model: str,
        request: query_pb2.StreamQueriesRequest,
        lease_s: float,
        idle_s: float | None,
    ) -> None:
        self._client, self._model, self._request, self._lease_s = client, model, request, lease_s
        self._patience = WaitPolicy(idle_s)
        self._trial = client._outage.start_attempts()
        self._idle = ""
        self._current: Query | None = None
        self._line: QueryLine | None = None

    def _open_line(self) -> QueryLine:
        if self._model != ANY:
            self._request.min_sequence = self._client._sequences.newest_sequence(self._model)
        self._line = QueryLine(self._client, self._lease_s / 3)
        self._line.open_call(self._request)
        return self._line

    def __enter__(self) -> Self:
        self._open_line()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the stream and give back held queries."""
        if self._line is not None:
            self._line.close()

    def __iter__(self) -> Iterator[Query]:
        return self

    def __next__(self) -> Query:
        try:
            return self._next_query()
        except Exception:
            # Also at the normal end: without ``with``, nothing else closes it, and leases would be extended forever.
            self.close()
            self._line = None
            raise

    def _next_query(self) -> Query:
        line = self._line or self._open_line()
        if self._current is not None:
            line.give_back(self._current)
            self._current = None
        self._patience.restart_wait()
        while True:
            event = line.next_event(self._patience.wait_s if self._idle else LONGEST_POLL_S)
            if isinstance(event, QuercusError):
                line = self._reopen_line(event)
                continue
            self._trial.note_success()
            if isinstance(event, Query):
                self._idle, self._current = "", event
                return event
            self._idle = event or self._idle or "nothing_to_ask"
            spent = self._idle == "budget_spent" and self._model != ANY
            now = self._client.get_model(self._model) if spent else None
            if self._patience.is_over(self._idle, now):
                raise StopIteration

    def _reopen_line(self, error: QuercusError) -> QueryLine:
        sequences = self._client._sequences
        if query_calls.is_beyond(error) and sequences.newest_sequence(self._model):
            sequences.forget_model(self._model)  # the known number belongs to a deleted model
            pause_s: float | None = 0.0
        else:
            pause_s = self._trial.pause_s(error)
        if pause_s is None:
            raise error
        self.close()
        sleep(pause_s)
        self._patience.restart_wait()
        return self._open_line()

    # Answers of the labeller

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
        """Answer a query, as `Client.answer`."""
        request = query_calls.answer(query, label, reliability, comment, took_s, shown)
        return self._send_reply(query, request)

    def refuse(self, query: Query, *, comment: str = "", shown: str = "") -> AnswerReport:
        """Refuse a query because the class cannot be known: the instance is not queried again."""
        return self._send_reply(query, query_calls.refuse(query, comment, shown))

    def skip(self, query: Query, *, comment: str = "") -> None:
        """Skip a query: other labellers get it, you are not asked about the instance again."""
        self._settle_query(query, query_calls.give_back(query, How.HOW_SKIP, comment=comment))

    def postpone(self, query: Query, delay_s: float = 600.0, *, comment: str = "") -> None:
        """Return a query for later: no labeller gets it within ``delay_s`` seconds (1 to 86,400)."""
        self._settle_query(query, query_calls.give_back(query, How.HOW_POSTPONE, delay_s, comment))

    def release(self, query: Query) -> None:
        """Return a query to the next labeller who asks."""
        self._settle_query(query, query_calls.give_back(query))

    def _send_reply(self, query: Query, request: Settlement) -> AnswerReport:
        report: AnswerReport = self._settle_query(query, request)
        self._client._sequences.record_sequence(query.model, report.model_uid, report.committed_sequence)
        return report

    def _settle_query(self, query: Query, request: Settlement) -> Any:
        if self._line is None:  # not open yet, or already closed
            return read_reply(self._client._call(request))
        try:
            reply = result(self._line.send_request(request), self._client.timeout_s)
        except (QuercusError, TimeoutError) as error:
            if isinstance(error, QuercusError) and not is_transient(error):
                raise
            # The server may already have counted it; repeating it is safe.
            reply = read_reply(self._client._call(request))
        if self._current is not None and self._current.name == query.name:
            self._current = None
        return reply


class QueryLine:
    """One call of StreamQueries, with heartbeats that extend its leases every ``beat_s``."""

    def __init__(self, client: QueryCalls, beat_s: float) -> None:
        self._method = client._methods[query_pb2.StreamQueriesRequest.DESCRIPTOR]
        self._address = client.address
        self._incoming: Inbox[Query | str | QuercusError] = Inbox()
        self._waiting: dict[str, Future[Any]] = {}
        self._lock = threading.Lock()  # for the synchronous client, whose events arrive in a thread
        self._ended: QuercusError | None = None
        self._heart = Repeating(self._send_heartbeat, beat_s, "quercus-queries-heartbeat")

    def open_call(self, first: Any) -> None:
        """Open the stream with the message ``first``."""
        self._call = BidirectionalCall(self._method, self._take_response, "quercus-queries")
        self._call.write(first)
        self._heart.start()

    def _send_heartbeat(self) -> bool:
        if self._ended is not None:
            return False
        self._call.write(filled(query_pb2.StreamQueriesRequest, heartbeat=True))
        return True

    def _take_response(self, event: Any) -> None:
        """Take a response, or the end of the call."""
        if event is None:
            self._end_call(Unavailable(f"{self._address} ended the stream of queries"))
        elif isinstance(event, grpc.RpcError):
            self._end_call(from_rpc(event, self._address))
        elif isinstance(event, QuercusError):
            self._end_call(event)
        elif (read := query_calls.read_event(event, self._waiting)) is not None:
            self._incoming.put(read)

    def _end_call(self, error: QuercusError) -> None:
        with self._lock:
            self._ended = error
            waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(error)
        self._incoming.put(error)

    def next_event(self, wait_s: float) -> Query | str | QuercusError:
        """Return the next query, the reason why there is none ("": none within ``wait_s``), or the call's error."""
        try:
            return self._incoming.get(wait_s)
        except TimeoutError:
            return ""

    def send_request(self, request: Settlement) -> Future[Any]:
        """Send an answer, a refusal or a return; the future has the server's reply."""
        future: Future[Any] = Future()
        with self._lock:
            if self._ended is not None:
                raise self._ended
            self._waiting[request.name] = future
        self._call.write(query_calls.stream_message(request))
        return future

    def give_back(self, query: Query) -> None:
        """Give a query back without waiting for the reply."""
        if self._ended is None:
            self._call.write(query_calls.stream_message(query_calls.give_back(query)))

    def close(self) -> None:
        """End the call: the server gives back held queries."""
        self._heart.stop()
        self._call.finish(CLOSE_S)
        self._call.cancel()
