"""The interface of a query strategy.

A strategy chooses which labels to ask for. It is given the evidence and the tree that follows from it
(`QueryContext`), so what it chooses is a function of the log: it keeps nothing between calls, and what it draws at
random it draws from a seed that the evidence sets.

The service asks the strategy that a specification names through `quercus.trees.growth.stream.GrowthState.agenda`.
An offline loop does the same, with the same objects::

    specification = Specification(attributes, frame, alpha, 60, strategy=Committee(cover=0.1), learner=Abc45())
    state = grow(GrowthState.initial(specification), [Observed(values, contours)])
    while queries := state.agenda(1):
        (query,) = queries
        answer = Answered(query.instance, oracle(query.instance), 1.0, query.asked)
        state = grow(state, [answer])

With one labeller who answers one query at a time the service asks exactly these queries.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from quercus.specification.strategies import QueryStrategy
from quercus.trees.ask.query import Query, QueryContext, QueryPosition


class Strategy(QueryStrategy, ABC):
    """A query strategy; a value without state. Subclasses are `quercus.specification.parameter.parametric`."""

    __slots__ = ()

    @abstractmethod
    def queries(self, context: QueryContext, last: QueryPosition | None, limit: int) -> Iterator[Query]:
        """Yield queries in the order in which they would be asked if none were answered meanwhile.

        Parameters
        ----------
        context
            The tree and its candidates.
        last
            Position of the last answered or refused query. None: there was no query yet.
        limit
            Most queries that will be taken; more may be yielded.
        """
