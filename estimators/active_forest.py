"""The estimator of the forest of many memories, with the queries that it asks."""

from collections.abc import Sequence
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_consistent_length

from quercus.belief.contour import is_precise, is_vacuous
from quercus.estimators.base import BeliefClassifier, row_weights, seed_of
from quercus.estimators.columns import FittedColumns
from quercus.estimators.labels import read_labels
from quercus.estimators.pool import BATCH_SIZE, are_rows, row_numbers
from quercus.specification import parameters
from quercus.specification.attributes import Attribute, Nominal
from quercus.specification.parameters import FOREST_STRATEGY
from quercus.specification.parameters import LEAF_RELIABILITY as LEVEL
from quercus.trees import ChosenRow, MemoryForest, Table, repeat_rows
from quercus.trees.memory_forest.asking import choose_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MEMBERS = parameters.MEMBERS.with_changes(name="n_estimators")


class ActiveForestClassifier(BeliefClassifier):
    """The forest of many memories, for active learning with few labels and for streams that change (theory §10).

    Extremely randomised evidential trees, and three naive-Bayes members beside them, learn from the last 200, 600,
    2,000, 6,000, 20,000 and 100,000 told rows, that is, rows whose label is not vacuous. The weight of a member depends
    on the accuracy of its recent predictions.

    Parameters
    ----------
    n_estimators
        Number of trees.
    prediction_level
        Trust in leaves, from 1 (full) to 0 (none): a leaf of n rows is trusted to the n-th root of the level. A lower
        level makes the bounds of `predict_belief` and `predict_contour` wider and `predict_set` more cautious. At any
        level, the forest as a whole is trusted to ``T / (T + l)`` after T told rows.
    strategy
        Strategy of `query`, a name of `quercus.specification.strategies.FOREST_STRATEGIES`.
    missing_label
        Value of a missing label in `y`, besides None and NaN.
    random_state
        Seed of the random draws. The forest is a function of it and of the rows, in their order.
    classes, categorical_features
        See `quercus.estimators.base.BeliefClassifier`.

    Notes
    -----
    Weights of rows are whole numbers: a row of weight 2 is two rows.

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
        strategy: str = FOREST_STRATEGY.default,
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

    @overload
    def query(
        self,
        X: Any,
        y: Any,
        candidates: Any = None,
        batch_size: int = 1,
        return_utilities: Literal[False] = False,
        *,
        refused: Any = None,
    ) -> Ints: ...
    @overload
    def query(
        self,
        X: Any,
        y: Any,
        candidates: Any = None,
        batch_size: int = 1,
        *,
        return_utilities: Literal[True],
        refused: Any = None,
    ) -> tuple[Ints, Floats]: ...
    def query(
        self,
        X: Any,
        y: Any,
        candidates: Any = None,
        batch_size: int = 1,
        return_utilities: bool = False,
        *,
        refused: Any = None,
    ) -> Ints | tuple[Ints, Floats]:
        """Select the rows whose labels to ask for; the conventions are scikit-activeml's.

        The estimator need not be fitted, and the fitted model does not change.

        Parameters
        ----------
        X
            (n, K) all rows, with and without labels.
        y
            (n,) their labels, as in `fit`; rows with a missing or an uncertain label are candidates.
        candidates
            None: every row whose label does not name one class. Numbers (m,) of rows: only those of them. Rows (m, K):
            these rows, not those of `X`.
        batch_size
            Most labels to ask for. At most 1,000 candidates are scored, fewer if rows have more than 30 attributes.
        return_utilities
            Whether to return the utilities too.
        refused
            Numbers of rows of `X` that nobody could label. They are not selected; those without any label cover others
            like labelled rows, so that the queries leave their region.

        Returns
        -------
        indices
            (at most `batch_size`,) numbers of rows of `X`, or of `candidates` if these are rows.
        utilities
            Only with `return_utilities`: (len(indices), n) or (len(indices), m). In row b the scores at the selection
            of number b (theory §10.5), 0 for a candidate without a score; NaN for rows that are no candidates.

        Raises
        ------
        ValueError
            If an argument is not as described.
        """
        BATCH_SIZE.check(batch_size)
        strategy = FOREST_STRATEGY.check(self.strategy)
        fresh = clone(self)
        X = fresh._validate_rows(X, reset=True)
        labels = read_labels(y, self._known_classes(), self.missing_label)
        columns = self._columns_of(X)
        values, contours = columns.values(X), labels.plausibility_matrix()
        check_consistent_length(values, contours)
        unanswered = row_numbers(refused, len(values), "refused")
        forest = self._empty_forest(columns.attributes, len(labels.classes))
        forest.observe(values, contours)
        offset, count, allowed = 0, len(values), np.arange(len(values))
        if candidates is not None and are_rows(candidates):
            more = columns.values(fresh._validate_rows(candidates, reset=False))
            offset, count, allowed = len(values), len(more), len(values) + np.arange(len(more))
            forest.observe(more, np.ones((len(more), contours.shape[1])))
        elif candidates is not None:
            allowed = row_numbers(candidates, count)
        known = np.zeros(offset + count, dtype=bool)
        known[: len(contours)] = is_precise(contours)
        known[unanswered] = True
        askable = np.unique(allowed[~known[allowed]])
        covering = np.unique(unanswered[is_vacuous(contours[unanswered])])
        choices = list(choose_rows(forest, askable, batch_size, covering, strategy=strategy))
        picked = np.array([choice.row - offset for choice in choices], dtype=np.int64)
        return (picked, _pick_utilities(choices, askable, offset, count)) if return_utilities else picked

    def _known_classes(self) -> Sequence[Any] | None:
        fitted: Sequence[Any] | None = getattr(self, "classes_", None)
        return fitted if self.classes is None else self.classes


def _pick_utilities(choices: Sequence[ChosenRow], askable: Ints, offset: int, count: int) -> Floats:
    """Return the scores of each row at each pick; the selected row has the largest one, even if others tie with it."""
    found = np.full((len(choices), count), np.nan)
    for pick, choice in enumerate(choices):
        found[pick, askable - offset] = 0.0
        found[pick, choice.pool - offset] = choice.scores
        found[pick, choice.row - offset] = np.nextafter(choice.scores.max(), np.inf)
        found[pick, [earlier.row - offset for earlier in choices[:pick]]] = np.nan
    return found
