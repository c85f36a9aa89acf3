"""Settling queries. A query is settled once; the same answer again is acknowledged again.

No label is ever edited. A correction is a new event, which replaces all answers to
the instance; to take an answer back is one without a label.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Connection, bindparam, select, update

from quercus.labelling.event import Event, EventKind
from quercus.storage import checks, deferred_writes
from quercus.storage.clocks import Clock, Timestamps
from quercus.storage.deferred_writes import Write
from quercus.storage.errors import FailedPrecondition
from quercus.storage.log import event_log
from quercus.storage.log.statements import Join, append_joint
from quercus.storage.queries import budgets, claims, expiry, history, pending, policies, submitted
from quercus.storage.queries.claims import ClaimedQuery, LeaseClaim
from quercus.storage.queries.history import HistoryNote
from quercus.storage.queries.query_state import SETTLE, columns_of, lifecycle_of, query_update_parameters
from quercus.storage.queries.records import AnswerOutcome, Corrections, Idle, QueryState, Step
from quercus.storage.queries.shared_view import SharedView
from quercus.storage.queries.submitted import AnswerContext, AnswerRule, SubmittedAnswer
from quercus.storage.queries.transitions import Correct, Reply, UndoReply
from quercus.storage.refusals import after_writing
from quercus.storage.rows import lock_model
from quercus.storage.schema import AnyRow, model, query
from quercus.storage.schema import log as log_table

_COUNT = (
    update(model)
    .where(model.c.id == bindparam("counted"))
    .values(
        sequence_committed=model.c.sequence_committed + bindparam("more_events"),
        conflicts=model.c.conflicts + bindparam("more_conflicts"),
        queries_refused=model.c.queries_refused + bindparam("more_refused"),
        queries_answered=model.c.queries_answered + bindparam("more_answered"),
        times_opened=model.c.times_opened + bindparam("more_opened"),
    )
)
SPENT = {
    Idle.SHARE_SPENT: "the share of one labeller in the labelling policy",
    Idle.HOUR_SPENT: "the hourly limit of the labelling policy",
}


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """A correction of the answer to a query, or (no label) its taking back.

    `said` is what the labeller says; `label` is what then holds of the instance, which differs where several answers
    are combined. `among`: the labeller gave one of several answers, the others stay. `pending`: so it is, and the query
    still wants answers, so nothing holds yet. `permitted`: whatever the policy says.
    `declared` False: the reliability was not sent with it.
    """

    labeller: str
    said: bytes | None
    label: bytes | None
    reliability: float = 1.0
    conflict: bool = False
    comment: str = ""
    among: bool = False
    pending: bool = False
    permitted: bool = False
    declared: bool = True

    def check(self) -> None:
        """Raise `InvalidInput` where something is out of bounds."""
        checks.name_text("labeller", self.labeller)
        checks.reliability(self.reliability)
        checks.comment(self.comment)


@dataclass(frozen=True, slots=True)
class AmendContext:
    """The state of the locked model that a rule for a correction needs.

    Attributes
    ----------
    key, number : int
        `ModelRecord.key`, and the number of the query.
    settled : bool
        Whether the query is answered or refused.
    history : sequence of Event
        All events about the instance, oldest first.
    """

    key: int
    number: int
    settled: bool
    history: Sequence[Event]


AmendRule: TypeAlias = Callable[[AmendContext], AnswerChange]
"""Makes the correction of the present answers. It may raise `FailedPrecondition` or `InvalidInput`."""


def settle_query(
    connection: Connection,
    claim: LeaseClaim,
    reply: SubmittedAnswer | AnswerRule,
    clock: Clock,
    join: Join | None = None,
) -> AnswerOutcome:
    """Append the reply to the log and settle the query, or open it again for the next answer.

    `join` combines all labels of the instance, if some were stated.
    """
    submitted.check(reply)
    held = claims.look_up(connection, claim, clock)

    def answer_context() -> AnswerContext:
        said_before = event_log.history_of(connection, held.model, [held.query.instance])
        policy = policies.policy_of(connection, held.model.id)
        return AnswerContext.of(held, policy, said_before[held.query.instance])

    said = submitted.reply_in(reply, answer_context)
    if held.given.sequence:
        return _acknowledge_again(connection, held, said)
    return _settle_claimed(connection, held, said, join)


def settle_together(
    connection: Connection,
    seen: SharedView,
    claim: LeaseClaim,
    reply: SubmittedAnswer | AnswerRule,
    join: Join | None = None,
) -> AnswerOutcome | None:
    """Settle a query like `settle_query`, from rows read for several calls; None if they do not suffice."""
    submitted.check(reply)
    held = seen.claimed_query(claim)
    if held is None or held.given.sequence:
        return None

    def answer_context() -> AnswerContext:
        return AnswerContext.of(held, seen.policy, seen.said_of(connection, held.query.instance))

    said = submitted.reply_in(reply, answer_context)
    if said.pending is not None:  # what it settles was not read
        return None
    answered = _settle_claimed(connection, held, said, join)
    seen.note_said(held, answered, 1 if said.combined is None else 2, refused=said.label is None)
    return answered


def _settle_claimed(
    connection: Connection, held: ClaimedQuery, said: SubmittedAnswer, join: Join | None
) -> AnswerOutcome:
    now, number = held.now, held.query.number
    refused = said.label is None
    settled = QueryState.REFUSED if refused else QueryState.ANSWERED
    lifecycle = held.lifecycle_after(Reply(held.lease, settled if said.settles else QueryState.OPEN))
    if not refused and held.lifecycle.state is QueryState.OPEN:
        _check_budgets_of_late_answer(connection, held, now)
    over = lifecycle.state is not QueryState.OPEN
    said_rows = _reply_rows(held, said, now)
    own = int(held.model.sequence_committed) + 1  # the labeller's own label comes before the combination
    sequence = int(held.model.sequence_committed) + len(said_rows)
    columns = columns_of(lifecycle, held.given.labeller if over else None)
    columns |= {"sequence": sequence if over else None}
    kind = Step.REFUSED if refused else Step.ANSWERED
    note = HistoryNote(
        number, held.query.instance, kind, lifecycle.state, held.given.labeller, held.given.lease.token,
        sequence=own, why="" if over else "wants more answers",
    )  # fmt: skip
    deferred_writes.write_last(
        connection,
        Write(event_log.ADD, said_rows),
        Write(_COUNT, [_counter_parameters(held, said, len(said_rows), opened=not over)], counts="counted"),
        Write(SETTLE, [query_update_parameters("settle", held.model.id, number, columns)]),
        Write(history.ADD, [history.step_parameters(held.model.id, note, now)]),
    )
    with after_writing():
        if said.settles and not refused and held.query.is_spoken_of:
            deferred_writes.send_waiting(connection)
            _join_answers(connection, held.model, held.query.instance, sequence, join, now)
        if said.pending is not None:
            deferred_writes.send_waiting(connection)
            pending.settle_pending(connection, held.model, said.pending, now)
    return AnswerOutcome(own, repeated=False, conflict=said.conflict, settled=over)


def amend_answer(
    connection: Connection,
    name: str,
    number: int,
    amendment: AnswerChange | AmendRule,
    clock: Clock,
    join: Join | None = None,
) -> AnswerOutcome:
    """Append a correction; the policy says who may do so. The same again is acknowledged again."""
    if isinstance(amendment, AnswerChange):
        amendment.check()
    row = lock_model(connection, name)
    now = clock()
    expiry.write_expired(connection, row.id, now)
    found = claims.find_query(connection, row, number)
    settled = found.state in (QueryState.ANSWERED, QueryState.REFUSED)
    said = event_log.instance_history(connection, name, [found.instance])[found.instance]
    change = _change_of(amendment, AmendContext(row.id, number, settled, said))
    events = [event for event in said if event.query == number]
    own = _own_words(events, change.labeller)
    # an estimated reliability may be another by now
    same = own is not None and own.label == change.said
    if own is not None and same and (own.reliability == change.reliability or not change.declared):
        return _done_before(events, own)
    if not change.permitted:
        _check_may_amend(policies.policy_of(connection, row.id).corrections, change.labeller, events)
    if change.pending == settled:
        raise FailedPrecondition(
            "it was settled at this moment: look again" if settled else "it is not answered"
        )
    lifecycle = claims.lifecycle_after(lifecycle_of(found), _event_of_change(change, own), now)
    sequence = _append_amendment(connection, row, found, change, now)
    if not change.pending:
        _join_answers(connection, row, found.instance, sequence, join, now)
    where = claims.is_query(query, row.id, number)
    connection.execute(update(query).where(*where).values(columns_of(lifecycle, found.labeller)))
    step = Step.UNDONE if change.said is None else Step.CORRECTED
    note = HistoryNote(
        number,
        found.instance,
        step,
        lifecycle.state,
        change.labeller,
        sequence=sequence,
        why=change.comment[:200],
    )
    history.write_steps(connection, row.id, [note], now)
    return AnswerOutcome(
        sequence, repeated=False, conflict=change.conflict, settled=lifecycle.state is QueryState.ANSWERED
    )


def _change_of(amendment: AnswerChange | AmendRule, context: AmendContext) -> AnswerChange:
    """Return the correction itself, or the result of the rule for the context."""
    if isinstance(amendment, AnswerChange):
        return amendment
    change = amendment(context)
    change.check()
    return change


def _event_of_change(change: AnswerChange, own: Event | None) -> Correct | UndoReply:
    """Return the event for the query; `own` is the labeller's last reply to it."""
    if change.said is not None:
        return Correct(again=own is not None and own.label is None)
    return UndoReply(every=not change.pending and change.label is None)


def _acknowledge_again(connection: Connection, held: ClaimedQuery, said: SubmittedAnswer) -> AnswerOutcome:
    columns = (log_table.c.label, log_table.c.reliability, log_table.c.conflict)
    sequence = held.given.sequence
    mine = (log_table.c.model_id == held.model.id, log_table.c.sequence == sequence)
    label, reliability, conflict = connection.execute(select(*columns).where(*mine)).one()
    if label == said.label and (reliability == said.reliability or not said.declared):
        settled = held.query.state in (QueryState.ANSWERED, QueryState.REFUSED)
        return AnswerOutcome(sequence, repeated=True, conflict=conflict, settled=settled)
    if None not in (label, said.label):
        raise FailedPrecondition("already answered, with another label or reliability")
    raise FailedPrecondition("already refused" if label is None else "already answered")


def _check_budgets_of_late_answer(connection: Connection, held: ClaimedQuery, now: Timestamps) -> None:
    """Check the budget: the lease has expired, so another labeller may have used it meanwhile."""
    policy = policies.policy_of(connection, held.model.id)
    leases = expiry.count_leases(connection, held.model.id, now, held.given.labeller)
    room = budgets.remaining_budget(connection, held.model, policy, held.given.labeller, leases, now)
    if room.total <= 0:
        raise FailedPrecondition(
            f"{held.expiry_text}, and the budget of {held.model.budget} is used up since: "
            f"{held.model.queries_answered} queries are answered and {room.leased} leased"
        )
    if room.idle in SPENT:
        raise FailedPrecondition(f"{held.expiry_text}, and {SPENT[room.idle]} is used up since")


def _reply_rows(held: ClaimedQuery, said: SubmittedAnswer, now: Timestamps) -> list[dict[str, Any]]:
    """The rows of the log: the reply, and the combined answer behind it."""
    opinion = not said.settles or said.combined is not None
    kind = EventKind.OPINION if opinion else EventKind.REFUSAL if said.label is None else EventKind.ANSWER
    about: dict[str, Any] = {
        "model_id": held.model.id,
        "instance": held.query.instance,
        "query": held.query.number,
        "created_at": now.wall,
        "clock": now.clock,
        "conflict": said.conflict,
    }
    sequence = int(held.model.sequence_committed) + 1
    own = event_log.event_parameters(
        sequence=sequence, kind=int(kind), label=said.label, author=held.given.labeller,
        reliability=float(said.reliability), asked=None if opinion else held.query.asked, comment=said.comment or None,
        took_s=max(0.0, now.clock - held.given.since) if said.took_s is None else float(said.took_s),
        shown=said.shown or None, assumed=None if said.declared else True, **about,
    )  # fmt: skip
    if said.combined is None:
        return [own]
    return [
        own,
        pending.combined_row(held.query, sequence + 1, said.combined, now, conflict=said.conflict),
    ]


def _counter_parameters(
    held: ClaimedQuery, said: SubmittedAnswer, events: int, *, opened: bool
) -> dict[str, Any]:
    return {
        "counted": held.model.id,
        "more_events": events,
        "more_conflicts": int(said.conflict and said.settles),
        "more_refused": int(said.label is None),
        "more_answered": int(said.label is not None),
        "more_opened": int(opened),
    }


def _join_answers(
    connection: Connection, row: AnyRow, instance: int, sequence: int, join: Join | None, now: Timestamps
) -> None:
    last, conflict = append_joint(connection, row, instance, sequence, join, now)
    if last > sequence:
        counts = {"sequence_committed": last, "conflicts": model.c.conflicts + int(conflict)}
        connection.execute(update(model).where(model.c.id == row.id).values(counts))


def _own_words(events: list[Event], labeller: str) -> Event | None:
    """Return the newest answer or correction of a labeller to a query; None where it is a refusal.

    Where it gave one of several answers these are its opinions; what follows from all of them bears its name too.
    """
    mine = [event for event in events if event.author == labeller]
    opinions = [event for event in mine if event.kind is EventKind.OPINION]
    others = [event for event in mine if event.kind in (EventKind.ANSWER, EventKind.CORRECTION)]
    if mine and mine[-1].kind is EventKind.REFUSAL:
        return None
    return next(reversed(opinions or others), None)


def _done_before(events: list[Event], own: Event) -> AnswerOutcome:
    """Return the outcome of the first time: its own event, or the correction that settled the query with it."""
    together = (event for event in events if (event.sequence, event.author) == (own.sequence + 1, own.author))
    last = next((event for event in together if event.kind is EventKind.CORRECTION), own)
    return AnswerOutcome(last.sequence, repeated=True, conflict=last.conflict)


def _check_may_amend(who: Corrections, labeller: str, events: list[Event]) -> None:
    if who is Corrections.NOBODY:
        raise FailedPrecondition("the labelling policy of this model allows no corrections")
    authors = {event.author for event in events}
    if who is Corrections.OWN and labeller not in authors:
        raise FailedPrecondition(
            f"{labeller} did not answer it, and only labellers who answered may correct it"
        )


def _append_amendment(
    connection: Connection, row: AnyRow, found: AnyRow, change: AnswerChange, now: Timestamps
) -> int:
    about: dict[str, Any] = {
        "instance": found.instance,
        "query": found.number,
        "created_at": now.wall,
        "clock": now.clock,
    }
    words = {"author": change.labeller, "comment": change.comment or None, "model_id": row.id}
    sequence = int(row.sequence_committed)
    if change.pending or change.among:  # one of several: the labeller's own words, then what holds
        sequence += 1
        event_log.insert_event(
            connection, sequence=sequence, kind=int(EventKind.OPINION), label=change.said,
            reliability=change.reliability, conflict=False, assumed=None if change.declared else True,
            **words, **about,
        )  # fmt: skip
        words = words | {"comment": None}
    if change.pending:
        connection.execute(update(model).where(model.c.id == row.id).values(sequence_committed=sequence))
        return sequence
    sequence += 1
    event_log.insert_event(
        connection, sequence=sequence, kind=int(EventKind.CORRECTION), label=change.label,
        reliability=1.0 if change.among else change.reliability, conflict=change.conflict,
        assumed=None if change.among or change.declared else True, **words, **about,
    )  # fmt: skip
    undone = found.state == QueryState.REFUSED and change.said is None
    counts = {
        "sequence_committed": sequence,
        "conflicts": row.conflicts + int(change.conflict),
        "queries_refused": row.queries_refused - int(undone),
    }
    connection.execute(update(model).where(model.c.id == row.id).values(counts))
    return sequence
