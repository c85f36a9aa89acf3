"""The estimator of the service's own tree."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.frame import MAX_NAME_CHARS, Frame
from quercus.estimators.base import BeliefClassifier
from quercus.estimators.columns import distinct_names
from quercus.trees.learners.model import Learned
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.learners.table import Table
from quercus.trees.specification import MAX_COUNT, Attribute, Numeric, Specification
from quercus.trees.stream import GrowthState, Observed, grow

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ActiveBeliefTreeClassifier(BeliefClassifier):
    """The active belief decision tree, ABC4.5 (Ma, Destercke, Wang 2016): the tree that the service grows.

    Parameters
    ----------
    alpha
        Level of the likelihood cut, in [0, 1]: the lower, the wider the gain intervals, the more is asked.
    min_instances
        A node with fewer rows is a leaf.
    max_depth
        Depth at which every node is a leaf; None for no limit.
    bins
        Number of equal-width bins of a numeric column; None: binary thresholds instead.
    max_cuts
        Most candidate thresholds of a numeric column, where `bins` is None.
    strategy
        What is asked, by name.
    missing_label
        What stands in `y` for a label that is not known, besides None and NaN.
    classes, categorical_features
        As of `quercus.estimators.base.BeliefClassifier`.

    Examples
    --------
    >>> X = [["sun", 1], ["sun", 2], ["rain", 1], ["rain", 5]]
    >>> tree = ActiveBeliefTreeClassifier(classes=["no", "yes"]).fit(X, ["no", None, "yes", {"no", "yes"}])
    >>> tree.predict_contour([["sun", 1]]).round(2).tolist()
    [[1.0, 0.2]]
    """

    def __init__(
        self,
        *,
        alpha: float = 0.8,
        min_instances: int = 2,
        max_depth: int | None = None,
        bins: int | None = 4,
        max_cuts: int = 32,
        strategy: str = "published",
        missing_label: object = np.nan,
        classes: Sequence[Any] | None = None,
        categorical_features: object = "from_dtype",
    ) -> None:
        self.alpha = alpha
        self.min_instances = min_instances
        self.max_depth = max_depth
        self.bins = bins
        self.max_cuts = max_cuts
        self.strategy = strategy
        self.missing_label = missing_label
        self.classes = classes
        self.categorical_features = categorical_features

    def _learn(self, table: Table) -> Learned:
        names = distinct_names(self.classes_.tolist(), MAX_NAME_CHARS)
        specification = self._specification(table.attributes, names, len(table))
        state = grow(GrowthState.initial(specification), [Observed(table.values, table.contours)])
        return TreeModel(specification.attributes, table.size, state.flat, state.edges)

    def _specification(
        self, attributes: Sequence[Attribute], names: Sequence[str], rows: int
    ) -> Specification:
        return Specification(
            tuple(
                self._cut(attribute) if isinstance(attribute, Numeric) else attribute
                for attribute in attributes
            ),
            Frame(tuple(names)),
            alpha=self.alpha,
            budget=MAX_COUNT,
            min_instances=self.min_instances,
            max_depth=self.max_depth,
            warmup_rows=rows,
            strategy=self.strategy,
        )

    def _cut(self, attribute: Numeric) -> Numeric:
        if self.bins is None:
            return replace(attribute, cuts=self.max_cuts)
        return replace(attribute, bins=self.bins)
