"""Models from files that were neither finished nor removed, because the server went away meanwhile."""

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


@dataclass(frozen=True)
class HalfMadeModel:
    """A model that was neither finished nor removed.

    Parameters
    ----------
    name
        Its name.
    uid
        Its identity; empty if the server did not confirm that it created the model.
    """

    name: str
    uid: str = ""

    def describe_left(self) -> str:
        """Return what is left, and how to finish or remove it."""
        if self.uid:
            left = f"The model {self.name} got only a part of its rows, and the server did not confirm its removal."
            again = "what is left is removed first"
        else:
            left = f"It is not known whether the model {self.name} was created; if so, it has no rows."
            again = "if the model is there without rows, it gets them"
        return (
            f"{left} When the server is back, create {self.name} from the file again: {again}. "
            f"Or remove it: quercus models delete {self.name}"
        )


class ModelMaking:
    """The creation of models by one session; it remembers the last one that was left half made."""

    def __init__(self) -> None:
        self.left: HalfMadeModel | None = None

    async def create_model(self, client: Client, name: str, specification: Specification) -> Model:
        """Create a model in place of what was left of an earlier attempt.

        Raises
        ------
        QuercusError
            As of `create_model`; AlreadyExists also if a model of this name has rows.
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
            raise AlreadyExists(f"a model {name} exists already, with {model.instance_count:,} rows")
        return model

    async def remove_model(self, client: Client, model: Model) -> None:
        """Remove a model that cannot be finished; remember it if that fails."""
        left = HalfMadeModel(model.name, model.uid)
        try:
            await _delete_left(client, left)
        except QuercusError:
            self.left = left

    def forget_left(self, name: str) -> None:
        """Forget what was left of a model: it is complete now."""
        if self.left is not None and self.left.name == name:
            self.left = None


async def _delete_left(client: Client, left: HalfMadeModel) -> None:
    """Delete a model, but none that has taken its name since."""
    try:
        if (await client.get_model(left.name)).uid == left.uid:
            await client.delete_model(left.name)
    except NotFound:
        return
