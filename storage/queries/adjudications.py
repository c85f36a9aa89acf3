"""Writing adjudications, and finding the instances that several labellers have labelled."""

from collections.abc import Sequence

from sqlalchemy import Connection, select

from quercus.labelling import adjudication as rules
from quercus.labelling import checks
from quercus.labelling.adjudication import WHY_ADJUDICATED, Adjudication, AdjudicationOutcome
from quercus.labelling.disputes import first_shared
from quercus.labelling.event import SHARED, Event
from quercus.storage.clocks import Clock
from quercus.storage.errors import NotFound
from quercus.storage.log import event_log
from quercus.storage.queries import agenda, statements
from quercus.storage.queries.desk import KnownModel, read_desk
from quercus.storage.rows import find_model
from quercus.storage.schema import log


def append_adjudication(
    connection: Connection, name: str, identifier: str, given: Adjudication, known: KnownModel, clock: Clock
) -> AdjudicationOutcome:
    """Append an adjudication of an instance, by its id; one that is repeated is acknowledged again."""
    checks.name_text("labeller", given.labeller)
    checks.comment(given.comment)
    desk = read_desk(connection, name, [], clock)
    row = desk.row
    known.check_key(row)
    place = event_log.instance_sequences(connection, row.id, [identifier]).get(identifier)
    if place is None:
        raise NotFound("instance", f"{name}/{identifier}")
    outcome, events = rules.adjudicate(given, desk.labelled(place, known, desk.crowd(known)))
    if events:
        event_log.append_labels(connection, row, events, desk.now)
        asked = statements.live_queries(connection, row, [place])
        asked = [each for each in asked if not each.gold]
        agenda.drop_queries(connection, row, asked, WHY_ADJUDICATED, desk.now)
    return outcome


def newest_shared(connection: Connection, name: str, limit: int) -> tuple[dict[int, Sequence[Event]], bool]:
    """Return the events of instances that several may have labelled, and whether there are more such instances.

    `limit` bounds the events that are searched, see `event_log.newest_shared`.
    """
    places = event_log.newest_shared(connection, name, limit + 1)
    histories = event_log.instance_history(connection, name, list(dict.fromkeys(places[-limit:])))
    return {**histories}, len(places) > limit


def shared_instances(
    connection: Connection, name: str, after: int, limit: int
) -> tuple[dict[int, Sequence[Event]], int | None]:
    """Return the instances of which labels of several may hold at once, in the order of their first such event.

    Parameters
    ----------
    connection
        Connection in a transaction.
    name
        Name of the model.
    after
        Number of the event after which the search begins.
    limit
        Most events to search.

    Returns
    -------
    tuple
        All events of each instance, and the value of `after` for the next page; None if there is no next page.
    """
    row = find_model(connection, name)
    found: list[tuple[int, int]] = []
    for kind in sorted(SHARED):  # separately, so that the index applies
        mine = (log.c.model_id == row.id, log.c.kind == kind, log.c.instance.is_not(None))
        wanted = select(log.c.sequence, log.c.instance).where(*mine, log.c.sequence > after)
        found += [
            (each.sequence, each.instance)
            for each in connection.execute(wanted.order_by(log.c.sequence).limit(limit))
        ]
    page = sorted(found)[:limit]
    histories = event_log.history_of(connection, row, list(dict.fromkeys(place for _, place in page)))
    first = {place: first_shared(histories[place]) for _, place in page}
    begun: dict[int, Sequence[Event]] = {
        place: histories[place] for sequence, place in page if first[place] == sequence
    }
    return begun, page[-1][0] if len(page) == limit else None
