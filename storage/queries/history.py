"""The history of queries: one row per step, never changed. It also tells the lease that a token was given for."""

import hashlib
from collections import Counter
from collections.abc import Sequence

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    and_,
    exists,
    func,
    or_,
    select,
)

from quercus.labelling import checks
from quercus.labelling.lifecycle import GrantedLease, HistoryNote, LeaseRecord, QueryState, Step
from quercus.storage.clocks import Timestamps
from quercus.storage.inserts import insert_rows
from quercus.storage.queries.records import HistoryRow, LabellerCounts
from quercus.storage.rows import count_opening, find_model
from quercus.storage.schema import AnyRow, each_of, log, query, query_history

NEWEST_TIMES = 1000
GIVEN_UP = {Step.RELEASED, Step.SKIPPED, Step.POSTPONED, Step.EVICTED}
SETTLING_STEPS = {Step.ANSWERED, Step.REFUSED}


def add_steps(connection: Connection, model_id: int, notes: Sequence[HistoryNote], now: Timestamps) -> None:
    """Add steps, in order; the caller counts opened queries (`write_steps` does so)."""
    columns = (
        "model_id", "number", "instance", "step", "state", "labeller", "token",
        "until", "sequence", "why", "clock", "at",
    )  # fmt: skip
    rows = [
        (
            model_id, note.number, note.instance, int(note.step), int(note.state), note.labeller, note.token,
            note.until, note.sequence, note.why or None, now.clock, now.wall,
        )
        for note in notes
    ]  # fmt: skip
    insert_rows(connection, query_history, columns, rows)


def write_steps(connection: Connection, model_id: int, notes: Sequence[HistoryNote], now: Timestamps) -> None:
    """Add steps, in order, and note if any of them opens a query."""
    add_steps(connection, model_id, notes, now)
    if any(note.state is QueryState.OPEN for note in notes):
        count_opening(connection, model_id)


def granted_lease(rows: Sequence[AnyRow], token: str) -> GrantedLease:
    """Return the lease of a token.

    Parameters
    ----------
    rows : sequence of rows
        The steps by that token, in order, each with the columns `given_*` and `has_answered`.
    token : str
    """
    steps = {Step(row.given_step) for row in rows}
    ends = max(row.given_until for row in rows if row.given_step in (Step.LEASED, Step.EXPIRED))
    said = next((row.given_sequence for row in reversed(rows) if row.given_step in SETTLING_STEPS), 0)
    used = bool(steps & SETTLING_STEPS) or rows[0].has_answered
    lease = LeaseRecord(token, ends, bool(steps & GIVEN_UP), used)
    return GrantedLease(lease, rows[0].given_labeller, rows[0].given_clock, said or 0)


def answered_by_another_lease(given: FromClause) -> ColumnElement[bool]:
    """Return the condition that the labeller of a step answered the query by another lease, so may not answer again."""
    past = query_history.alias("past")
    same = [past.c[name] == given.c[name] for name in ("model_id", "number", "labeller")]
    return exists(select(1).where(*same, past.c.token != given.c.token, _still_answered(past)))


def lease_holder(connection: Connection, model_id: int, number: int, token: str) -> str:
    """Return the labeller who got a token for a query; empty if nobody did."""
    mine = (query_history.c.model_id == model_id, query_history.c.number == number)
    wanted = select(query_history.c.labeller).where(*mine, query_history.c.token == token)
    return connection.execute(wanted.limit(1)).scalar() or ""


def passed_over(
    model_id: ColumnElement[int], labeller: ColumnElement[str], of: FromClause = query
) -> ColumnElement[bool]:
    """Return the condition that a labeller skipped the instance of a query, or gave one of its answers."""
    past = query_history.alias("past")
    mine = and_(past.c.model_id == model_id, past.c.labeller == labeller)
    return exists(select(1).where(mine, passes_over(past, of)))


def passes_over(past: FromClause, of: FromClause) -> ColumnElement[bool]:
    """Return the condition that a step of a labeller skips the instance of a query, or answers the query."""
    answered = and_(past.c.number == of.c.number, _still_answered(past))
    return and_(past.c.instance == of.c.instance, or_(past.c.step == int(Step.SKIPPED), answered))


def _still_answered(past: FromClause) -> ColumnElement[bool]:
    """Return the condition that a step is an answer which its labeller has not taken back."""
    later = query_history.alias("later")
    same = [later.c[name] == past.c[name] for name in ("model_id", "number", "labeller")]
    undone = select(1).where(*same, later.c.id > past.c.id, each_of(later.c.step) == int(Step.UNDONE))
    return and_(each_of(past.c.step) == int(Step.ANSWERED), ~exists(undone))


def answers_since(connection: Connection, model_id: int, clock: float) -> list[float]:
    """Return the times of answers after `clock`, oldest first."""
    mine = (query_history.c.model_id == model_id, query_history.c.step == int(Step.ANSWERED))
    wanted = select(query_history.c.clock).where(*mine, query_history.c.clock > clock)
    return [float(found) for found in connection.execute(wanted.order_by(query_history.c.clock)).scalars()]


def count_answers(connection: Connection, model_id: int, labeller: str) -> int:
    """Return the number of answers of one labeller, including those taken back."""
    mine = (query_history.c.model_id == model_id, query_history.c.labeller == labeller)
    wanted = select(func.count()).where(*mine, query_history.c.step == int(Step.ANSWERED))
    return int(connection.execute(wanted).scalar_one())


def last_leased(connection: Connection, labeller: str) -> dict[int, int]:
    """Return the id of the newest step that leased a query to this labeller, by model id."""
    mine = (query_history.c.labeller == labeller, query_history.c.step == int(Step.LEASED))
    wanted = select(query_history.c.model_id, func.max(query_history.c.id)).where(*mine)
    return {
        int(model): int(last) for model, last in connection.execute(wanted.group_by(query_history.c.model_id))
    }


def read_page(
    connection: Connection, name: str, number: int | None, after: int, limit: int
) -> list[HistoryRow]:
    """Return the steps of one query of a model, or of all its queries, after row `after`."""
    checks.at_least("limit", limit, 1)
    wanted = select(query_history).where(
        query_history.c.model_id == find_model(connection, name).id, query_history.c.id > after
    )
    if number is not None:
        wanted = wanted.where(query_history.c.number == number)
    return [
        _history_record(row) for row in connection.execute(wanted.order_by(query_history.c.id).limit(limit))
    ]


def labeller_counts(connection: Connection, name: str, now: Timestamps) -> list[LabellerCounts]:
    """Return the counts of each labeller of a model, in order of name."""
    row = find_model(connection, name)
    mine = (query_history.c.model_id == row.id, query_history.c.labeller.is_not(None))
    counts = select(query_history.c.labeller, query_history.c.step, func.count()).where(*mine)
    found: dict[str, Counter[Step]] = {}
    for labeller, step, count in connection.execute(
        counts.group_by(query_history.c.labeller, query_history.c.step)
    ):
        found.setdefault(labeller, Counter())[Step(step)] = count
    held = _held_by_labeller(connection, row, now)
    return [
        LabellerCounts(
            labeller,
            answered=steps[Step.ANSWERED],
            refused=steps[Step.REFUSED],
            skipped=steps[Step.SKIPPED],
            postponed=steps[Step.POSTPONED],
            expired=steps[Step.EXPIRED],
            corrected=steps[Step.CORRECTED],
            undone=steps[Step.UNDONE],
            held=held.get(labeller, 0),
            times_s=_answer_times(connection, row, labeller),
        )
        for labeller, steps in sorted(found.items())
    ]


def _held_by_labeller(connection: Connection, row: AnyRow, now: Timestamps) -> dict[str, int]:
    live = (query.c.model_id == row.id, query.c.state == QueryState.LEASED, query.c.ends > now.clock)
    wanted = select(query.c.labeller, func.count()).where(*live).group_by(query.c.labeller)
    return {str(labeller): int(count) for labeller, count in connection.execute(wanted)}


def _answer_times(connection: Connection, row: AnyRow, labeller: str) -> tuple[float, ...]:
    said = query_history
    same = and_(log.c.model_id == said.c.model_id, log.c.sequence == said.c.sequence)
    mine = (said.c.model_id == row.id, said.c.labeller == labeller, said.c.step == int(Step.ANSWERED))
    wanted = select(log.c.took_s).select_from(said.join(log, same)).where(*mine, log.c.took_s.is_not(None))
    newest = wanted.order_by(said.c.id.desc()).limit(NEWEST_TIMES)
    return tuple(float(took) for took in connection.execute(newest).scalars())


def _history_record(row: AnyRow) -> HistoryRow:
    return HistoryRow(
        id=row.id,
        query=row.number,
        instance=row.instance,
        step=Step(row.step),
        state=QueryState(row.state),
        labeller=row.labeller or "",
        lease=lease_name(row.token),
        clock=row.clock,
        at=row.at,
        until=row.until,
        sequence=row.sequence or 0,
        why=row.why or "",
    )


def lease_name(token: str | None) -> str:
    """Return a name for a lease that can be shown, because it is not the token."""
    return hashlib.sha256(token.encode()).hexdigest()[:12] if token else ""


def ever_held(numbers: ColumnElement[int], model_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition that a query was ever leased."""
    past = query_history.alias("past")
    mine = (past.c.model_id == model_id, past.c.number == numbers, each_of(past.c.step) == int(Step.LEASED))
    return exists(select(1).where(*mine))
