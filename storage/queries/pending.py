"""Queries that have some of several answers when the budget is spent: they are settled with those.

Nobody is asked any more then, and no lease is left (answered and leased queries together never exceed the budget), so
no query can get another answer. The commit that spends the budget, by its last answer or by lowering it, settles all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, update

from quercus.labelling.event import Event, EventKind
from quercus.storage.clocks import Timestamps
from quercus.storage.log import event_log
from quercus.storage.log.statements import Join, append_joint
from quercus.storage.queries import history
from quercus.storage.queries.claims import lifecycle_after
from quercus.storage.queries.history import HistoryNote
from quercus.storage.queries.query_state import SETTLE, columns_of, lifecycle_of, query_update_parameters
from quercus.storage.queries.records import QueryState, Step
from quercus.storage.queries.transitions import NoMoreAnswers
from quercus.storage.schema import AnyRow, model, query

WHY = "the budget is spent"


@dataclass(frozen=True, slots=True)
class CombinedAnswer:
    """The combination of several answers to a settled query; `author` names the labellers."""

    label: bytes
    author: str


@dataclass(frozen=True, slots=True)
class PendingContext:
    """A query that has some of several answers.

    Attributes
    ----------
    key, number : int
        `ModelRecord.key`, and the number of the query.
    history : sequence of Event
        All events about the instance, oldest first.
    """

    key: int
    number: int
    history: Sequence[Event]


@dataclass(frozen=True, slots=True)
class PendingRule:
    """Settles queries with the answers that they have.

    Attributes
    ----------
    combine : callable
        Returns the combination of the answers to one query, and whether it conflicts with what was known before. It may
        raise `FailedPrecondition`.
    join : callable or None
        Combines all labels of an instance, if some were stated.
    """

    combine: Callable[[PendingContext], tuple[CombinedAnswer, bool]]
    join: Join | None = None


def settle_pending(connection: Connection, row: AnyRow, rule: PendingRule, now: Timestamps) -> None:
    """Settle the open queries that have answers, in order of number; the model is locked, its budget spent."""
    has_some = (query.c.model_id == row.id, query.c.state == QueryState.OPEN, query.c.answers > 0)
    pending = connection.execute(select(query).where(*has_some).order_by(query.c.number)).all()
    if not pending:
        return
    said = event_log.history_of(connection, row, [each.instance for each in pending])
    mine = model.c.id == row.id
    sequence = int(connection.execute(select(model.c.sequence_committed).where(mine)).scalar_one())
    conflicts, settled_rows, notes = 0, [], []
    for each in pending:
        combined, conflict = rule.combine(PendingContext(row.id, each.number, said[each.instance]))
        settled = sequence + 1
        event_log.ADD.run(connection, [combined_row(each, settled, combined, now, conflict=conflict)])
        sequence, joint_conflict = append_joint(connection, row, each.instance, settled, rule.join, now)
        conflicts += conflict + joint_conflict
        after = lifecycle_after(lifecycle_of(each), NoMoreAnswers(), now)
        columns = columns_of(after) | {"sequence": settled}
        settled_rows.append(query_update_parameters("settle", row.id, each.number, columns))
        notes.append(
            HistoryNote(each.number, each.instance, Step.SETTLED, after.state, sequence=settled, why=WHY)
        )
    SETTLE.run(connection, settled_rows)
    history.write_steps(connection, row.id, notes, now)
    counts = {"sequence_committed": sequence, "conflicts": model.c.conflicts + conflicts}
    connection.execute(update(model).where(mine).values(counts))


def combined_row(
    of: AnyRow, sequence: int, combined: CombinedAnswer, now: Timestamps, *, conflict: bool
) -> dict[str, Any]:
    """Return the row of the log with the combination of the answers to a query, a row of `query`."""
    return event_log.event_parameters(
        model_id=of.model_id, sequence=sequence, kind=int(EventKind.ANSWER), instance=of.instance, query=of.number,
        label=combined.label, author=combined.author, reliability=1.0, conflict=conflict,
        asked=of.asked, created_at=now.wall, clock=now.clock,
    )  # fmt: skip
