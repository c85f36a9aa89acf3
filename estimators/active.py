"""Base class of the estimator of the service's tree, which selects queries."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.belief.contour import is_precise
from quercus.belief.frame import Frame
from quercus.estimators.columns import distinct_names
from quercus.estimators.pool import AskingClassifier, Pool
from quercus.specification.attributes import Attribute, Numeric
from quercus.specification.learners import OF_THE_MODEL
from quercus.specification.model import Specification
from quercus.specification.parameters import MAX_COUNT
from quercus.specification.strategies import QueryStrategy, chosen_strategy
from quercus.trees import (
    Abc45,
    Answered,
    GrowthState,
    LearnedModel,
    Observed,
    QueryPosition,
    Refused,
    Table,
    TreeModel,
    grow,
    repeat_rows,
)

NOWHERE = QueryPosition((), None, None, ())  # of a refusal outside any round


class AskingTreeClassifier(AskingClassifier):
    """The active tree as an estimator: the tree that the service grows, and its queries.

    Notes
    -----
    Weights of rows must be whole numbers: a row of weight 2 counts as two rows.

    The estimator remembers its last query, so that strategies that visit the children of a node in turn, like the
    published one, continue there once that row has its label. `query` selects fewer rows than requested, possibly none,
    if no further label could change the tree. The utility is 1 for the selected row, and decreases by rank to 0 for
    rows that would not be selected. Queries are chosen for the unpruned tree.

    Examples
    --------
    >>> from quercus.estimators import ActiveBeliefTreeClassifier
    >>> X = [["sun", 1], ["sun", 2], ["rain", 1], ["rain", 5]]
    >>> tree = ActiveBeliefTreeClassifier(classes=["no", "yes"]).fit(X, ["no", None, "yes", {"no", "yes"}])
    >>> tree.predict_contour([["sun", 1]]).round(2).tolist()
    [[1.0, 0.85]]
    >>> tree.query(X, ["no", None, "yes", {"no", "yes"}]).tolist()
    [1]
    """

    bins: int | None
    max_cuts: int
    strategy: str | QueryStrategy

    @abstractmethod
    def _make_learner(self) -> Abc45:
        """Return the learner with its parameters."""

    def _learn_model(self, table: Table) -> LearnedModel:
        names = distinct_names(self.classes_.tolist())
        table = repeat_rows(table)
        specification = self._make_specification(table.attributes, names, len(table))
        state = grow(
            GrowthState.initial(specification), [Observed(table.values, table.contours, table.parts)]
        )
        return TreeModel(specification.attributes, table.size, state.flat, state.edges)

    def _choose(self, pool: Pool, batch_size: int, return_utilities: bool) -> Ints | tuple[Ints, Floats]:
        values, contours = pool.values, pool.contours
        specification = self._make_specification(pool.attributes, distinct_names(pool.classes), len(values))
        closed = np.ones(len(values), dtype=bool)
        closed[pool.allowed] = False
        events: list[Observed | Refused | Answered] = [
            Observed(values, contours),
            *(Refused(row, NOWHERE) for row in np.unique(pool.refused).tolist()),
        ]
        last: _LastQuery | None = getattr(self, "_last", None)
        if last is not None and last.is_answered(specification, values, contours):
            events.append(Answered(last.row, contours[last.row], 1.0, last.asked))
        state = grow(GrowthState.initial(specification), events)
        agenda = state.agenda(pool.count if return_utilities else batch_size, closed)
        if agenda and not pool.offset:
            end = agenda[:batch_size][-1]
            self._last = _LastQuery(specification, end.instance, values[end.instance].copy(), end.asked)
        order = np.array([query.instance - pool.offset for query in agenda], dtype=np.int64)
        picked = order[:batch_size]
        if not return_utilities:
            return picked
        askable = state.evidence.candidates(pool.allowed) - pool.offset
        return picked, _pick_utilities(order, picked, askable, pool.count)

    def _make_specification(
        self, attributes: Sequence[Attribute], names: Sequence[str], rows: int
    ) -> Specification:
        learner = self._make_learner()
        split: dict[str, Any] = {"cuts": self.max_cuts} if self.bins is None else {"bins": self.bins}
        return Specification(
            tuple(replace(each, **split) if isinstance(each, Numeric) else each for each in attributes),
            Frame(tuple(names)),
            budget=MAX_COUNT,
            warmup_rows=rows,
            strategy=chosen_strategy(self.strategy, learner.asks),
            learner=learner,
            **{name: getattr(learner, name) for name in OF_THE_MODEL},
        )


@dataclass(frozen=True, eq=False)
class _LastQuery:
    """The last query, from which strategies continue that visit the children of a node in turn."""

    specification: Specification
    row: int
    values: Floats
    asked: QueryPosition

    def is_answered(self, specification: Specification, values: Floats, contours: Floats) -> bool:
        """Return whether these are the same rows, and the queried one is now labelled."""
        return (
            self.specification == specification
            and np.array_equal(self.values, values[self.row], equal_nan=True)
            and bool(is_precise(contours[self.row]))
        )


def _pick_utilities(order: Ints, picked: Ints, askable: Ints, count: int) -> Floats:
    """Return the utilities of each row at each pick: ranks, because strategies have scores in different units."""
    utilities = np.full(count, np.nan)
    utilities[askable] = 0.0
    utilities[order] = 1.0 - np.arange(len(order)) / max(len(order), 1)
    found = np.tile(utilities, (len(picked), 1))
    for pick in range(1, len(picked)):
        found[pick, picked[:pick]] = np.nan
    return found
