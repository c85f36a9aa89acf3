"""What labellers do, by the asyncio client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from quercus.client import asks, convert
from quercus.client.asks import Ask
from quercus.client.labelling_results import Labeller, LabellingPolicy, QueryStep
from quercus.client.labels import LabelLike
from quercus.client.results import AnswerReport, Query
from quercus.client.stubs import Stubs
from quercus.client.transport import Sequences

T = TypeVar("T")


class LabellingCalls:
    """What labellers do, and what is known of them; a part of the client."""

    _stubs: Stubs
    _sequences: Sequences

    if TYPE_CHECKING:  # what the client itself has

        async def _call(
            self, method: Callable[..., Any], request: Any, timeout_s: float | None = None
        ) -> Any: ...

    async def _ask(self, ask: Ask[T], timeout_s: float | None = None) -> T:
        return ask.read(await self._call(getattr(self._stubs.queries, ask.method), ask.request, timeout_s))

    async def _say(self, model: str, ask: Ask[AnswerReport]) -> AnswerReport:
        report = await self._ask(ask)
        self._sequences.saw(model, report.model_uid, report.committed_sequence)
        return report

    async def answer(
        self,
        query: Query,
        label: LabelLike,
        reliability: float | None = None,
        *,
        comment: str = "",
        took_s: float | None = None,
    ) -> AnswerReport:
        """Answer a query, with a label as :meth:`quercus.client.Client.answer` takes it."""
        return await self._say(query.model, asks.answer(query, label, reliability, comment, took_s))

    async def refuse(self, query: Query, *, comment: str = "") -> AnswerReport:
        """Say that nobody can tell: the instance is not asked again."""
        return await self._say(query.model, asks.refuse(query, comment))

    async def skip(self, query: Query, *, comment: str = "") -> None:
        """Say that it is not for you: others are asked, you are not asked about the instance again."""
        await self._ask(asks.give_back(query, asks.How.HOW_SKIP, comment=comment))

    async def postpone(self, query: Query, delay_s: float = 600.0, *, comment: str = "") -> None:
        """Give a query back for later: nobody gets it before ``delay_s`` (1 to 86,400) have passed."""
        await self._ask(asks.give_back(query, asks.How.HOW_POSTPONE, delay_s, comment))

    async def release(self, query: Query) -> None:
        """Give a query back to whoever asks next."""
        await self._ask(asks.give_back(query))

    async def extend_lease(self, query: Query, lease_s: float) -> None:
        """Hold a query for ``lease_s`` seconds from now."""
        await self._ask(asks.extend(query, lease_s))

    async def correct(
        self,
        query: Query,
        label: LabelLike,
        reliability: float | None = None,
        *,
        labeller: str | None = None,
        comment: str = "",
    ) -> AnswerReport:
        """Put another answer in the place of your own, as :meth:`quercus.client.Client.correct`."""
        return await self._say(query.model, asks.correct(query, label, labeller, reliability, comment))

    async def undo(self, query: Query, *, labeller: str | None = None, comment: str = "") -> AnswerReport:
        """Take your answer, or your refusal, back: the instance may be asked again. The budget stays spent."""
        return await self._say(query.model, asks.undo(query, labeller, comment))

    async def labellers(self, model: str) -> list[Labeller]:
        """What each labeller of a model did, in order of name."""
        return await self._ask(asks.labellers(model))

    async def labelling_policy(self, model: str) -> LabellingPolicy:
        """How a model is labelled."""
        return await self._ask(asks.policy(model))

    async def set_labelling_policy(self, model: str, policy: LabellingPolicy) -> LabellingPolicy:
        """Change how a model is labelled; it holds for what is leased and answered from now on."""
        return await self._ask(asks.set_policy(model, policy))

    async def list_queries(self, model: str, states: Iterable[str] = ()) -> AsyncIterator[Query]:
        """Queries in the given states (open, leased, answered, refused, withdrawn; none given: all)."""
        request = asks.list_queries(model, states)
        while True:
            page = await self._call(self._stubs.queries.ListQueries, request)
            for each in page.queries:
                yield convert.query(each)
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    async def query_history(self, model: str, number: int | None = None) -> AsyncIterator[QueryStep]:
        """Every step of one query of a model, or of all, in the order they were taken."""
        request = asks.history(model, number)
        while True:
            page = await self._call(self._stubs.queries.ListQueryHistory, request)
            for each in page.steps:
                yield asks.step(each)
            request.page_token = page.next_page_token
            if not request.page_token:
                return
