"""The share of one grower among several of a store: which models are its own, and the right to publish their trees.

Every model belongs to the live member with the highest hash of model and member, so that a member that comes or goes
moves only its own share of the models. A thread renews the membership, also during a long step. Ownership only divides
the work: the store decides who may publish (`quercus.storage.Fence`).
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
"""Number of times that the membership is renewed before it would end."""
MEMBERS_POLL_S: Final = 0.2
"""Longest time between two reads of the other members, in seconds."""


class SoleShare:
    """The share of a grower that is the only one of its store: all models, and nobody to be fenced off.

    Attributes
    ----------
    members : the live members, this one included; another object whenever they change.
    """

    members: Sequence[str] = ()

    def is_responsible(self, key: int) -> bool:
        """Return whether this grower is responsible for a model."""
        return True

    def get_fence(self, key: int, name: str) -> Fence | None:
        """Return the right to publish trees of a model; `Fenced` while another member has it."""
        return None

    def return_later(self, key: int) -> None:
        """Another has the model, or it is another's now: `release_others` gives it back then."""

    def drop_model(self, key: int) -> None:
        """The model is gone, and with it what could be given back."""

    def release_others(self) -> None:
        """Give back the models that belong to other members now."""


class GrowerShare(SoleShare):
    """The models of one grower of several.

    Parameters
    ----------
    store : open in this process.
    member : identity of this grower.
    place : description of its process and host.
    ttl_s : seconds without a heartbeat after which a member counts as dead.
    """

    def __init__(self, store: Store, member: str, place: str, ttl_s: float) -> None:
        self._store, self._member, self._place, self._ttl_s = store, member, place, ttl_s
        self._fences: dict[int, Fence] = {}
        self._doubtful: set[int] = set()  # models that the store may think are taken by this member
        self._renew_at = 0.0
        self._trouble = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._renew_forever, name="quercus-member", daemon=True)

    def start(self) -> None:
        """Become a member, and stay one.

        The growers that a server starts one after the other are one member. The models that an earlier one had taken
        are released: this one does not know them, and otherwise no member could grow them.
        """
        self._store.release_models(self._member)
        self._renew_and_list()
        self._thread.start()

    def close(self) -> None:
        """Leave the group, so that the others need not wait until the membership ends."""
        self._stopping.set()
        self._thread.join()
        with suppress(StorageError):  # then it counts as dead in a while
            self._store.leave_growers(self._member)

    def is_responsible(self, key: int) -> bool:
        """Return whether this grower is responsible for a model."""
        return owner_of(key, self.members) == self._member

    def get_fence(self, key: int, name: str) -> Fence:
        """Return the right to publish trees of a model; `Fenced` while another member has it."""
        if key not in self._fences:
            self._doubtful.add(key)  # a call that fails may have taken it
            fence = self._store.take_model(key, self._member)
            self._doubtful.discard(key)
            if fence is None:
                raise Fenced(name)
            self._fences[key] = fence
            _log.info("model %s is grown here (epoch %d)", name, fence.epoch)
        return self._fences[key]

    def return_later(self, key: int) -> None:
        """Another has the model, or it is another's now: `release_others` gives it back then."""
        if self._fences.pop(key, None) is not None:
            self._doubtful.add(key)

    def drop_model(self, key: int) -> None:
        """The model is gone, and with it what could be given back."""
        self._fences.pop(key, None)
        self._doubtful.discard(key)

    def release_others(self) -> None:
        """Give back the models that belong to other members now."""
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
    """The share of a grower that grows one model alone, for the member that owns it.

    Parameters
    ----------
    store : open in this process.
    member : identity of the grower that owns the model.
    key : the model.
    """

    def __init__(self, store: Store, member: str, key: int) -> None:
        self._store, self._member, self._key = store, member, key
        self._fence: Fence | None = None
        self.is_gone = False
        """True once the model is deleted."""

    def is_responsible(self, key: int) -> bool:
        """Return whether this is the model."""
        return key == self._key

    def get_fence(self, key: int, name: str) -> Fence | None:
        """Return the right to publish trees of the model; `Fenced` while another member has it."""
        if self._fence is None and self._store.may_be_shared:
            self._fence = self._store.take_model(key, self._member)
            if self._fence is None:
                raise Fenced(name)
        return self._fence

    def return_later(self, key: int) -> None:
        """Another member has the model."""
        if key == self._key:
            self._fence = None

    def drop_model(self, key: int) -> None:
        """The model is gone."""
        self.is_gone |= key == self._key


def owner_of(key: int, members: Iterable[str]) -> str | None:
    """Return the member to which a model belongs; None when there is none.

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
