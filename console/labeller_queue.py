"""The queue of one labeller at one model: the held queries, and the labeller's actions on them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
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
"""Seconds that a page waits, while it loads, for the tree to take in the previous answer."""
MOST_REPORTED_S = 4 * 3600.0
"""Longest time of an answer, in seconds, that the console reports: an abandoned page is no measure of the query."""
MAX_DIGITS = 20
"""Fewer digits than this has the number of a query."""
LABELLING_ACTIONS = ("answer", "refuse", "skip", "postpone", "release", "correct", "undo")
_NO_REASON = Reason((), (), "", "", 0.0, 0)


@dataclass(frozen=True)
class PendingAnswer:
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
        Comment, time in seconds, and the name of the page's presentation.
    """

    act: str
    query: str
    lease_token: str
    label: LabelLike = None
    comment: str = ""
    took_s: float | None = None
    shown: str = ""


class LabellerQueue:
    """One labeller at one model. A page that was loaded twice shows the same query.

    Parameters
    ----------
    client
        Client of the session.
    model
        Its name, or ``-`` for any.
    labeller
        In whose name; empty: that of the token.
    lease_s
        Seconds for which a query is held without a request from the page.
    """

    def __init__(self, client: Client, model: str, labeller: str, lease_s: float) -> None:
        self._client, self._labeller = client, labeller
        self._queries = AsyncHeldQueries(client, model, labeller, lease_s=lease_s)
        self._lock = asyncio.Lock()
        self._shown: dict[str, float] = {}

    @property
    def idle_reason(self) -> str:
        """The reason why there is no query."""
        return self._queries.idle

    async def next_query(self, have: Collection[str] = (), wait_s: float = 0.0) -> Query | None:
        """Return a query that is not among ``have``: one that is held, else one more."""
        query = self._queries.first_except(have)
        if query is None:
            async with self._lock:
                query = self._queries.first_except(have) or await self._queries.take(wait_s)
        return None if query is None else self._note_shown(query)

    async def first_query(self) -> Query | None:
        """Return the query to show on a page that is loaded, without a long wait for one."""
        if self._lock.locked():  # another page waits for one: it is for this page too
            query = self._queries.first_except(())
            return None if query is None else self._note_shown(query)
        return await self.next_query(wait_s=FIRST_WAIT_S)

    def find_held(self, name: str) -> Query | None:
        """Return a query that is held."""
        return next((query for query in self._queries.held if query.name == name), None)

    def _note_shown(self, query: Query) -> Query:
        """Note when a query was first shown, by its lease: a labeller who leases it again has seen it since then."""
        held = {each.lease_token for each in self._queries.held}
        self._shown = {token: at for token, at in self._shown.items() if token in held}
        self._shown.setdefault(query.lease_token, time.monotonic())
        return query

    def is_unseen(self, lease_token: str) -> bool:
        """Return whether a query has been shown so recently that nobody can have read it."""
        shown = self._shown.get(lease_token)
        return shown is not None and time.monotonic() - shown < UNSEEN_S

    async def has_newer_tree(self, wait_s: float) -> bool:
        """Return whether a new tree contains this labeller's answers; each such tree is reported once."""
        return await self._queries.has_newer_tree(wait_s)

    async def exchange_unseen(self, unseen: str) -> Query | None:
        """Exchange an unseen query for the one that the newest tree asks first."""
        async with self._lock:
            known = self.find_held(unseen)
            query = None if known is None else await self._queries.exchange(known)
            return None if query is None else self._note_shown(query)

    async def extend_leases(self) -> list[str]:
        """Extend all leases; return the names of the queries that are lost."""
        return await self._queries.extend()

    async def submit_action(self, action: PendingAnswer, classes: tuple[str, ...]) -> AnswerReport | None:
        """Send an action on a query, which an earlier console may have leased."""
        query = self._query_for_call(action, classes)
        report = await self._send_action(action, query)
        self._queries.forget(query.name)
        self._shown.pop(query.lease_token, None)
        return report

    async def _send_action(self, action: PendingAnswer, query: Query) -> AnswerReport | None:
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

    def _took_s(self, action: PendingAnswer) -> float | None:
        if action.took_s is not None:
            return min(max(action.took_s, 0.0), MOST_REPORTED_S)
        shown = self._shown.get(action.lease_token)
        return None if shown is None else min(time.monotonic() - shown, MOST_REPORTED_S)

    def _query_for_call(self, action: PendingAnswer, classes: tuple[str, ...]) -> Query:
        """Return the query for a call: its name, its lease, and the frame of the label."""
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
        When it is none of these, or says nothing.

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
            raise InvalidInput("label", "is 0 for every class; refuse if nobody can tell")
        return plausibilities
    raise InvalidInput("label", "is none of a class, a list of classes, plausibilities by class")


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
