"""What labellers do, by the synchronous client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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

        def _call(self, method: Callable[..., Any], request: Any, timeout_s: float | None = None) -> Any: ...

    def _ask(self, ask: Ask[T], timeout_s: float | None = None) -> T:
        return ask.read(self._call(getattr(self._stubs.queries, ask.method), ask.request, timeout_s))

    def _say(self, model: str, ask: Ask[AnswerReport]) -> AnswerReport:
        report = self._ask(ask)
        self._sequences.saw(model, report.model_uid, report.committed_sequence)
        return report

    def answer(
        self,
        query: Query,
        label: LabelLike,
        reliability: float | None = None,
        *,
        comment: str = "",
        took_s: float | None = None,
    ) -> AnswerReport:
        """Answer a query.

        Parameters
        ----------
        query
            As :meth:`queries` gave it.
        label
            A class name, a set of names, a dict name -> plausibility (a name left out is impossible), a dict
            frozenset of names -> mass, an array (l,) of plausibilities, or ``None`` (or NaN): nothing is
            known.
        reliability
            Chance that you are right, in (0, 1]; ``None``: 1, or estimated, as the labelling policy says.
        comment
            Kept with the answer.
        took_s
            How long you took, in seconds; ``None``: since the query was leased.

        Raises
        ------
        FailedPrecondition
            When the lease ended and the query is answered, withdrawn, or another's by now.
        """
        return self._say(query.model, asks.answer(query, label, reliability, comment, took_s))

    def refuse(self, query: Query, *, comment: str = "") -> AnswerReport:
        """Say that nobody can tell: the instance is not asked again."""
        return self._say(query.model, asks.refuse(query, comment))

    def skip(self, query: Query, *, comment: str = "") -> None:
        """Say that it is not for you: others are asked, you are not asked about the instance again."""
        self._ask(asks.give_back(query, asks.How.HOW_SKIP, comment=comment))

    def postpone(self, query: Query, delay_s: float = 600.0, *, comment: str = "") -> None:
        """Give a query back for later: nobody gets it before ``delay_s`` (1 to 86,400) have passed."""
        self._ask(asks.give_back(query, asks.How.HOW_POSTPONE, delay_s, comment))

    def release(self, query: Query) -> None:
        """Give a query back to whoever asks next."""
        self._ask(asks.give_back(query))

    def extend_lease(self, query: Query, lease_s: float) -> None:
        """Hold a query for ``lease_s`` seconds from now."""
        self._ask(asks.extend(query, lease_s))

    def correct(
        self,
        query: Query,
        label: LabelLike,
        reliability: float | None = None,
        *,
        labeller: str | None = None,
        comment: str = "",
    ) -> AnswerReport:
        """Put another answer in the place of your own; the old one stays in the history.

        Parameters
        ----------
        query
            That was answered.
        label, reliability, comment
            As of :meth:`answer`.
        labeller
            Who corrects; who leased the query unless told. Who may is said by the labelling policy.
        """
        return self._say(query.model, asks.correct(query, label, labeller, reliability, comment))

    def undo(self, query: Query, *, labeller: str | None = None, comment: str = "") -> AnswerReport:
        """Take your answer, or your refusal, back: the instance may be asked again. The budget stays spent."""
        return self._say(query.model, asks.undo(query, labeller, comment))

    def labellers(self, model: str) -> list[Labeller]:
        """What each labeller of a model did, in order of name."""
        return self._ask(asks.labellers(model))

    def labelling_policy(self, model: str) -> LabellingPolicy:
        """How a model is labelled."""
        return self._ask(asks.policy(model))

    def set_labelling_policy(self, model: str, policy: LabellingPolicy) -> LabellingPolicy:
        """Change how a model is labelled; it holds for what is leased and answered from now on."""
        return self._ask(asks.set_policy(model, policy))

    def list_queries(self, model: str, states: Iterable[str] = ()) -> Iterator[Query]:
        """Queries in the given states (open, leased, answered, refused, withdrawn; none given: all)."""
        request = asks.list_queries(model, states)
        while True:
            page = self._call(self._stubs.queries.ListQueries, request)
            yield from map(convert.query, page.queries)
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    def query_history(self, model: str, number: int | None = None) -> Iterator[QueryStep]:
        """Every step of one query of a model, or of all, in the order they were taken."""
        request = asks.history(model, number)
        while True:
            page = self._call(self._stubs.queries.ListQueryHistory, request)
            yield from map(asks.step, page.steps)
            request.page_token = page.next_page_token
            if not request.page_token:
                return
