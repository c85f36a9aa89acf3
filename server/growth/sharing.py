"""The share of one grower among several of a store: the models that it is responsible for, and the right to publish.

Every model belongs to the live member with the highest hash of model and member, so that only the share of a member
that comes or goes moves. A thread renews the membership, even during a long step. Responsibility only divides the work:
the store decides who may publish (`quercus.storage.Fence`).
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from quercus.storage import Fence, Fenced, StorageError, Store

_log = logging.getLogger(__name__)
RENEWALS: Final = 3
"""Number of times that the membership is renewed within its duration."""
MEMBERS_POLL_S: Final = 0.2
"""Longest time, in seconds, between two reads of the members."""


class SoleShare:
    """The share of the only grower of a store: all models, without fences.

    Attributes
    ----------
    members : the live members, including this one; a new object whenever they change.
    """

    members: Sequence[str] = ()

    def is_responsible(self, key: int) -> bool:
        """Return whether this grower is responsible for a model."""
        return True

    def get_fence(self, key: int, name: str) -> Fence | None:
        """Return the right to publish trees of a model; raise `Fenced` if another member has it."""
        return None

    def return_later(self, key: int) -> None:
        """Give up the right to a model; `release_others` tells the store if another member is responsible."""

    def drop_model(self, key: int) -> None:
        """Forget a deleted model."""

    def release_others(self) -> None:
        """Release the models for which other members are responsible now."""


class GrowerShare(SoleShare):
    """The share of one grower among several.

    Parameters
    ----------
    store : store, open in this process.
    member : identity of this grower.
    place : description of its process and host.
    ttl_s : seconds without a heartbeat after which a member counts as dead.
    """

    def __init__(self, store: Store, member: str, place: str, ttl_s: float) -> None:
        self._store, self._member, self._place, self._ttl_s = store, member, place, ttl_s
        self._fences: dict[int, Fence] = {}
        self._doubtful: set[int] = set()  # models that may be taken by this member according to the store
        self._renew_at = 0.0
        self._trouble = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._renew_forever, name="quercus-member", daemon=True)

    def start(self) -> None:
        """Become a member, and stay one.

        The growers that a server starts one after the other are the same member. Models that an earlier one had taken
        are released, because this one does not know them, and nobody else could take them.
        """
        self._store.release_models(self._member)
        self._renew_and_list()
        self._thread.start()

    def close(self) -> None:
        """Leave the group, so that the others need not wait until the membership ends."""
        self._stopping.set()
        self._thread.join()
        with suppress(StorageError):  # then the membership ends by itself
            self._store.leave_growers(self._member)

    def is_responsible(self, key: int) -> bool:
        """Return whether this grower is responsible for a model."""
        return owner_of(key, self.members) == self._member

    def get_fence(self, key: int, name: str) -> Fence:
        """Return the right to publish trees of a model; raise `Fenced` if another member has it."""
        if key not in self._fences:
            self._doubtful.add(key)  # a call that fails may have taken the model
            fence = self._store.take_model(key, self._member)
            self._doubtful.discard(key)
            if fence is None:
                raise Fenced(name)
            self._fences[key] = fence
            _log.info("model %s is grown here (epoch %d)", name, fence.epoch)
        return self._fences[key]

    def return_later(self, key: int) -> None:
        """Give up the right to a model; `release_others` tells the store if another member is responsible."""
        if self._fences.pop(key, None) is not None:
            self._doubtful.add(key)

    def drop_model(self, key: int) -> None:
        """Forget a deleted model."""
        self._fences.pop(key, None)
        self._doubtful.discard(key)

    def release_others(self) -> None:
        """Release the models for which other members are responsible now."""
        gone = [key for key in {*self._fences, *self._doubtful} if not self.is_responsible(key)]
        if gone:
            self._store.release_models(self._member, gone)
            _log.info("%d models are given to other growers", len(gone))
            for key in gone:
                self._fences.pop(key, None)
                self._doubtful.discard(key)

    def _renew_forever(self) -> None:
        while not self._stopping.wait(min(MEMBERS_POLL_S, self._ttl_s / RENEWALS)):
            try:
                self._renew_and_list()
            except StorageError as error:
                if not self._trouble:
                    _log.error("this grower cannot renew its membership: %s", error)
                self._trouble = str(error)
            else:
                self._trouble = ""

    def _renew_and_list(self) -> None:
        if (now := time.monotonic()) >= self._renew_at:
            self._store.renew_grower(self._member, self._place, self._ttl_s)
            self._renew_at = now + self._ttl_s / RENEWALS
        found = tuple(each.member for each in self._store.live_growers())
        if found != self.members:
            if self.members:
                _log.info("%d growers share the store now, there were %d", len(found), len(self.members))
            self.members = found


class OneModelShare(SoleShare):
    """The share of a process that grows a single model for the responsible member.

    Parameters
    ----------
    store : store, open in this process.
    member : identity of the responsible grower.
    key : key of the model.
    """

    def __init__(self, store: Store, member: str, key: int) -> None:
        self._store, self._member, self._key = store, member, key
        self._fence: Fence | None = None
        self.is_gone = False
        """True once the model was deleted."""

    def is_responsible(self, key: int) -> bool:
        """Return whether this is the model."""
        return key == self._key

    def get_fence(self, key: int, name: str) -> Fence | None:
        """Return the right to publish trees of the model; raise `Fenced` if another member has it."""
        if self._fence is None and self._store.may_be_shared:
            self._fence = self._store.take_model(key, self._member)
            if self._fence is None:
                raise Fenced(name)
        return self._fence

    def return_later(self, key: int) -> None:
        """Give up the right to the model."""
        if key == self._key:
            self._fence = None

    def drop_model(self, key: int) -> None:
        """Note that the model was deleted."""
        self.is_gone |= key == self._key


def owner_of(key: int, members: Iterable[str]) -> str | None:
    """Return the member that is responsible for a model; None if there are no members.

    Examples
    --------
    >>> members = ["ada", "bob", "eve"]
    >>> [owner_of(key, members) for key in range(1, 7)]
    ['bob', 'bob', 'bob', 'ada', 'ada', 'ada']
    >>> all(owner_of(key, members) in (owner_of(key, members[:2]), "eve") for key in range(100))
    True
    """
    return max(
        members,
        key=lambda member: hashlib.blake2b(f"{key}/{member}".encode(), digest_size=8).digest(),
        default=None,
    )
