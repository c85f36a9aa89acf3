"""The interface of a query strategy.

A strategy chooses which labels to ask for, given the evidence and its tree (`QueryContext`). The choice is a function
of the log: a strategy has no state between calls, and random draws use a seed derived from the evidence.

The service calls the strategy of a specification through `quercus.trees.growth.stream.GrowthState.agenda`. An offline
loop does the same::

    specification = Specification(attributes, frame, alpha, 60, strategy=Committee(cover=0.1), learner=Abc45())
    state = grow(GrowthState.initial(specification), [Observed(values, contours)])
    while queries := state.agenda(1):
        (query,) = queries
        answer = Answered(query.instance, oracle(query.instance), 1.0, query.asked)
        state = grow(state, [answer])

With a single labeller who answers one query at a time, the service asks exactly these queries.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from quercus.specification.strategies import QueryStrategy
from quercus.trees.ask.query import Query, QueryContext, QueryPosition


class Strategy(QueryStrategy, ABC):
    """A query strategy: an immutable value. Its classes are `quercus.specification.parameter.parametric`."""

    __slots__ = ()

    @abstractmethod
    def queries(self, context: QueryContext, last: QueryPosition | None, limit: int) -> Iterator[Query]:
        """Yield queries in the order in which they would be asked if none of them were answered.

        Parameters
        ----------
        context
            The tree and its candidates.
        last
            Position of the last answered or refused query; None if there was none yet.
        limit
            Greatest number of queries that the caller takes; more may be yielded.
        """
