"""Base class of the estimator of the forest of many memories, which selects queries and learns in batches."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from quercus.belief.arrays import Floats, Ints
from quercus.belief.contour import is_precise, is_vacuous
from quercus.belief.errors import InvalidInput, shown
from quercus.estimators.base import row_weights
from quercus.estimators.columns import FittedColumns
from quercus.estimators.labels import read_labels
from quercus.estimators.pool import AskingClassifier, Pool
from quercus.specification.strategies import QueryStrategy, chosen_strategy
from quercus.trees import (
    ActiveForest,
    Calibration,
    ChosenRow,
    Doubt,
    Margin,
    MemoryForest,
    Table,
    first_most_likely,
    forest_of,
    repeat_rows,
)
from quercus.trees.memory_forest.asking import choose_rows


class AskingForestClassifier(AskingClassifier):
    """The forest of many memories as an estimator, for active learning with few labels and for streams that change.

    Notes
    -----
    Extremely randomised evidential trees, and three naive-Bayes members beside them, learn from the last 200, 600,
    2,000, 6,000, 20,000 and 100,000 labelled rows, that is, rows whose label is not vacuous. The weight of a member
    depends on the accuracy of its recent predictions. The bounds of the whole forest are discounted to the
    reliability ``T / (T + l)`` after T labelled rows. The forest depends only on its seed and on the rows in their
    order.

    Weights of rows must be whole numbers: a row of weight 2 counts as two rows.

    `query` scores at most 1,000 candidates, fewer if rows have more than 30 attributes. The utilities are the scores
    (theory §10.5), 0 for a candidate without a score.

    Examples
    --------
    >>> from quercus.estimators import ActiveForestClassifier
    >>> X = [["sun", 1], ["sun", 2], ["rain", 1], ["rain", 5]]
    >>> forest = ActiveForestClassifier(classes=["no", "yes"], random_state=0)
    >>> forest.fit(X, ["no", None, "yes", {"no", "yes"}]).predict([["sun", 1], ["rain", 1]]).tolist()
    ['no', 'yes']
    >>> forest.query(X, ["no", None, "yes", "yes"]).tolist()
    [1]
    """

    model_: MemoryForest
    strategy: str | QueryStrategy

    @abstractmethod
    def _make_learner(self) -> ActiveForest:
        """Return the learner with its parameters."""

    def partial_fit(
        self, X: Any, y: Any, classes: Sequence[Any] | None = None, sample_weight: Any = None
    ) -> Self:
        """Learn further rows; members with short memories forget earlier ones.

        The forest equals that of `fit` on all rows so far, however they are divided into batches. The first batch
        determines which columns are nominal.

        Parameters
        ----------
        X, y, sample_weight
            See `fit`. New names of nominal values are learned.
        classes
            The frame, needed with the first batch unless it is a parameter or the batch names all classes. Later
            batches may add classes after the earlier ones: earlier rows with a vacuous label may be of these, all
            others are not. Columns do not change.

        Raises
        ------
        ValueError
            If an argument is not as described, or `classes` do not begin with those of before.
        """
        if not hasattr(self, "model_"):
            frame = self.classes if classes is None else list(classes)
            return self._first_fit(X, y, frame, sample_weight)
        known, frame = self.classes_.tolist(), None if classes is None else list(classes)
        if frame is not None and frame[: len(known)] != known:
            raise ValueError(f"classes are {frame}, were {known} before: add new classes at the end")
        X = self._validate_rows(X, reset=False)
        labels = read_labels(y, frame or known, self.missing_label)
        contours = labels.plausibility_matrix()
        check_consistent_length(X, contours)
        columns = self._columns.with_new_names(X)
        cells = columns.cells(X)
        weights = row_weights(sample_weight, cells.values)
        table = repeat_rows(Table.of_contours(cells, columns.attributes, contours, weights))
        self._columns = columns  # only now, so that a refused batch adds no names
        if len(labels.classes) > len(known):
            self.model_, self.classes_ = self.model_.with_classes(len(labels.classes)), labels.classes
        self.model_.observe(table.values, table.contours, table.parts, asked=_is_pool(table))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each row, (n,); of tied classes, the first."""
        theta = self.predict_proba(X)  # first, so that an unfitted estimator raises NotFittedError
        chosen: NDArray[Any] = self.classes_[first_most_likely(theta)]
        return chosen

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, (n, l); without the bounds of `predict_contour`, which take longer."""
        check_is_fitted(self, "model_")
        X = self._validate_rows(X, reset=False)
        if self._columns.uncertain_rows(X) is not None:
            return super().predict_proba(X)
        return self.model_.theta(self._columns.values(X))

    def predict_doubt(self, X: Any) -> Doubt:
        """Return the doubt about each row in bits: overlap, which labels do not reduce, and ignorance, which they do.

        Their sum is the entropy of `predict_proba` (theory §10.9, also on how well the two can be separated).

        Examples
        --------
        >>> from quercus.estimators import ActiveForestClassifier
        >>> X = [[0.0]] * 40 + [[1.0]] * 40
        >>> forest = ActiveForestClassifier(random_state=0).fit(X, ["a", "b"] * 20 + ["a"] * 40)
        >>> doubt = forest.predict_doubt([[0.0], [1.0]])
        >>> doubt.overlap.round(1).tolist(), doubt.ignorance.round(1).tolist()
        ([1.0, 0.0], [0.0, 0.0])
        """
        theta = self.predict_proba(X)  # first, so that an unfitted estimator raises NotFittedError
        return Doubt.of(theta, self.model_.overlaps(self._uncertain_cells(X)))

    def calibration(self) -> Calibration:
        """Return the scores for sets of stated coverage: of `conformalize`, else of the forest's own predictions.

        The forest has predicted rows before it learned their labels (theory §10.8). If there were unlabelled rows too,
        the labelled rows are assumed to be selected, and weighted to represent all rows.
        """
        check_is_fitted(self, "model_")
        return super().calibration() if self._calibration is not None else self.model_.calibration()

    def _first_fit(self, X: Any, y: Any, frame: Sequence[Any] | None, sample_weight: Any) -> Self:
        declared = self.classes
        self.classes = frame
        try:
            return self.fit(X, y, sample_weight)
        finally:
            self.classes = declared

    def _learn_model(self, table: Table) -> MemoryForest:
        table = repeat_rows(table)
        forest = forest_of(self._make_learner(), table.attributes, table.size)
        forest.observe(table.values, table.contours, table.parts, asked=_is_pool(table))
        return forest

    def _columns_of(self, X: Any) -> FittedColumns:
        return FittedColumns.of(X, self.categorical_features, as_they_come=True)  # independent of the batches

    def _choose(self, pool: Pool, batch_size: int, return_utilities: bool) -> Ints | tuple[Ints, Floats]:
        strategy = chosen_strategy(self.strategy, "forest")
        if not isinstance(strategy, Margin):
            raise InvalidInput(
                "strategy", f"is {shown(self.strategy)}, which does not score the rows of a forest"
            )
        forest = forest_of(self._make_learner(), pool.attributes, len(pool.classes))
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


def _is_pool(table: Table) -> bool:
    """Return whether some rows have no label, so that the others may have been selected."""
    return bool(is_vacuous(table.contours).any())


def _pick_utilities(choices: Sequence[ChosenRow], askable: Ints, offset: int, count: int) -> Floats:
    """Return the scores of each row at each pick; the selected row has the largest one, even if others tie with it."""
    found = np.full((len(choices), count), np.nan)
    for pick, choice in enumerate(choices):
        found[pick, askable - offset] = 0.0
        found[pick, choice.pool - offset] = choice.scores
        found[pick, choice.row - offset] = np.nextafter(choice.scores.max(), np.inf)
        found[pick, [earlier.row - offset for earlier in choices[:pick]]] = np.nan
    return found
