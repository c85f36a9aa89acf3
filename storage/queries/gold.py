"""Gold questions, put in the place of queries that growth asks, so that nothing tells one from another.

A gold question takes the number and the place of an open query that nobody ever held, which goes on under a new number.
What is said of it as its reason was said of the query that growth asks last. A question that is given back stays open
until somebody is asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import SystemRandom
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Connection,
    Double,
    Integer,
    Select,
    String,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
    update,
)

from quercus.labelling.event import EventKind
from quercus.labelling.gold import as_asked
from quercus.labelling.lifecycle import LEASED, OPEN, HistoryNote, Step
from quercus.specification.bounds import MAX_GOLD
from quercus.storage.inserts import row_insert
from quercus.storage.log import event_log
from quercus.storage.prepared import Prepared
from quercus.storage.queries import history, reading
from quercus.storage.queries.desk import Desk, LeaseRequest
from quercus.storage.schema import AnyRow, log, model, query, query_history

_CHANCE: Final = SystemRandom()
_MODEL: Final = bindparam("of", type_=BigInteger)


def _standing_marks() -> Select[Any]:
    """Select the instances that are gold questions."""
    later = log.alias("later")
    is_newer = and_(
        later.c.model_id == log.c.model_id, later.c.instance == log.c.instance, later.c.gold.is_not(None),
        later.c.kind == EventKind.ADJUDICATION, later.c.sequence > log.c.sequence,
    )  # fmt: skip
    mine = (log.c.model_id == _MODEL, log.c.gold.is_not(None), log.c.kind == EventKind.ADJUDICATION)
    return select(log.c.instance).where(*mine, log.c.label.is_not(None), ~exists().where(is_newer))


def _questions() -> Select[Any]:
    """Select the gold questions that a labeller has not been asked, with the open query of each, if it has one."""
    asker = bindparam("asking", type_=String)
    said, past, live = log.alias("said"), query_history.alias("past"), query.alias("live")
    spoke = and_(said.c.model_id == _MODEL, said.c.instance == log.c.instance, said.c.author == asker)
    passed = and_(
        past.c.model_id == _MODEL, past.c.instance == log.c.instance, past.c.labeller == asker,
        past.c.step == int(Step.SKIPPED),
    )  # fmt: skip
    is_late = query.c.not_before > bindparam("now", type_=Double)
    is_held = and_(
        live.c.model_id == _MODEL, live.c.instance == log.c.instance,
        or_(live.c.state == LEASED, and_(live.c.state == OPEN, live.c.gold.is_(False))),
    )  # fmt: skip
    mine = and_(query.c.model_id == _MODEL, query.c.instance == log.c.instance, query.c.state == OPEN)
    wanted = _standing_marks().add_columns(query.c.number).select_from(log.outerjoin(query, mine))
    free = [~exists().where(each) for each in (spoke, passed, is_held)]
    by_lot = wanted.where(*free, or_(query.c.number.is_(None), query.c.not_before.is_(None), ~is_late))
    return by_lot.order_by(func.random()).limit(bindparam("most", type_=Integer))


_MARKED: Final = Prepared(_standing_marks())
_QUESTIONS: Final = Prepared(_questions())
_OPEN_ONES: Final = reading.select_records().where(
    query.c.model_id == _MODEL, query.c.state == OPEN, query.c.gold.is_(False), query.c.answers == 0
)
_UNHELD: Final = Prepared(
    _OPEN_ONES.where(~history.ever_held(query.c.number, query.c.model_id))
    .order_by(query.c.position, query.c.number)
    .limit(bindparam("most", type_=Integer))
)
"""The first open queries that nobody ever held."""
_LAST: Final = Prepared(
    _OPEN_ONES.order_by(query.c.position.desc(), query.c.number).limit(bindparam("most", type_=Integer))
)
"""The queries that growth asks last."""
_REOPEN: Final = row_insert(
    query,
    (
        "model_id", "number", "instance", "state", "position", "asked", "reason", "tree_version", "answers", "wanted",
        "created_at",
    ),
)  # fmt: skip


def marked_instances(connection: Connection, model_id: int) -> list[int]:
    """Return the instances that are gold questions."""
    return [each.instance for each in _MARKED.run_for_all(connection, of=model_id)]


def mix_in(desk: Desk, request: LeaseRequest, free: Sequence[AnyRow]) -> list[AnyRow]:
    """Return the queries to lease in the place of `free`: each is a gold question with the chance of the policy.

    A labeller is asked no gold question about whose instance the labeller has said something, or which was skipped.
    """
    places = [at for at in range(len(free)) if _CHANCE.random() < desk.policy.gold_share]
    chosen = list(free)
    if not places:
        return chosen
    connection = desk.write()
    questions = _questions_for(connection, desk, request, len(places))
    disguises = _LAST.run_for_all(connection, of=desk.row.id, most=len(places))
    taken = {each.number for each in free}
    most = len(free) + len(places)
    unheld = {each.number: each for each in _UNHELD.run_for_all(connection, of=desk.row.id, most=most)}
    for at, (question, like) in zip(places, zip(questions, disguises, strict=False), strict=False):
        number = question.number
        if number is None:
            own = [free[at].number, *(each for each in unheld if each not in taken)]
            number = next((each for each in own if each in unheld), None)
            if number is None:
                continue
            _make_room(desk, connection, unheld.pop(number), question.instance)
        look = {"position": free[at].position, "asked": like.asked, "reason": like.reason}
        where = (query.c.model_id == desk.row.id, query.c.number == number)
        connection.execute(
            update(query).where(*where).values(gold=True, tree_version=like.tree_version, **look)
        )
        chosen[at] = connection.execute(reading.select_records().where(*where)).one()
        desk.is_reopened = True
    return chosen


def _questions_for(connection: Connection, desk: Desk, request: LeaseRequest, count: int) -> Sequence[AnyRow]:
    """Return up to so many gold questions for a labeller, by lot."""
    only = request.filter
    most = count if only is None else MAX_GOLD
    known = {"of": desk.row.id, "now": desk.now.clock}
    found = _QUESTIONS.run_for_all(connection, **known, asking=request.labeller, most=most)
    if only is None:
        return found
    said = event_log.history_of(connection, desk.row, sorted({each.instance for each in found}))
    size = len(only.classes)
    return [each for each in found if only.accepts(as_asked(said[each.instance], 0, size))][:count]


def _make_room(desk: Desk, connection: Connection, moved: AnyRow, instance: int) -> None:
    """Give the number of an open query to a gold question; the query goes on under a new number."""
    row = desk.row
    where = (query.c.model_id == row.id, query.c.number == moved.number)
    connection.execute(update(query).where(*where).values(instance=instance, gold=True))
    row.query_count += 1
    connection.execute(update(model).where(model.c.id == row.id).values(query_count=row.query_count))
    _REOPEN.run_for_each(connection, [
        {
            "model_id": row.id, "number": row.query_count, "instance": moved.instance, "state": int(OPEN),
            "position": moved.position, "asked": moved.asked, "reason": moved.reason,
            "tree_version": moved.tree_version, "answers": 0, "wanted": moved.wanted, "created_at": desk.now.wall,
        }
    ])  # fmt: skip
    note = HistoryNote(row.query_count, moved.instance, Step.OPENED, OPEN)
    history.write_steps(connection, row.id, [note], desk.now)
