"""Belief decision trees by total uncertainty as a learner, which chooses λ (theory §5)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from quercus.belief.errors import InvalidInput
from quercus.specification.parameter import parametric
from quercus.specification.parameters import (
    COMBINE,
    FOLDS,
    LAM,
    MAX_CUTS,
    MAX_DEPTH,
    MAX_MASS_CLASSES,
    MIN_INSTANCES,
    SEED,
)
from quercus.trees.learners.executor import TaskExecutor
from quercus.trees.learners.lambda_path import choose_lambda
from quercus.trees.learners.learner import TreeLearner
from quercus.trees.learners.one_against_rest import Combine
from quercus.trees.learners.predicting import LearnedModel
from quercus.trees.learners.stopping_rules import Wrap
from quercus.trees.learners.table import Table
from quercus.trees.learners.total_uncertainty import DEFAULT_LAMBDA, LAMBDAS, fit_total_uncertainty


@parametric
class TotalUncertainty(TreeLearner):
    """Belief decision trees by total uncertainty (Vannoorenberghe 2002): one for two classes, else one per class.

    Source: theory §5.
    """

    name: ClassVar[str] = "total-uncertainty"
    has_masses: ClassVar[bool] = True
    lam: float | None = LAM.dataclass_field()
    combine: Combine = COMBINE.dataclass_field()
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int | None = MAX_CUTS.dataclass_field()
    folds: int = FOLDS.dataclass_field()
    seed: int = SEED.dataclass_field()

    def check_classes(self, size: int) -> None:
        """Refuse more than 16 classes for Dempster's rule."""
        if size > MAX_MASS_CLASSES and self.combine == "dempster":
            raise InvalidInput(
                "combine", f"is 'dempster', of {size} classes; above {MAX_MASS_CLASSES} take 'mean'"
            )

    def learning_cost(self, size: int) -> Mapping[str, int]:
        """Return how many trees are grown; a fold counts as many as there are λ to try, though they grow together."""
        each = size if size > 2 else 1
        return {"trees": each, "folds": 0 if self.lam is not None else self.folds * len(LAMBDAS) * each}

    def prepared(self, table: Table, executor: TaskExecutor | None) -> Self:
        """Choose λ once, from the whole table, for all trees of a forest."""
        lam = self.lam
        if lam is None and np.count_nonzero(table.weights) > 1:
            lam = choose_lambda(
                table,
                self.seed,
                folds=self.folds,
                executor=executor,
                combine=self.combine,
                min_instances=self.min_instances,
                max_depth=self.max_depth,
                max_cuts=self.max_cuts,
            )
        return replace(self, lam=DEFAULT_LAMBDA if lam is None else lam)

    def grow(self, table: Table, *, wrap: Wrap | None = None) -> LearnedModel:
        """See `TreeLearner`."""
        return fit_total_uncertainty(
            table,
            DEFAULT_LAMBDA if self.lam is None else self.lam,
            combine=self.combine,
            min_instances=self.min_instances,
            max_depth=self.max_depth,
            max_cuts=self.max_cuts,
            wrap=wrap,
        )
