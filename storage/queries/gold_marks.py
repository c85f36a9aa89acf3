"""Writing the marks of gold questions, and reading the marked instances."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from quercus.belief.errors import InvalidInput
from quercus.labelling import checks
from quercus.labelling import gold as rules
from quercus.labelling.answers import LabelledInstance
from quercus.labelling.event import Event
from quercus.labelling.gold import Mark
from quercus.specification.bounds import MAX_GOLD
from quercus.storage.clocks import Clock
from quercus.storage.errors import NotFound
from quercus.storage.log import event_log
from quercus.storage.queries import agenda, statements
from quercus.storage.queries.desk import KnownModel, read_desk
from quercus.storage.queries.gold import marked_instances
from quercus.storage.rows import find_model
from quercus.storage.schema import log


@dataclass(frozen=True, slots=True)
class MarksOutcome:
    """The outcome of marks: newest event of the log, number of marks stored, and of those stored before."""

    committed_sequence: int
    stored: int
    known: int


def append_marks(
    connection: Connection, name: str, author: str, marks: Sequence[Mark], known: KnownModel, clock: Clock
) -> MarksOutcome:
    """Mark instances as gold questions, or take marks back, all or none.

    Open queries about newly marked instances are withdrawn, and so are gold questions whose mark is taken back. Leased
    ones stay with their holders.
    """
    checks.name_text("labeller", author)
    for each in marks:
        checks.comment(each.comment)
    desk = read_desk(connection, name, [], clock)
    row, now = desk.row, desk.now
    known.check_key(row)
    places = event_log.instance_sequences(connection, row.id, [each.instance for each in marks])
    if missing := next((each.instance for each in marks if each.instance not in places), None):
        raise NotFound("instance", f"{name}/{missing}")
    crowd = desk.crowd(known)
    said = event_log.history_of(connection, row, sorted(set(places.values())))
    committed, events = int(row.sequence_committed), list[Event]()
    stored = 0
    for each in marks:
        of = LabelledInstance(
            said[places[each.instance]],
            known.size,
            desk.policy,
            crowd,
            committed + len(events),
            now.clock,
            now.wall,
        )
        more = rules.mark_events(each, author, of)
        said[places[each.instance]].extend(more)
        events += more
        stored += bool(more)
    if events:
        event_log.append_labels(connection, row, events, now)
        if (count := len(marked_instances(connection, row.id))) > MAX_GOLD:
            raise InvalidInput(
                "marks", f"would make {count:,} gold questions, at most {MAX_GOLD:,} are allowed"
            )
        spoken = list(dict.fromkeys(event.instance for event in events))
        is_marked = {place: rules.gold_mark(said[place]) is not None for place in spoken}
        live = statements.live_queries(connection, row, spoken)
        for why, dropped in (
            (rules.MARKED, [each for each in live if is_marked[each.instance] and not each.gold]),
            (rules.UNMARKED, [each for each in live if each.gold and not is_marked[each.instance]]),
        ):
            agenda.drop_queries(connection, row, dropped, why, now)
    return MarksOutcome(committed + len(events), stored, len(marks) - stored)


def marked_histories(connection: Connection, name: str) -> dict[int, list[Event]]:
    """Return all events of each gold question's instance, in the order of the instances."""
    row = find_model(connection, name)
    return event_log.history_of(connection, row, sorted(marked_instances(connection, row.id)))


def newest_gold(connection: Connection, name: str) -> int:
    """Return the number of the newest mark of, or answer to, a gold question; 0 if there is none."""
    mine = (log.c.model_id == find_model(connection, name).id, log.c.gold.is_not(None))
    return connection.execute(select(func.max(log.c.sequence)).where(*mine)).scalar() or 0
