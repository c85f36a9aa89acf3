"""Models from files that were neither completed nor removed, because the server became unreachable."""

from __future__ import annotations

from dataclasses import dataclass

from quercus.client.aio import Client
from quercus.client.errors import (
    AlreadyExists,
    Cancelled,
    DeadlineExceeded,
    NotFound,
    QuercusError,
    Unavailable,
)
from quercus.client.results import Model
from quercus.client.specifications import Specification
from quercus.view.words import counted


@dataclass(frozen=True)
class HalfMadeModel:
    """A model that was neither completed nor removed.

    Parameters
    ----------
    name
        Its name.
    uid
        Its uid; empty if the server did not confirm the creation.
    """

    name: str
    uid: str = ""

    def describe_left(self) -> str:
        """Return the state of the model, and how to complete or remove it, in words."""
        if self.uid:
            left = f"The model {self.name} got only a part of its rows, and the server did not confirm its removal."
            again = "the rest is removed first"
        else:
            left = f"It is not known whether the model {self.name} was created; if so, it has no rows."
            again = "if the model exists without rows, it gets them"
        return (
            f"{left} When the server is back, create {self.name} from the file again: {again}. "
            f"Or remove it: quercus models delete {self.name}"
        )


class ModelMaking:
    """Creates the models of a session; remembers the last incomplete one."""

    def __init__(self) -> None:
        self.left: HalfMadeModel | None = None

    async def create_model(self, client: Client, name: str, specification: Specification) -> Model:
        """Create a model, replacing the rest of an earlier attempt.

        Raises
        ------
        QuercusError
            As `Client.create_model`; AlreadyExists also if a model of this name has rows.
        """
        before = self.left if self.left is not None and self.left.name == name else None
        if before is not None and before.uid:
            await _delete_left(client, before)
            self.left = before = None
        try:
            model = await client.create_model(name, specification, exist_ok=before is not None)
        except (Unavailable, DeadlineExceeded, Cancelled):
            self.left = HalfMadeModel(name)
            raise
        if model.instance_count:
            raise AlreadyExists(f"a model {name} already exists, with {counted(model.instance_count, 'row')}")
        return model

    async def remove_model(self, client: Client, model: Model) -> None:
        """Remove a model that cannot be completed; remember it if that fails."""
        left = HalfMadeModel(model.name, model.uid)
        try:
            await _delete_left(client, left)
        except QuercusError:
            self.left = left

    def forget_left(self, name: str) -> None:
        """Forget an incomplete model that is complete now."""
        if self.left is not None and self.left.name == name:
            self.left = None


async def _delete_left(client: Client, left: HalfMadeModel) -> None:
    """Delete a model, unless its name now belongs to another model."""
    try:
        if (await client.get_model(left.name)).uid == left.uid:
            await client.delete_model(left.name)
    except NotFound:
        return
