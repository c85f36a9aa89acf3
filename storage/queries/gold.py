"""Gold questions, mixed among the queries of growth so that labellers cannot tell them apart.

A gold question takes the position of an open query; all queries after it move by one. It takes the number of an open
query that nobody ever held and that is asked later; that query gets a new number. Its reason is copied from a query
with a similar row that is asked soon: growth asks about the rows of which it is least sure, and the marked row is
seldom one of them, so a reason of its own would give it away. A gold question that is given back is asked again in its
turn, like any query, as long as no newer tree has chosen queries; after that, it is drawn at random again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from random import SystemRandom
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Connection,
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

from quercus.labelling.event import Event, EventKind
from quercus.labelling.gold import as_known_to, most_alike
from quercus.labelling.history import stored_values
from quercus.labelling.lifecycle import LEASED, OPEN, HistoryNote, Step
from quercus.storage.log import event_log
from quercus.storage.prepared import Prepared
from quercus.storage.queries import history, reading
from quercus.storage.queries.desk import IS_READY, Desk, LeaseRequest
from quercus.storage.queries.query_state import insert_opened
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


def _unknown_to(instance: Any) -> tuple[Any, Any]:
    """Return the conditions that the labeller `asking` neither labelled an instance nor skipped a query about it."""
    asker = bindparam("asking", type_=String)
    said, past = log.alias("said"), query_history.alias("past")
    spoke = and_(said.c.model_id == _MODEL, said.c.instance == instance, said.c.author == asker)
    passed = and_(
        past.c.model_id == _MODEL, past.c.instance == instance, past.c.labeller == asker,
        past.c.step == int(Step.SKIPPED),
    )  # fmt: skip
    return ~exists().where(spoke), ~exists().where(passed)


def _questions() -> Select[Any]:
    """Select the gold questions that a labeller may be asked, in random order: nobody holds them or has answered them.

    One that was given back has a number; the others have none.
    """
    is_live = and_(
        query.c.model_id == _MODEL, query.c.instance == log.c.instance, query.c.state <= int(LEASED)
    )
    is_free = or_(query.c.number.is_(None), and_(query.c.state == OPEN, query.c.answers == 0, IS_READY))
    wanted = _standing_marks().add_columns(query.c.number).select_from(log.outerjoin(query, is_live))
    wanted = wanted.where(*_unknown_to(log.c.instance), is_free)
    return wanted.order_by(func.random())


def _returned() -> Select[Any]:
    """Select the gold questions that were given back, and that a labeller may be asked again in their turn.

    They have some of several answers, or no newer tree was published since they were asked. After a newer tree, clients
    exchange unseen queries for new ones; if old gold questions came back then too, there would be too many.
    """
    stays = or_(query.c.answers > 0, query.c.tree_version == bindparam("version", type_=BigInteger))
    mine = (query.c.model_id == _MODEL, query.c.state == OPEN, query.c.gold.is_(True), stays, IS_READY)
    return reading.select_records().where(*mine, *_unknown_to(query.c.instance))


_MARKED: Final = Prepared(_standing_marks())
_QUESTIONS: Final = Prepared(_questions())
_RETURNED: Final = Prepared(_returned())
_NEXT: Final = (
    reading.select_records()
    .where(query.c.model_id == _MODEL, query.c.state == OPEN, query.c.gold.is_(False), query.c.answers == 0)
    .order_by(query.c.position, query.c.number)
    .limit(bindparam("most", type_=Integer))
)
_OPEN: Final = Prepared(_NEXT)
"""The first open queries of growth."""
_UNHELD: Final = Prepared(_NEXT.where(~history.ever_held(query.c.number, query.c.model_id)))
"""The first open queries of growth that nobody ever held."""
_NOT_YET: Final = -1
"""Stands for the number of a query that does not exist yet."""
_LIKE: Final = 8
"""Number of the next queries whose reasons and numbers a gold question may get."""


def marked_instances(connection: Connection, model_id: int) -> list[int]:
    """Return the instances that are gold questions."""
    return [each.instance for each in _MARKED.run_for_all(connection, of=model_id)]


def with_returned(desk: Desk, request: LeaseRequest, free: Sequence[AnyRow]) -> list[AnyRow]:
    """Return free queries together with the gold questions that come back, in order."""
    known = {"of": desk.row.id, "now": desk.now.clock, "asking": request.labeller}
    returned = _RETURNED.run_for_all(desk.write(), **known, version=desk.row.tree_version)
    found = _passing(desk, request, returned)
    return sorted([*free, *found], key=lambda each: (each.answers == 0, each.position, each.number))


def mix_in(desk: Desk, request: LeaseRequest, free: Sequence[AnyRow]) -> list[AnyRow]:
    """Return as many queries to lease as are `free`, with gold questions among them at the rate of the policy.

    A labeller is not asked a gold question about an instance that the labeller has labelled or skipped.
    """
    places = [_CHANCE.random() < desk.policy.gold_share for _ in free]
    connection, row = desk.write(), desk.row
    mine = query.c.model_id == row.id
    asker = {"asking": request.labeller, "now": desk.now.clock}
    found = _QUESTIONS.run_for_all(connection, of=row.id, **asker) if any(places) else []
    taken = {each.number for each in free}
    questions = _passing(desk, request, [each for each in found if each.number not in taken])
    numbers, soon = list[AnyRow](), list[AnyRow]()
    if questions:
        most = 2 * len(free) + _LIKE
        numbers, soon = (
            _later_than(free, each.run_for_all(connection, of=row.id, most=most)) for each in (_UNHELD, _OPEN)
        )
    is_asked = {each.number: each.gold for each in free}
    rest, chosen = deque(is_asked), list[int]()
    for is_place in places:
        left = [each.number for each in numbers if each.number not in chosen]
        question = next((each for each in questions if left or (soon and each.number)), None)
        if not is_place or question is None or is_asked[rest[0]]:
            chosen.append(rest.popleft())
            continue
        questions.remove(question)
        like = _most_alike(desk, connection, question.instance, soon)
        head = select(query.c.position).where(mine, query.c.number == rest[0])
        place = connection.execute(head).scalar_one()
        look = {"position": place, "asked": like.asked, "reason": like.reason}
        behind = (mine, query.c.state == OPEN, query.c.position >= place)
        connection.execute(update(query).where(*behind).values(position=query.c.position + 1))
        number = question.number
        if number is None:
            number = _CHANCE.choice(left)
            renamed = _give_number(desk, connection, number, {"instance": question.instance, "gold": True})
            rest = deque(renamed if each == number else each for each in rest)
            is_asked[renamed] = False
        connection.execute(update(query).where(mine, query.c.number == number).values(look))
        chosen.append(number)
        desk.is_reopened = True
    # a reason with the version of an older tree would show that the tree learnt nothing from the answer before
    old = (mine, query.c.number.in_(chosen), query.c.tree_version != row.tree_version)
    connection.execute(update(query).where(*old).values(tree_version=row.tree_version))
    records = connection.execute(reading.select_records().where(mine, query.c.number.in_(chosen)))
    by_number = {each.number: each for each in records}
    return [by_number[number] for number in chosen]


def _later_than(free: Sequence[AnyRow], found: Sequence[AnyRow]) -> list[AnyRow]:
    """Return the open queries that are asked after those in `free`, or if there are none, whatever there is."""
    taken = {each.number for each in free}
    after = [each for each in found if each.number not in taken]
    return after[len(free) :] or after or list(found)


def _passing(desk: Desk, request: LeaseRequest, questions: Sequence[AnyRow]) -> list[AnyRow]:
    """Return the gold questions whose instances pass the filter of a request."""
    only = request.filter
    if only is None or not questions:
        return list(questions)
    said = event_log.history_of(desk.connection, desk.row, sorted({each.instance for each in questions}))
    size, rule = len(only.classes), desk.policy.combination

    def look(question: AnyRow) -> list[Event]:
        return as_known_to("", said[question.instance], size, rule, question.number or _NOT_YET)

    return [each for each in questions if only.accepts(look(each))]


def _most_alike(desk: Desk, connection: Connection, instance: int, others: Sequence[AnyRow]) -> AnyRow:
    """Return the query whose row is most similar to that of an instance."""
    said = event_log.history_of(connection, desk.row, sorted({instance, *(each.instance for each in others)}))
    rows = [stored_values(said[each.instance][0]) for each in others]
    return others[most_alike(stored_values(said[instance][0]), rows)]


def _give_number(desk: Desk, connection: Connection, number: int, values: Mapping[str, Any]) -> int:
    """Give the number of an open query to a gold question, and return the new number of that query."""
    row = desk.row
    where = (query.c.model_id == row.id, query.c.number == number)
    moved = connection.execute(select(query).where(*where)).one()
    connection.execute(update(query).where(*where).values(values))
    row.query_count += 1
    connection.execute(update(model).where(model.c.id == row.id).values(query_count=row.query_count))
    again = (row.query_count, moved.instance, moved.position, moved.asked, moved.reason, moved.tree_version)
    insert_opened(connection, row.id, [again], desk.now)
    note = HistoryNote(row.query_count, moved.instance, Step.OPENED, OPEN)
    history.write_steps(connection, row.id, [note], desk.now)
    return int(row.query_count)
