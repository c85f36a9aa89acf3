"""Adjudications are written, and the instances that several labellers have labelled are found."""

from collections.abc import Sequence

from sqlalchemy import Connection, select, update

from quercus.labelling import adjudication as rules
from quercus.labelling import checks
from quercus.labelling.adjudication import WHY_ADJUDICATED, Adjudication, AdjudicationOutcome
from quercus.labelling.answers import LabelledInstance
from quercus.labelling.crowds.labellers import MAX_LABELS, crowd_of
from quercus.labelling.disputes import first_shared
from quercus.labelling.event import SHARED, Event
from quercus.labelling.policy import Reliability
from quercus.storage.clocks import Clock
from quercus.storage.errors import NotFound
from quercus.storage.log import event_log
from quercus.storage.queries import agenda, expiry, policies, statements
from quercus.storage.queries.desk import KnownModel
from quercus.storage.rows import find_model, lock_model
from quercus.storage.schema import log, model


def append_adjudication(
    connection: Connection, name: str, identifier: str, given: Adjudication, known: KnownModel, clock: Clock
) -> AdjudicationOutcome:
    """Decide between the labellers of an instance, by its id. The same again is acknowledged again."""
    checks.name_text("labeller", given.labeller)
    checks.comment(given.comment)
    row = lock_model(connection, name)
    now = clock()
    known.check_key(row)
    expiry.write_expired(connection, row.id, now)
    place = event_log.instance_sequences(connection, row.id, [identifier]).get(identifier)
    if place is None:
        raise NotFound("instance", f"{name}/{identifier}")
    policy = policies.policy_of(connection, row.id)
    crowd = None
    if policy.reliability is Reliability.ESTIMATED:
        crowd = known.crowd or crowd_of(event_log.newest_opinions(connection, name, MAX_LABELS), known.size)
    said = event_log.history_of(connection, row, [place])[place]
    of = LabelledInstance(said, known.size, policy, crowd, int(row.sequence_committed), now.clock, now.wall)
    outcome, events = rules.adjudicate(given, of)
    if events:
        event_log.add_events(connection, row.id, events, now)
        change = {
            "sequence_committed": of.committed + len(events),
            "conflicts": row.conflicts + sum(event.conflict for event in events),
        }
        connection.execute(update(model).where(model.c.id == row.id).values(change))
        asked = statements.live_queries(connection, row, [place])
        asked = [each for each in asked if not each.gold]
        agenda.drop_queries(connection, row, asked, WHY_ADJUDICATED, now)
    return outcome


def newest_shared(connection: Connection, name: str, limit: int) -> tuple[dict[int, Sequence[Event]], bool]:
    """Return the instances of the newest `limit` labels of several labellers, and whether there are more."""
    events = event_log.newest_opinions(connection, name, limit + 1)
    places = list(dict.fromkeys(event.instance for event in events[-limit:]))
    return {**event_log.instance_history(connection, name, places)}, len(events) > limit


def shared_instances(
    connection: Connection, name: str, after: int, limit: int
) -> tuple[dict[int, Sequence[Event]], int | None]:
    """Return the instances that may have labels of several labellers, in the order of their first such event.

    Parameters
    ----------
    connection, name
        The model's.
    after
        Look at the events after this one.
    limit
        Number of events to look at.

    Returns
    -------
    tuple
        All events of each instance, and the event after which the next instances begin; None: there are no more.
    """
    row = find_model(connection, name)
    found: list[tuple[int, int]] = []
    for kind in sorted(SHARED):  # one by one, so that the index applies
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
