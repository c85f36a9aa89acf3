"""The assignment of models to growers, if several growers share a store.

A grower is a live member as long as it renews its row. Before it first publishes a tree of a model, it takes the model,
unless another live member has it. It gets an epoch, a number that grows whenever the model is taken. Published trees
carry member and epoch, and are refused (`Fenced`) if another member has taken the model since. So a grower that was
suspended or cut off, and continues later, cannot change anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, exists, func, select, update

from quercus.storage.clocks import Timestamps
from quercus.storage.errors import Fenced
from quercus.storage.inserts import insert_new
from quercus.storage.schema import LIVE, grower, growing, model

FORGET_S = 3600.0  # the rows of dead members are removed after this time


@dataclass(frozen=True, slots=True)
class Fence:
    """The right to publish trees of a model: the member, and the epoch of the model."""

    member: str
    epoch: int


@dataclass(frozen=True, slots=True)
class GrowerRecord:
    """A live member.

    Attributes
    ----------
    member : str
        Its identity.
    place : str
        Host and process, for people.
    left_s : float
        Seconds after which it counts as dead, unless it renews its row.
    models : int
        Number of models that it has taken.
    """

    member: str
    place: str
    left_s: float
    models: int


def renew_membership(connection: Connection, member: str, place: str, until: float, now: Timestamps) -> None:
    """Join, or renew the membership, until a moment of the lease clock."""
    # The place is written again: successive grower processes of a server are one member.
    changed = update(grower).where(grower.c.id == member).values(place=place, until=until)
    if not connection.execute(changed).rowcount:
        insert_new(connection, grower, id=member, place=place, until=until)
        connection.execute(delete(grower).where(grower.c.until < now.clock - FORGET_S))


def live_members(connection: Connection, now: Timestamps) -> list[GrowerRecord]:
    """Return the live members, in order of identity."""
    taken = select(func.count()).where(growing.c.owner == grower.c.id).scalar_subquery()
    wanted = select(grower, taken.label("models")).where(grower.c.until > now.clock).order_by(grower.c.id)
    return [
        GrowerRecord(row.id, row.place, row.until - now.clock, row.models)
        for row in connection.execute(wanted)
    ]


def take_model(connection: Connection, key: int, member: str, now: Timestamps) -> Fence | None:
    """Take a model; return None if another live member has it, or there is no such model."""
    there = select(model.c.id).where(model.c.id == key, LIVE)
    if connection.execute(there).one_or_none() is None:
        return None
    insert_new(connection, growing, model_id=key, owner=None, epoch=0)
    free = growing.c.owner.is_(None) | (growing.c.owner == member) | ~_is_live(growing.c.owner, now)
    taken = (
        update(growing).where(growing.c.model_id == key, free).values(owner=member, epoch=growing.c.epoch + 1)
    )
    epoch = connection.execute(taken.returning(growing.c.epoch)).scalar_one_or_none()
    return None if epoch is None else Fence(member, int(epoch))


def _is_live(owner: ColumnElement[str | None], now: Timestamps) -> ColumnElement[bool]:
    return exists(select(1).where(grower.c.id == owner, grower.c.until > now.clock))


def release_models(connection: Connection, member: str, keys: Sequence[int] | None = None) -> None:
    """Release models: those with the given keys, or all of the member's."""
    mine = [growing.c.owner == member]
    if keys is not None:
        mine.append(growing.c.model_id.in_(keys))
    connection.execute(update(growing).where(*mine).values(owner=None))


def end_membership(connection: Connection, member: str) -> None:
    """End the membership, and release the member's models."""
    release_models(connection, member)
    connection.execute(delete(grower).where(grower.c.id == member))


def check_fence(connection: Connection, key: int, name: str, fence: Fence | None) -> None:
    """Raise `Fenced` if another member has taken the model.

    Otherwise the model's row of `growing` is locked, so that no member can take it until the transaction ends.
    Without a fence, nothing is checked or locked: there is only one member.
    """
    if fence is None:
        return
    mine = (growing.c.model_id == key, growing.c.owner == fence.member, growing.c.epoch == fence.epoch)
    held = select(growing.c.epoch).where(*mine).with_for_update(read=True)
    if connection.execute(held).one_or_none() is None:
        raise Fenced(name)
