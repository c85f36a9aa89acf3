"""The estimator of the forest of many memories, with the queries that it asks."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from quercus.belief.arrays import Floats, Ints
from quercus.belief.contour import is_precise, is_vacuous
from quercus.belief.errors import InvalidInput, shown
from quercus.estimators.base import row_weights, seed_of
from quercus.estimators.columns import FittedColumns
from quercus.estimators.labels import read_labels
from quercus.estimators.pool import AskingClassifier, Pool
from quercus.specification import parameters
from quercus.specification.attributes import Attribute, Nominal
from quercus.specification.parameters import FOREST_LEVEL as LEVEL
from quercus.specification.strategies import MARGIN, QueryStrategy, chosen_strategy
from quercus.trees import (
    ChosenRow,
    Margin,
    MemoryForest,
    Table,
    first_most_likely,
    repeat_rows,
)
from quercus.trees.memory_forest.asking import choose_rows

MEMBERS = parameters.MEMBERS.with_changes(name="n_estimators")


class ActiveForestClassifier(AskingClassifier):
    """The forest of many memories, for active learning with few labels and for streams that change (theory §10).

    Extremely randomised evidential trees, and three naive-Bayes members beside them, learn from the last 200, 600,
    2,000, 6,000, 20,000 and 100,000 told rows, that is, rows whose label is not vacuous. The weight of a member depends
    on the accuracy of its recent predictions.

    Parameters
    ----------
    n_estimators
        Number of trees.
    prediction_level
        Level of the likelihood cuts of leaves, from 1 to 0: the bounds of a class are its least and greatest
        probability over them. A lower level makes the bounds of `predict_belief` and `predict_contour` wider and
        `predict_set` more cautious. At any level, the forest as a whole is trusted to ``T / (T + l)`` after T told
        rows.
    strategy
        Strategy of `query`, a name of the entry points ``quercus.strategies`` that gives the rows of a forest a worth.
    missing_label
        Value of a missing label in `y`, besides None and NaN.
    random_state
        Seed of the random draws. The forest is a function of it and of the rows, in their order.
    classes, categorical_features
        See `quercus.estimators.base.BeliefClassifier`.

    Notes
    -----
    Weights of rows are whole numbers: a row of weight 2 is two rows.

    `query` scores at most 1,000 candidates, fewer if rows have more than 30 attributes. The utilities are the scores
    (theory §10.5), 0 for a candidate without a score.

    Examples
    --------
    >>> X = [["sun", 1], ["sun", 2], ["rain", 1], ["rain", 5]]
    >>> forest = ActiveForestClassifier(classes=["no", "yes"], random_state=0)
    >>> forest.fit(X, ["no", None, "yes", {"no", "yes"}]).predict([["sun", 1], ["rain", 1]]).tolist()
    ['no', 'yes']
    >>> forest.query(X, ["no", None, "yes", "yes"]).tolist()
    [1]
    """

    model_: MemoryForest

    def __init__(
        self,
        *,
        n_estimators: int = MEMBERS.default,
        prediction_level: float = LEVEL.default,
        strategy: str | QueryStrategy = MARGIN,
        missing_label: object = np.nan,
        random_state: Any = None,
        classes: Sequence[Any] | None = None,
        categorical_features: object = "from_dtype",
    ) -> None:
        self.n_estimators = n_estimators
        self.prediction_level = prediction_level
        self.strategy = strategy
        self.missing_label = missing_label
        self.random_state = random_state
        self.classes = classes
        self.categorical_features = categorical_features

    def partial_fit(
        self, X: Any, y: Any, classes: Sequence[Any] | None = None, sample_weight: Any = None
    ) -> Self:
        """Learn more rows in addition to earlier ones, which members with short memories forget.

        The forest equals that of `fit` on all rows so far, for any division into batches. The first one tells which
        columns are names.

        Parameters
        ----------
        X, y, sample_weight
            See `fit`. New names of nominal values are learned.
        classes
            The frame, needed with the first batch unless it is a parameter or the batch names all classes.

        Raises
        ------
        ValueError
            If an argument is not as described, or `classes` are others than before.
        """
        if not hasattr(self, "model_"):
            frame = self.classes if classes is None else list(classes)
            return self._first_fit(X, y, frame, sample_weight)
        if classes is not None and list(classes) != self.classes_.tolist():
            raise ValueError(f"classes are {list(classes)}, were {self.classes_.tolist()} before")
        X = self._validate_rows(X, reset=False)
        labels = read_labels(y, self.classes_.tolist(), self.missing_label)
        contours = labels.plausibility_matrix()
        check_consistent_length(X, contours)
        columns = self._columns.with_new_names(X)
        values = columns.values(X)
        weights = row_weights(sample_weight, values)
        table = repeat_rows(Table.of_contours(values, columns.attributes, contours, weights))
        self._columns = columns  # not before: a batch that is refused leaves no names behind
        self.model_.observe(table.values, table.contours)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each row, (n,), the first of tied ones."""
        theta = self.predict_proba(X)  # first of all, so that what is not fitted says so
        chosen: NDArray[Any] = self.classes_[first_most_likely(theta)]
        return chosen

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, (n, l); without the bounds of `predict_contour`, which take longer."""
        check_is_fitted(self, "model_")
        X = self._validate_rows(X, reset=False)
        if self._columns.uncertain_rows(X) is not None:
            return super().predict_proba(X)
        return self.model_.theta(self._columns.values(X))

    def _first_fit(self, X: Any, y: Any, frame: Sequence[Any] | None, sample_weight: Any) -> Self:
        declared = self.classes
        self.classes = frame
        try:
            return self.fit(X, y, sample_weight)
        finally:
            self.classes = declared

    def _learn_model(self, table: Table) -> MemoryForest:
        table = repeat_rows(table)
        forest = self._empty_forest(table.attributes, table.size)
        forest.observe(table.values, table.contours)
        return forest

    def _columns_of(self, X: Any) -> FittedColumns:
        return FittedColumns.of(X, self.categorical_features, as_they_come=True)  # whatever the batches

    def _empty_forest(self, attributes: Sequence[Attribute], size: int) -> MemoryForest:
        return MemoryForest(
            np.array([isinstance(attribute, Nominal) for attribute in attributes]),
            size,
            trees=MEMBERS.check(self.n_estimators),
            seed=seed_of(self.random_state),
            level=LEVEL.check(self.prediction_level),
        )

    def _choose(self, pool: Pool, batch_size: int, return_utilities: bool) -> Ints | tuple[Ints, Floats]:
        strategy = chosen_strategy(self.strategy, "forest")
        if not isinstance(strategy, Margin):
            raise InvalidInput("strategy", f"is {shown(self.strategy)}, which gives rows no worth")
        forest = self._empty_forest(pool.attributes, len(pool.classes))
        forest.observe(pool.values, pool.contours)
        known = is_precise(pool.contours)
        known[pool.refused] = True
        askable = np.unique(pool.allowed[~known[pool.allowed]])
        covering = np.unique(pool.refused[is_vacuous(pool.contours[pool.refused])])
        choices = list(choose_rows(forest, askable, batch_size, covering, worth=strategy.worth))
        picked = np.array([choice.row - pool.offset for choice in choices], dtype=np.int64)
        return (
            (picked, _pick_utilities(choices, askable, pool.offset, pool.count))
            if return_utilities
            else picked
        )


def _pick_utilities(choices: Sequence[ChosenRow], askable: Ints, offset: int, count: int) -> Floats:
    """Return the scores of each row at each pick; the selected row has the largest one, even if others tie with it."""
    found = np.full((len(choices), count), np.nan)
    for pick, choice in enumerate(choices):
        found[pick, askable - offset] = 0.0
        found[pick, choice.pool - offset] = choice.scores
        found[pick, choice.row - offset] = np.nextafter(choice.scores.max(), np.inf)
        found[pick, [earlier.row - offset for earlier in choices[:pick]]] = np.nan
    return found
