# Generated from client/aio/held_queries.py by `make client`; edit that file.
"""The queries that a labeller holds: the one on the screen, those with unsent answers, and the next one."""

from __future__ import annotations

import time
from collections.abc import Collection

from quercus.client.concurrency import sleep
from quercus.client.errors import QuercusError
from quercus.client.filters import ANY, Filter
from quercus.client.results import Query
from quercus.client.retrying import is_transient
from quercus.client.sync.client import Client

CONDITION_POLL_S = 0.1
"""Seconds between checks whether the tree contains the last answer."""


class HeldQueries:
    """Queries leased to one labeller: the one on the screen, and the next one in advance.

    A labeller who answers sees the next query at once. It was selected before the server knew the answer, so `exchange`
    replaces it, until it is shown, by the first query of the newest tree. The console and `quercus label` use this
    class.

    Parameters
    ----------
    client
        The client that leases them.
    model, labeller, lease_s, only
        See ``Client.lease``. Only `extend` extends the leases.

    Attributes
    ----------
    idle : str
        The reason why the last `take` returned no query; empty if it returned one.
    """

    def __init__(
        self, client: Client, model: str, labeller: str, *, lease_s: float = 60.0, only: Filter | None = None
    ) -> None:
        self._client, self._only = client, only
        self.model, self.labeller, self.lease_s = model, labeller, lease_s
        self._held: dict[str, Query] = {}
        self._until: dict[str, float] = {}
        self._version: int | None = None
        self.idle = ""

    @property
    def held(self) -> tuple[Query, ...]:
        """The queries whose leases have not ended, in the order of leasing."""
        now = time.monotonic()
        for name, until in list(self._until.items()):  # a copy: threads share the synchronous one
            if until <= now:
                self.forget(name)
        return tuple(self._held.values())

    def first_except(self, names: Collection[str]) -> Query | None:
        """Return the first held query whose name is not in ``names``."""
        return next((query for query in self.held if query.name not in names), None)

    def take(self, wait_s: float = 0.0) -> Query | None:
        """Lease one more query, waiting up to ``wait_s`` seconds (at most 60) for one."""
        asked = time.monotonic()
        lease = self._client.lease(
            self.model, self.labeller, lease_s=self.lease_s, wait_s=wait_s, only=self._only
        )
        self.idle = "" if lease.queries else lease.idle or "nothing_to_ask"
        for query in lease.queries:
            self._held[query.name] = query
            # a cautious bound: a lease granted at the end of the wait lasts longer
            left_s = self.lease_s if query.left_s is None else query.left_s
            self._until[query.name] = max(asked, time.monotonic() - 1.0) + left_s
            return query
        return None

    def forget(self, name: str) -> Query | None:
        """Forget a query that was answered, given back or lost."""
        self._until.pop(name, None)
        return self._held.pop(name, None)

    def has_newer_tree(self, wait_s: float = 5.0) -> bool:
        """Return whether a new tree contains this client's answers; each such tree is reported once.

        Wait up to ``wait_s`` seconds for such a tree.
        """
        until = time.monotonic() + wait_s
        while self.model != ANY:
            now = self._client.get_model(self.model)
            if now.sequence_grown >= self._client._sequences.newest_sequence(self.model):
                is_newer, self._version = now.tree_version != self._version, now.tree_version
                return is_newer
            if time.monotonic() >= until:
                return False
            sleep(CONDITION_POLL_S)
        return False

    def exchange(self, unseen: Query) -> Query | None:
        """Give back a query that was not shown, and lease the first one, which may be the same."""
        return self.take() if self.give_back(unseen) else None

    def give_back(self, query: Query) -> bool:
        """Give a query back; return False if it is no longer held."""
        if self.forget(query.name) is None:  # it was answered or lost meanwhile
            return False
        self._client.release(query)
        return True

    def extend(self) -> list[str]:
        """Extend all leases; return the names of lost queries."""
        lost = []
        for query in self.held:
            asked = time.monotonic()
            try:
                self._client.extend_lease(query, self.lease_s)
                if self._held.get(query.name) is query:
                    self._until[query.name] = asked + self.lease_s
            except QuercusError as error:
                if is_transient(error):
                    continue  # the error may be transient
                if self._held.get(query.name) is query:  # otherwise it was leased again meanwhile
                    self.forget(query.name)
                    lost.append(query.name)
        return lost

    def close(self) -> None:
        """Give back all held queries."""
        for query in self.held:
            self.forget(query.name)
            self._client._give_back(query)
