"""Labels for many rows at once: the rows are shown before anything is stored, and all labels can be undone."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from quercus.belief.errors import InvalidInput
from quercus.client.aio import Client
from quercus.client.answers import AnswerFilter, Statement
from quercus.client.errors import FailedPrecondition
from quercus.client.results import Answer
from quercus.view.words import counted

MAX_BULK: Final = 1_000
"""Maximum number of rows labelled at once: those of one message, which the server stores as a whole or not at all."""


@dataclass(frozen=True)
class BulkPlan:
    """A label that a labeller is about to give to many rows.

    Attributes
    ----------
    model, uid
        The model, and its uid when the plan was made.
    labeller
        Name of the labeller.
    rows
        Ids of the rows.
    label
        The class; None: the labeller's labels are withdrawn.
    former
        The labeller's valid answers about these rows, by id: the newest of each row.
    back
        Page to return to.
    key
        Key of the plan, under which the server stores its statements only once.
    """

    model: str
    uid: str
    labeller: str
    rows: tuple[str, ...]
    label: str | None
    former: Mapping[str, Answer]
    back: str
    key: str = field(default_factory=lambda: secrets.token_urlsafe(12))

    @property
    def changed(self) -> tuple[str, ...]:
        """The rows whose label by this labeller changes."""
        if self.label is None:
            return tuple(each for each in self.rows if each in self.former)
        return tuple(
            each for each in self.rows if each not in self.former or self.former[each].label != self.label
        )

    @property
    def sentence(self) -> str:
        """The change in words."""
        count = len(self.changed)
        if self.label is None:
            verb = "would lose its label" if count == 1 else "would lose their labels"
            return f"{counted(count, 'row')} {verb} by {self.labeller}."
        return f"{counted(count, 'row')} would be labelled {self.label} by {self.labeller}."

    async def carry_out(self, client: Client) -> None:
        """Store the labels.

        Raises
        ------
        FailedPrecondition
            If the name belongs to another model by now.
        """
        await self._check_model(client)
        if self.label is not None:
            given = [Statement(each, self.label) for each in self.changed]
            await client.state(self.model, given, labeller=self.labeller, request_id=f"bulk-{self.key}")
            return
        for each in self.changed:
            await client.undo_answer(self.model, self.former[each], labeller=self.labeller)

    async def take_back(self, client: Client) -> None:
        """Undo the labels: earlier statements are stated again, and earlier answers count again."""
        await self._check_model(client)
        if self.label is None:
            again = {each: self.former[each].label for each in self.changed}
        else:
            again = {
                each: self.former[each].label
                for each in self.changed
                if each in self.former and self.former[each].query is None
            }
        given = [
            Statement(each, again[each]) if each in again else Statement(each, retract=True)
            for each in self.changed
        ]
        await client.state(self.model, given, labeller=self.labeller, request_id=f"back-{self.key}")

    async def _check_model(self, client: Client) -> None:
        if (await client.get_model(self.model)).uid != self.uid:
            raise FailedPrecondition(f"{self.model} is another model now: choose its rows again")


async def plan_bulk(
    client: Client, model: str, labeller: str, rows: Sequence[str], label: str | None, back: str
) -> BulkPlan:
    """Return the plan to label rows, or to withdraw the labeller's labels.

    Raises
    ------
    InvalidInput
        If there are no rows or too many, or the model does not have the class.
    """
    rows = tuple(dict.fromkeys(rows))
    if not rows:
        raise InvalidInput("rows", "are missing: check the rows to label")
    if len(rows) > MAX_BULK:
        raise too_many(len(rows))
    of = await client.get_model(model)
    if label is not None and label not in of.specification.classes:
        known = ", ".join(of.specification.classes)
        raise InvalidInput("class", f"is {label[:60]!r}, must be one of {known}")
    wanted = AnswerFilter(labellers=[labeller], states=["counts", "pending"], instances=rows)
    former = {each.instance: each async for each in client.answers(model, wanted) if each.text}
    return BulkPlan(model, of.uid, labeller, rows, label, former, back)


def undo_key(done: BulkPlan | None, model: str) -> str:
    """Return the key of the last bulk labels, which can be undone as a whole; empty if there are none."""
    return done.key if done is not None and done.model == model else ""


def too_many(count: int) -> InvalidInput:
    """Return the error for too many rows."""
    return InvalidInput("rows", f"are {count:,}, at most {MAX_BULK:,} at once: narrow the filter")
