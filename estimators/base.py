"""Base classes of the estimators: they convert columns and labels, learn a model, and return its predictions."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from quercus.belief.arrays import Bools, Floats
from quercus.belief.errors import InvalidInput, shown
from quercus.belief.mass import MassFunction
from quercus.estimators.columns import FittedColumns, as_array, distinct_names, is_frame
from quercus.estimators.executors import open_executor
from quercus.estimators.labels import ParsedLabels, are_classes, read_labels
from quercus.estimators.naming import named_trees
from quercus.specification.learners import Pruning
from quercus.trees import (
    Basis,
    Calibration,
    FlatTree,
    LearnedModel,
    Learner,
    Predictions,
    Table,
    TreeLearner,
    TreeNames,
    UncertainValues,
    expected_accuracy,
    fit,
)
from quercus.view.trees.dot import to_dot
from quercus.view.trees.svg import to_svg
from quercus.view.trees.text import to_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PredictiveModel(Protocol):
    """The interface of a model that predicts."""

    def predict(self, values: Floats) -> Predictions:
        """Return the predictions for rows of values (n, K)."""

    def predict_cells(self, cells: UncertainValues) -> Predictions:
        """Return the predictions for rows in which a value may be a set or a range."""


class BeliefClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]  # sklearn has no types
    """Base of the estimators; subclasses only choose the model.

    Parameters
    ----------
    classes
        The frame, in order. None: taken from `y`, see `quercus.estimators.labels.read_labels`.
    categorical_features
        The columns whose values are names: ``"from_dtype"`` (those of dtype category, string or object), or their
        numbers, their names, or a mask; None: no column.

    Attributes
    ----------
    classes_
        (l,) the frame.
    n_features_in_
        Number of columns, K.
    feature_names_in_
        (K,) names of the columns, if X had names and all were strings.
    model_
        The learned model, `quercus.trees.learners.predicting.LearnedModel`, or another that predicts.
    """

    classes: Sequence[Any] | None
    categorical_features: object

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows and their labels.

        Parameters
        ----------
        X
            (n, K) array or DataFrame; missing cells are unknown values. A cell may be a set of values or a range.
        y
            Classes (n,), None or NaN for missing ones; plausibilities (n, l); or a list with sets of classes, mappings
            of classes to plausibilities or of sets to masses, or mass functions.
        sample_weight
            (n,) weights of the rows; 1 each by default. A row of weight 2 counts as two rows, one of weight 0 not at
            all.

        Raises
        ------
        ValueError
            If an argument is not as described; `quercus.belief.errors.InvalidInput` is a ValueError too.
        """
        X = self._validate_rows(X, reset=True)
        labels = read_labels(y, self.classes, getattr(self, "missing_label", np.nan))
        said = labels.contours if labels.labels is None else labels.labels
        check_consistent_length(X, said)
        self._columns = self._columns_of(X)
        cells = self._columns.cells(X)
        weights = row_weights(sample_weight, cells.values)
        self.classes_ = labels.classes
        self._calibration: Calibration | None = None
        self.model_ = self._learn_model(_make_table(cells, self._columns, labels, weights))
        return self

    @abstractmethod
    def _learn_model(self, table: Table) -> PredictiveModel:
        """Return the model of a table."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each row, (n,); of tied classes, the first."""
        found = self._predict_rows(X)  # first, so that an unfitted estimator raises NotFittedError
        chosen: NDArray[Any] = self.classes_[found.klass]
        return chosen

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, (n, l).

        For models with mass functions it is the pignistic probability, else the estimate.
        """
        return self._predict_rows(X).theta

    def predict_contour(self, X: Any) -> Floats:
        """Return the plausibility of each class, (n, l)."""
        return self._predict_rows(X).plausibility

    def predict_belief(self, X: Any) -> Floats:
        """Return the belief of each class, (n, l)."""
        return self._predict_rows(X).belief

    def predict_set(self, X: Any, coverage: float | None = None) -> Bools:
        """Return the set-valued predictions, (n, l), true for the classes in the set.

        Parameters
        ----------
        X
            The rows.
        coverage
            Desired frequency with which sets contain the true class, in (0, 1); see `conformalize`. None: a class is
            left out if the belief of another exceeds its plausibility (interval dominance).

        Notes
        -----
        `quercus.trees.learners.metrics` scores such sets.

        Raises
        ------
        ValueError
            If a coverage is not in (0, 1), or the estimator needs to be conformalized first.
        """
        found = self._predict_rows(X)
        return found.classes if coverage is None else self.calibration().sets(found.theta, coverage)

    def conformalize(self, X: Any, y: Any) -> Self:
        """Compute the scores for sets of stated coverage from rows that were not learned (split conformal prediction).

        For rows drawn as these were, the sets of `predict_set` then contain the true class with at least the stated
        probability, for any learner. With uncertain labels, this holds if the predicted probabilities are right, and
        the classes that a label leaves open do not depend on the true one (theory §10.8).

        Parameters
        ----------
        X, y
            See `fit`; the classes are those of the fitted estimator. Rows without a label do not count. For a coverage
            of 90 % at least 9 rows are needed, for 95 % 19; with fewer each set has all classes.

        Examples
        --------
        >>> from quercus.estimators import C45Classifier
        >>> tree = C45Classifier().fit([[1], [2], [8], [9]], ["a", "a", "b", "b"])
        >>> held_out = tree.conformalize([[0], [1], [3], [9], [7]], ["a", "a", "b", "b", "b"])
        >>> held_out.predict_set([[1]], coverage=0.6).tolist(), held_out.predict_set([[1]], coverage=0.8).tolist()
        ([[True, False]], [[True, True]])
        """
        predicted = self._predict_rows(X).theta
        labels = read_labels(y, self.classes_.tolist(), getattr(self, "missing_label", np.nan))
        contours = labels.plausibility_matrix()
        check_consistent_length(predicted, contours)
        told = contours.min(axis=1) < contours.max(axis=1)
        self._calibration = Calibration.of(predicted[told], contours[told], Basis.LABELLED)
        return self

    def calibration(self) -> Calibration:
        """Return the scores for sets of stated coverage.

        Raises
        ------
        ValueError
            If there are none; `conformalize` computes them from held-out rows.
        """
        held_out: Calibration | None = getattr(self, "_calibration", None)
        if held_out is None:
            raise ValueError(
                f"{type(self).__name__} has no scores for a coverage: "
                "call conformalize(X, y) with rows that it has not learned"
            )
        return held_out

    def predict_mass(self, X: Any) -> list[MassFunction]:
        """Return a mass function for each row; bit ``c`` of a focal set is ``classes_[c]``.

        Raises
        ------
        ValueError
            If the model has no mass functions.
        """
        masses = self._predict_rows(X).masses
        if masses is None:
            raise ValueError(
                f"{type(self).__name__} has no mass functions: its bounds are predict_belief and predict_contour"
            )
        return list(masses)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean probability that predictions are right, according to `y`; with precise labels, the accuracy.

        This makes cross-validation and grid searches work with uncertain labels, if `cv` is a splitter that does not
        stratify, such as ``KFold``.

        Parameters
        ----------
        X, y
            See `fit`; the classes are those of the fitted estimator.
        sample_weight
            (n,) weights of the rows.
        """
        missing = getattr(self, "missing_label", np.nan)
        if are_classes(y, missing):
            return float(super().score(X, y, sample_weight))
        predicted = self._predict_rows(X).klass
        labels = read_labels(y, self.classes_.tolist(), missing)
        check_consistent_length(predicted, labels.plausibility_matrix())
        nothing = np.full((len(predicted), len(self._columns.attributes)), np.nan)  # the values do not matter
        return expected_accuracy(
            _make_table(UncertainValues(nothing), self._columns, labels, None).pignistic,
            predicted,
            sample_weight,
        )

    def export_text(self, tree: int = 0, *, depth: int | None = None) -> str:
        """Return a tree as indented lines.

        Parameters
        ----------
        tree
            Number of the tree, if there are several.
        depth
            Levels below the root; the lowest nodes give the number of nodes that they hide. None: all.
        """
        return to_text(*self._named_tree(tree), depth)

    def export_dot(self, tree: int = 0, *, depth: int | None = None) -> str:
        """Return a tree in Graphviz's language; parameters as in `export_text`."""
        return to_dot(*self._named_tree(tree), depth)

    def export_svg(self, tree: int = 0, *, depth: int | None = None) -> str:
        """Return a tree as an SVG picture; parameters as in `export_text`.

        Raises
        ------
        ValueError
            If more than 5,000 nodes would be drawn.
        """
        return to_svg(*self._named_tree(tree), depth)

    def plot_tree(self, ax: "Axes | None" = None, *, tree: int = 0, depth: int | None = None) -> "Axes":
        """Draw a tree into axes of matplotlib; the picture is that of `export_svg`.

        Parameters
        ----------
        ax
            The axes. None: those of a new figure of the picture's size.
        tree
            Number of the tree, if there are several.
        depth
            See `export_text`.

        Raises
        ------
        ValueError
            As in `export_svg`.
        """
        from quercus.view.plots.trees import tree as draw  # noqa: PLC0415 - matplotlib, for those who plot

        return draw(self.export_svg(tree, depth=depth), ax)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    def _columns_of(self, X: Any) -> FittedColumns:
        return FittedColumns.of(X, self.categorical_features)

    def _validate_rows(self, X: Any, *, reset: bool) -> Any:
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if not len(X):
                raise ValueError("Found array with 0 sample(s), while a minimum of 1 is required.")
            return X
        return validate_data(self, as_array(X), reset=reset, dtype=None, ensure_all_finite="allow-nan")

    def _predict_rows(self, X: Any) -> Predictions:
        cells = self._uncertain_cells(X)
        return self.model_.predict_cells(cells) if cells.parts else self.model_.predict(cells.values)

    def _uncertain_cells(self, X: Any) -> UncertainValues:
        """Return rows to predict as cells, whose values may be sets or ranges."""
        check_is_fitted(self, "model_")
        return self._columns.cells(self._validate_rows(X, reset=False))

    def _named_tree(self, tree: int) -> tuple[FlatTree, TreeNames]:
        check_is_fitted(self, "model_")
        if not isinstance(self.model_, LearnedModel):
            raise ValueError(
                f"{type(self).__name__} has no tree to show: its members are not meant to be read"
            )
        named = list(named_trees(self.model_, distinct_names(self.classes_.tolist())))
        if not 0 <= tree < len(named):
            raise ValueError(f"tree is {tree}, must lie in [0, {len(named)})")
        return named[tree]


class TableClassifier(BeliefClassifier):
    """Base of the estimators whose model is that of a learner."""

    @abstractmethod
    def _make_learner(self) -> Learner:
        """Return the learner with its parameters."""

    def _learn_model(self, table: Table) -> LearnedModel:
        return fit(self._make_learner(), table)


class ParallelClassifier(TableClassifier):
    """Base of the estimators that can grow trees in several processes; the model does not depend on their number."""

    n_jobs: int | None
    executor: str | None

    def _learn_model(self, table: Table) -> LearnedModel:
        executor = self.executor
        if executor is None:
            executor = "local" if self.n_jobs is None else f"processes:{effective_n_jobs(self.n_jobs)}"
        with open_executor(executor) as opened:
            return fit(self._make_learner(), table, executor=opened)


def seed_of(random_state: Any) -> int:
    """Return the seed that a ``random_state`` gives."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def tree_of(base: object, default: TreeLearner) -> TreeLearner:
    """Return the learner of a forest's trees: that of the estimator ``base``, or the default if it is None.

    Raises
    ------
    InvalidInput
        If it is not an estimator of a tree.
    """
    if base is None:
        return default
    tree = base._make_learner() if isinstance(base, TableClassifier) else None
    if not isinstance(tree, TreeLearner):
        raise InvalidInput("base", f"is {shown(base)}, must be an estimator of a tree")
    return tree


def pruning_of(kind: str | None, level: float) -> Pruning | None:
    """Return the pruning that an estimator's parameters describe."""
    return None if kind is None else Pruning(kind, level)  # type: ignore[arg-type]


def row_weights(sample_weight: Any, values: Floats) -> Floats | None:
    """Return the weights (n,) of rows of values (n, K); None for 1 each."""
    if sample_weight is None:
        return None
    weights: Floats = _check_sample_weight(sample_weight, values, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample weights are all zero; at least one row must count")
    return weights


def _make_table(
    cells: UncertainValues, columns: FittedColumns, labels: ParsedLabels, weights: Floats | None
) -> Table:
    if labels.labels is None:
        return Table.of_contours(cells, columns.attributes, labels.plausibility_matrix(), weights)
    return Table.of_labels(cells, columns.attributes, labels.labels, len(labels.classes), weights)
