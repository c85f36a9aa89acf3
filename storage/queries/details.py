"""The details that are sent with queries and instances, read together from one state of the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from quercus.labelling.event import Event
from quercus.labelling.policy import Policy
from quercus.storage import models, rows
from quercus.storage.clocks import Timestamps
from quercus.storage.log import event_log
from quercus.storage.log.displays import displays_of
from quercus.storage.queries import adjudications, policies
from quercus.storage.records import EventSelection, ModelRecord


@dataclass(frozen=True, slots=True)
class QueryDetails:
    """A model and some of its instances.

    Attributes
    ----------
    model : ModelRecord
    vocabulary : mapping of int to tuple of str
        Learned nominal values by attribute.
    policy : Policy
    histories : mapping of int to list of Event
        All events of each instance, by its sequence.
    displays : mapping of int to bytes
        Displays of the instances that have one, by sequence.
    """

    model: ModelRecord
    vocabulary: Mapping[int, tuple[str, ...]]
    policy: Policy
    histories: Mapping[int, Sequence[Event]]
    displays: Mapping[int, bytes]


def read_details(
    connection: Connection, name: str, instances: Sequence[int], now: Timestamps
) -> QueryDetails:
    """Return the details of instances, in the order given."""
    row = rows.find_model(connection, name)
    return QueryDetails(
        models.get(connection, name, now),
        {place: tuple(values) for place, values in event_log.learned_values(connection, row.id).items()},
        policies.policy_of(connection, row.id),
        event_log.history_of(connection, row, instances),
        displays_of(connection, row.id, instances),
    )


def page_details(connection: Connection, name: str, after: int, limit: int, now: Timestamps) -> QueryDetails:
    """Return the details of the instances after sequence number `after`, in order."""
    page = event_log.list_instances(connection, name, after, limit)
    return read_details(connection, name, [event.sequence for event in page], now)


def said_details(
    connection: Connection, name: str, selection: EventSelection, now: Timestamps
) -> tuple[list[Event], QueryDetails]:
    """Return events of labellers, and the details of their instances."""
    events = event_log.labeller_events(connection, name, selection)
    return events, read_details(connection, name, sorted({event.instance for event in events}), now)


def shared_details(
    connection: Connection, name: str, after: int, limit: int, now: Timestamps
) -> tuple[QueryDetails, int | None]:
    """Return the details of instances that several labellers may have labelled; see `Store.shared_details`."""
    histories, following = adjudications.shared_instances(connection, name, after, limit)
    return replace(read_details(connection, name, [], now), histories=histories), following
