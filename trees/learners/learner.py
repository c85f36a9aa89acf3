"""Learners: each is a class in a module of its own, whose fields are its parameters, and which fits models to tables.

A package declares its learners as entry points of the group ``quercus.learners``, by name. Everything else is derived
from the class: the checks of parameters and their errors, the encoding on the wire, ``--parameter`` of the command line
and ``quercus learners``, the console's form, the estimator, and the page of parameters. For an example, see
docs/howto/write-a-learner.md.

A learner sees only rows whose label it can use: ID3 and C4.5 learn from rows whose label names a single class, and an
E2M tree with `informed_only` from rows with an informative label. If there are no such rows, the model is a single leaf
in which every class is possible.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Protocol, Self

from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.specification.attributes import Attribute
from quercus.specification.learners import SpecifiedLearner
from quercus.trees.growth.batch import Draw
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.table import Table
from quercus.trees.tree.node import Node, Stop


class TaskExecutor(Protocol):
    """Any `concurrent.futures.Executor`, or an executor of `quercus.estimators.executors`."""

    def map(self, fn: Callable[..., Any], /, *iterables: Iterable[Any]) -> Iterable[Any]:
        """Return the results of `fn`, in order."""


class Learner(SpecifiedLearner, ABC):
    """Base of learners: subclasses are `quercus.specification.parameter.parametric`, and have a name.

    Attributes
    ----------
    name, asks, is_base, forgets, certain_alone, engine
        See `quercus.specification.learners.SpecifiedLearner`.
    has_masses
        Whether the leaves of its trees have mass functions.
    """

    __slots__ = ()

    has_masses: ClassVar[bool] = False

    @abstractmethod
    def fit(self, table: Table, *, executor: TaskExecutor | None = None) -> LearnedModel:
        """Learn a model from rows; equal parameters and equal tables give equal models.

        Parameters
        ----------
        table
            The rows, at least one.
        executor
            Runs parts of the work; by default, this process does. The model does not depend on it.
        """

    def vacuous_model(self, attributes: Sequence[Attribute], size: int) -> LearnedModel:
        """Return the model that has seen no row: every class is possible.

        Parameters
        ----------
        attributes
            Declarations of the columns.
        size
            Number of classes.
        """
        leaf = Node(
            attribute=None,
            klass=0,
            theta=(1 / size,) * size,
            count=0,
            belief=(0.0,) * size,
            plausibility=(1.0,) * size,
            stop=Stop.FEW_INSTANCES,
            mass=MassFunction.vacuous(size) if self.has_masses else None,
        )
        return TreeModel.of(leaf, attributes)

    def restore_model(
        self,
        state: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
        attributes: tuple[Attribute, ...],
        size: int,
    ) -> LearnedModel:
        """Return a model from its `LearnedModel.stored_state`, for learners with a model class of their own.

        Parameters
        ----------
        state, arrays
            JSON values, and arrays by name, read-only.
        attributes, size
            Declarations of the columns, and the number of classes.
        """
        raise NotImplementedError(f"{type(self).__name__} has no model class of its own")


class TreeLearner(Learner):
    """Base of learners that grow a tree, or one per class, from which a forest can be built."""

    __slots__ = ()

    is_base: ClassVar[bool] = True

    @abstractmethod
    def grow(self, table: Table, *, draw: Draw | None = None) -> LearnedModel:
        """Grow a tree; in a forest, from the attributes that `draw` yields (`quercus.trees.growth.batch.grow_tree`)."""

    def usable_rows(self, table: Table) -> Table | None:
        """Return the rows from which the learner learns; None if there are none."""
        return table

    def prepared(self, table: Table, executor: TaskExecutor | None) -> Self:
        """Return the learner with parameters that are chosen once, from all rows, for all trees of a forest."""
        return self

    def fit(self, table: Table, *, executor: TaskExecutor | None = None) -> LearnedModel:
        """See `Learner`."""
        usable = self.usable_rows(table)
        if usable is None:
            return self.vacuous_model(table.attributes, table.size)
        return self.prepared(usable, executor).grow(usable)


def precise_rows(table: Table) -> Table | None:
    """Return the rows whose label names one class; None if none of them counts."""
    if not (table.precise & (table.weights > 0)).any():
        return None
    return table.take(table.precise)


def fit(learner: Learner, table: Table, *, executor: TaskExecutor | None = None) -> LearnedModel:
    """Learn a model.

    Parameters
    ----------
    learner
        The learner and its parameters.
    table
        The rows.
    executor
        Grows the trees of a forest, and runs the folds of a cross-validation; by default, this process does. The model
        does not depend on it.

    Raises
    ------
    InvalidInput
        If the table has too many classes for combining masses, or uncertain values that the learner does not support.

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
    if table.parts and learner.refusal_of_uncertain:
        row, k = min(table.parts)
        raise InvalidInput(f"values[{row}].{table.attributes[k].name}", learner.refusal_of_uncertain)
    return learner.fit(table, executor=executor)
