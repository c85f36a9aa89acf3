"""One interface to every learner: `fit` a learner to a table, and predict with the `LearnedModel`.

A learner sees only labels that it can use: ID3 and C4.5 learn from rows whose label names one class, and an E2M tree
of informed rows only from those whose label says anything. Where no such row is, and where there is no row at all, the
model is a leaf that says that every class is possible.
"""

from quercus.trees.learners.executor import TaskExecutor
from quercus.trees.learners.learner import Learner
from quercus.trees.learners.predicting import LearnedModel
from quercus.trees.learners.predictions import Predictions
from quercus.trees.learners.table import Table

__all__ = ["LearnedModel", "Predictions", "fit"]


def fit(learner: Learner, table: Table, *, executor: TaskExecutor | None = None) -> LearnedModel:
    """Learn a model.

    Parameters
    ----------
    learner
        The learner and its parameters.
    table
        The rows.
    executor
        Grows the trees of a forest, and does the folds of a cross-validation; default this process. The model is
        the same.

    Raises
    ------
    InvalidInput
        When the table has more classes than the learner can combine masses of.

    Examples
    --------
    >>> from quercus.specification.attributes import Numeric
    >>> from quercus.trees import E2m
    >>> labels = [[1, 0], [1, 0], [0, 1], [1, 1]]
    >>> table = Table.of_contours([[1.0], [2.0], [8.0], [9.0]], [Numeric("x")], labels)
    >>> model = fit(E2m(), table)
    >>> model.predict([[1.5], [8.5]]).klass.tolist()
    [0, 1]
    """
    learner.check_classes(table.size)
    return learner.fit(table, executor=executor)
