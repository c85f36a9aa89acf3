"""The queue of a labeller at a model: the held queries, and the labeller's actions on them."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quercus.belief.errors import InvalidInput, shown
from quercus.client.aio import Client
from quercus.client.aio.held_queries import AsyncHeldQueries
from quercus.client.keys import UNSEEN_S
from quercus.client.labels import LabelLike
from quercus.client.results import AnswerReport, Query, Reason

POSTPONE_S = 600.0
FIRST_WAIT_S = 3.0
"""Seconds for which a loading page waits until the tree has learned from the previous answer."""
MOST_HELD = 12
"""Number of queries that the pages of a labeller at a model hold; more only if a page would have none."""
MOST_REPORTED_S = 4 * 3600.0
"""Maximum time of an answer, in seconds, that the console reports: on an abandoned page it would measure nothing."""
MAX_DIGITS = 20
"""The number of a query has fewer digits than this."""
LABELLING_ACTIONS = ("answer", "refuse", "skip", "postpone", "release", "correct", "undo")
_NO_REASON = Reason((), (), "", "", 0.0, 0)


class PageOwners:
    """The pages of a labeller, and the queries of each, so that no two show the same query.

    Parameters
    ----------
    silence_s
        Seconds after which a silent page counts as closed.
    """

    def __init__(self, silence_s: float) -> None:
        self._silence_s = silence_s
        self._owners: dict[str, str] = {}
        self._heard: dict[str, float] = {}

    def owner(self, name: str) -> str:
        """Return the open page that has a query; empty if none has it."""
        owner = self._owners.get(name, "")
        return owner if time.monotonic() - self._heard.get(owner, -math.inf) <= self._silence_s else ""

    def claim(self, page: str, names: Collection[str]) -> list[str]:
        """Note that a page lives and has these queries; return those that are another page's."""
        if not page:  # its script has not started yet
            return []
        now = time.monotonic()
        self._heard = {each: at for each, at in self._heard.items() if now - at <= self._silence_s}
        self._heard[page] = now
        others = [name for name in names if self.owner(name) not in ("", page)]
        kept = {name: owner for name, owner in self._owners.items() if owner in self._heard}
        self._owners = kept | {name: page for name in names if name not in others}
        return others

    def forget(self, name: str) -> None:
        """Forget a query that was answered, given back or lost."""
        self._owners.pop(name, None)

    def leave(self, page: str) -> None:
        """Record that a page was closed."""
        self._heard.pop(page, None)


@dataclass(frozen=True)
class LabellerAction:
    """The action of a labeller on a query.

    Attributes
    ----------
    act
        One of `LABELLING_ACTIONS`.
    query, lease_token
        The full name of the query, and the token of its lease.
    label
        The label of an answer or a correction.
    comment, took_s, shown
        Comment, time in seconds, and description of the page's presentation.
    """

    act: str
    query: str
    lease_token: str
    label: LabelLike = None
    comment: str = ""
    took_s: float | None = None
    shown: str = ""


class LabellerQueue:
    """The queue of a labeller at a model. A page that is reloaded shows the same query.

    Parameters
    ----------
    client
        Client of the session.
    model
        Name of the model, or ``-`` for any.
    labeller
        Name of the labeller; empty: that of the token.
    lease_s
        Seconds for which a query is held without a request from the page.
    """

    def __init__(self, client: Client, model: str, labeller: str, lease_s: float) -> None:
        self._client, self._labeller = client, labeller
        self._queries = AsyncHeldQueries(client, model, labeller, lease_s=lease_s)
        self._lock = asyncio.Lock()
        self._shown: dict[str, float] = {}
        self._pages = PageOwners(lease_s)
        self._left = ""

    @property
    def idle_reason(self) -> str:
        """The reason why there is no query."""
        return self._queries.idle

    async def next_queries(
        self, page: str, have: Collection[str] = (), wait_s: float = 0.0, count: int = 1
    ) -> list[Query]:
        """Return up to ``count`` queries for a page: not among ``have``, nor of another page.

        Queries already held come first. Of further ones, only the first is waited for. All pages of the labeller
        together hold `MOST_HELD` in advance, and more only for a page without any, since a policy bounds the queries
        that a labeller holds.
        """
        self._pages.claim(page, have)
        queries = self._free_queries(page, have)[:count]
        if len(queries) < count:
            async with self._lock:
                queries = self._free_queries(page, have)[:count]
                room = max(MOST_HELD - len(self._queries.held), 1 if wait_s and not queries else 0)
                count = min(count, len(queries) + room)
                while len(queries) < count:
                    query = await self._queries.take(0.0 if queries else wait_s)
                    if query is None:
                        break
                    queries.append(query)
        return self._hand_out(page, queries)

    def _free_queries(self, page: str, have: Collection[str]) -> list[Query]:
        """Return the held queries that a page may have, beginning with the one that a page showed when it was left."""
        free = [
            query
            for query in self._queries.held
            if query.name not in have and self._pages.owner(query.name) in ("", page)
        ]
        return sorted(free, key=lambda query: query.name != self._left)

    def _hand_out(self, page: str, queries: Sequence[Query]) -> list[Query]:
        self._pages.claim(page, [query.name for query in queries])
        return [self._note_shown(query) for query in queries]

    async def first_query(self) -> Query | None:
        """Return a query for a page that is being loaded, without a long wait.

        It belongs to no open page. The new page claims it when its script starts; a page without scripts never does.
        """
        if self._lock.locked() and not self._free_queries("", ()):  # another page is waiting for one
            return None
        queries = await self.next_queries("", wait_s=FIRST_WAIT_S)
        return queries[0] if queries else None

    def claim(self, page: str, names: Collection[str]) -> list[str]:
        """Note that a page lives and has these queries; return those that are another page's."""
        return self._pages.claim(page, names)

    def leave(self, page: str, shown: str) -> None:
        """Record that a page was closed, and what it showed: its queries are for the next page that is loaded."""
        self._pages.leave(page)
        self._left = shown

    def find_held(self, name: str) -> Query | None:
        """Return a held query by name."""
        return next((query for query in self._queries.held if query.name == name), None)

    def _note_shown(self, query: Query) -> Query:
        """Record when a query was first shown, by its lease; a labeller who leases it again has seen it before."""
        held = {each.lease_token for each in self._queries.held}
        self._shown = {token: at for token, at in self._shown.items() if token in held}
        self._shown.setdefault(query.lease_token, time.monotonic())
        return query

    def is_unseen(self, lease_token: str) -> bool:
        """Return whether a query was shown so recently that nobody can have read it."""
        shown = self._shown.get(lease_token)
        return shown is not None and time.monotonic() - shown < UNSEEN_S

    async def has_newer_tree(self, wait_s: float) -> bool:
        """Return whether a new tree contains this labeller's answers; each such tree is reported once."""
        return await self._queries.has_newer_tree(wait_s)

    async def exchange_unseen(self, page: str, unseen: Collection[str]) -> list[Query]:
        """Exchange unseen queries of a page for the same number of queries that the newest tree asks first."""
        async with self._lock:
            known = [query for query in map(self.find_held, unseen) if query is not None]
            given = [query for query in known if await self._queries.give_back(query)]
            for query in given:
                self._pages.forget(query.name)
            taken = [await self._queries.take() for _ in given]
            return self._hand_out(page, [query for query in taken if query is not None])

    async def extend_leases(self) -> list[str]:
        """Extend all leases; return the names of lost queries."""
        return await self._queries.extend()

    async def submit_action(self, action: LabellerAction, classes: tuple[str, ...]) -> AnswerReport | None:
        """Send an action on a query, which may have been leased before the console was restarted."""
        query = self._query_for_call(action, classes)
        report = await self._send_action(action, query)
        self._queries.forget(query.name)
        self._pages.forget(query.name)
        self._shown.pop(query.lease_token, None)
        return report

    async def _send_action(self, action: LabellerAction, query: Query) -> AnswerReport | None:
        client, comment = self._client, action.comment
        if action.act == "answer":
            took_s = self._took_s(action)
            return await client.answer(
                query, action.label, comment=comment, took_s=took_s, shown=action.shown
            )
        if action.act == "refuse":
            return await client.refuse(query, comment=comment, shown=action.shown)
        if action.act == "correct":
            return await client.correct(query, action.label, comment=comment)
        if action.act == "undo":
            return await client.undo(query, comment=comment)
        if action.act == "skip":
            await client.skip(query, comment=comment)
        elif action.act == "postpone":
            await client.postpone(query, POSTPONE_S, comment=comment)
        else:
            await client.release(query)
        return None

    def _took_s(self, action: LabellerAction) -> float | None:
        if action.took_s is not None:
            return min(max(action.took_s, 0.0), MOST_REPORTED_S)
        shown = self._shown.get(action.lease_token)
        return None if shown is None else min(time.monotonic() - shown, MOST_REPORTED_S)

    def _query_for_call(self, action: LabellerAction, classes: tuple[str, ...]) -> Query:
        """Return a query object for a call, with the name, the lease and the frame of the label."""
        model, _, number = action.query.removeprefix("models/").partition("/queries/")
        if not (model and number.isascii() and number.isdigit() and len(number) < MAX_DIGITS):
            raise InvalidInput("query", f"is {action.query[:80]!r}, must be models/MODEL/queries/NUMBER")
        return Query(
            action.query,
            model,
            int(number),
            "leased",
            "",
            {},
            (),
            classes,
            _NO_REASON,
            0,
            self._labeller,
            None,
            action.lease_token,
        )

    async def close(self) -> None:
        """Give back held queries."""
        await self._queries.close()


def label_of(given: object, classes: tuple[str, ...]) -> LabelLike:
    """Return the label that a page sends: a class, a list of classes, or a mapping of plausibilities.

    Raises
    ------
    InvalidInput
        If it is none of these, or contains nothing.

    Examples
    --------
    >>> label_of(["a", "b"], ("a", "b", "c")) == {"a", "b"}, label_of({"a": 1, "b": 0.4}, ("a", "b"))
    (True, {'a': 1.0, 'b': 0.4})
    """
    if isinstance(given, str):
        return _check_class(given, classes)
    if isinstance(given, list) and given:
        return frozenset(_check_class(each, classes) for each in given)
    if isinstance(given, Mapping) and given:
        plausibilities = {
            _check_class(name, classes): _check_plausibility(name, value) for name, value in given.items()
        }
        if not any(plausibilities.values()):
            raise InvalidInput("label", "is 0 for every class; if nobody can tell, say so")
        return plausibilities
    raise InvalidInput("label", "is neither a class nor a list of classes nor plausibilities by class")


def _check_class(name: object, classes: tuple[str, ...]) -> str:
    if not isinstance(name, str) or name not in classes:
        raise InvalidInput("label", f"{str(name)[:80]!r} is not a class of this model")
    return name


def _check_plausibility(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(
            "label", f"the plausibility of {shown(name)} is {str(value)[:40]}, must lie in [0, 1]"
        )
    return float(value)
