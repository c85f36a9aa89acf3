"""The row of a model: to read, or held for as long as something of the model is written."""

from sqlalchemy import Connection, select

from quercus.storage.errors import NotFound
from quercus.storage.schema import AnyRow, model


def lock(connection: Connection, name: str) -> AnyRow:
    """The model's row, held until the transaction ends (a row lock where the database has them)."""
    row = connection.execute(select(model).where(model.c.name == name).with_for_update()).one_or_none()
    if row is None:
        raise NotFound("model", name)
    return row


def find(connection: Connection, name: str) -> AnyRow:
    """The model's row, for reading."""
    row = connection.execute(select(model).where(model.c.name == name)).one_or_none()
    if row is None:
        raise NotFound("model", name)
    return row
