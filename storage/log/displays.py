"""Displays of rows: written with them, read for those who may see them, never part of the evidence."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select

from quercus.storage.inserts import insert_rows
from quercus.storage.rows import chunks_of, find_model
from quercus.storage.schema import display


def insert_displays(connection: Connection, model_id: int, displays: Mapping[int, bytes]) -> None:
    """Insert displays of rows, by the sequence of their INSTANCE event, in the transaction that inserts the rows."""
    if displays:
        rows = ((model_id, instance, data) for instance, data in displays.items())
        insert_rows(connection, display, ("model_id", "instance", "data"), rows)


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
