"""Displays of rows, which are stored with the rows, and are not part of the evidence."""

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, bindparam, select

from quercus.storage.inserts import insert_rows
from quercus.storage.json_values import one_of
from quercus.storage.prepared import Prepared
from quercus.storage.rows import find_model
from quercus.storage.schema import display

_SHOWN = Prepared(
    select(display.c.instance, display.c.data).where(
        display.c.model_id == bindparam("of"), one_of(display.c.instance, "instances")
    )
)


def insert_displays(connection: Connection, model_id: int, displays: Mapping[int, bytes]) -> None:
    """Insert displays of rows, by the sequence of their INSTANCE event, in the transaction that inserts the rows."""
    if displays:
        rows = ((model_id, instance, data) for instance, data in displays.items())
        insert_rows(connection, display, ("model_id", "instance", "data"), rows)


def read_displays(connection: Connection, name: str, instances: Sequence[int]) -> dict[int, bytes]:
    """Return the displays of some rows, by the sequence of their INSTANCE event; rows without one are left out."""
    return displays_of(connection, find_model(connection, name).id, instances)


def displays_of(connection: Connection, model_id: int, instances: Sequence[int]) -> dict[int, bytes]:
    """Return the displays of rows by the model's key; see `read_displays`."""
    if not instances:
        return {}
    wanted = json.dumps([int(instance) for instance in instances])
    return {row.instance: row.data for row in _SHOWN.run_for_all(connection, of=model_id, instances=wanted)}
