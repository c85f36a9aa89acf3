"""Displays of rows: written with them, read for those who may see them, never part of the evidence."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, insert, select

from quercus.storage.rows import chunks_of, find_model
from quercus.storage.schema import display


def insert_displays(
    connection: Connection, model_id: int, first: int, ids: Sequence[str], displays: Mapping[str, bytes]
) -> None:
    """Insert the displays of some of the rows `first`, `first` + 1, ...

    Parameters
    ----------
    connection : connection with the transaction that inserts the rows.
    model_id : key of the model.
    first : sequence of the first row.
    ids : ids of the rows.
    displays : by id.
    """
    rows = [
        {"model_id": model_id, "instance": at, "data": displays[each]}
        for at, each in enumerate(ids, first)
        if each in displays
    ]
    if rows:
        connection.execute(insert(display), rows)


def read_displays(connection: Connection, name: str, instances: Sequence[int]) -> dict[int, bytes]:
    """Return the displays of some rows, by the sequence of their INSTANCE event; rows without one are left out."""
    return displays_of(connection, find_model(connection, name).id, instances)


def displays_of(connection: Connection, model_id: int, instances: Sequence[int]) -> dict[int, bytes]:
    """Return the displays of rows of a model whose row is known; see `read_displays`."""
    found: dict[int, bytes] = {}
    for chunk in chunks_of(instances):
        wanted = select(display.c.instance, display.c.data).where(
            display.c.model_id == model_id, display.c.instance.in_(chunk)
        )
        found.update((instance, data) for instance, data in connection.execute(wanted))
    return found
