"""One interface to every learner: `fit` an algorithm to a table, and predict with the `LearnedModel` model.

A learner sees only labels that it can use: ID3 and C4.5 learn from rows whose label names one class, and an E2M tree
of informed rows only from those whose label says anything. Where no such row is, and where there is no row at all, the
model is a leaf that says that every class is possible.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, assert_never

import numpy as np

from quercus.belief.contour import is_vacuous
from quercus.belief.mass import MassFunction
from quercus.specification import algorithms
from quercus.specification.algorithms import Algorithm, check_classes
from quercus.specification.attributes import Attribute
from quercus.trees.learners.averaging import averaging
from quercus.trees.learners.belief_entropy import fit_belief_entropy
from quercus.trees.learners.c45 import c45
from quercus.trees.learners.executor import TaskExecutor
from quercus.trees.learners.forest import ModelLearner, grow_forest, half_of, root_of
from quercus.trees.learners.id3 import id3
from quercus.trees.learners.lambda_path import choose_lambda
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.predictions import Predictions
from quercus.trees.learners.stopping_rules import Wrap
from quercus.trees.learners.table import Table
from quercus.trees.learners.total_uncertainty import fit_total_uncertainty
from quercus.trees.learners.weights import repeat_rows
from quercus.trees.tree.node import Node, Stop

__all__ = ["LearnedModel", "Predictions", "fit", "vacuous_model"]


def fit(algorithm: Algorithm, table: Table, *, executor: TaskExecutor | None = None) -> LearnedModel:
    """Learn a model.

    Parameters
    ----------
    algorithm
        The learner and its parameters.
    table
        The rows.
    executor
        Grows the trees of a forest, and does the folds of a cross-validation; default this process. The model is
        the same.

    Raises
    ------
    InvalidInput
        When the table has more classes than the algorithm can combine masses of.

    Examples
    --------
    >>> from quercus.specification.attributes import Numeric
    >>> labels = [[1, 0], [1, 0], [0, 1], [1, 1]]
    >>> table = Table.of_contours([[1.0], [2.0], [8.0], [9.0]], [Numeric("x")], labels)
    >>> model = fit(algorithms.E2m(), table)
    >>> model.predict([[1.5], [8.5]]).klass.tolist()
    [0, 1]
    """
    check_classes(algorithm, table.size)
    if isinstance(algorithm, algorithms.ActiveForest):
        return _active_forest(algorithm, table)
    base = algorithm.base if isinstance(algorithm, algorithms.Forest) else algorithm
    if isinstance(base, algorithms.Id3 | algorithms.C45):
        if not (table.precise & (table.weights > 0)).any():
            return vacuous_model(algorithm, table.attributes, table.size)
        table = table.take(table.precise)
    if isinstance(base, algorithms.E2m) and base.informed_only:
        informed = ~is_vacuous(table.contours) & (table.weights > 0)
        if not informed.any():
            return vacuous_model(algorithm, table.attributes, table.size)
        table = table.take(np.flatnonzero(informed))
    learner = _learner_of(base, table, executor)
    if not isinstance(algorithm, algorithms.Forest):
        return learner(table, wrap=None)
    return grow_forest(
        table,
        learner,
        algorithm.seed,
        vote=algorithm.vote,
        trees=algorithm.trees,
        number=_number_of_features(algorithm.max_features),
        executor=executor,
    )


def vacuous_model(algorithm: Algorithm, attributes: Sequence[Attribute], size: int) -> LearnedModel:
    """Return the model that has seen no row: every class is possible.

    Parameters
    ----------
    algorithm
        Algorithm of the leaf, which has a mass function if the algorithm's leaves have one.
    attributes
        Declarations of the columns.
    size
        Number of classes.
    """
    base = algorithm.base if isinstance(algorithm, algorithms.Forest) else algorithm
    has_mass = isinstance(base, algorithms.Averaging | algorithms.TotalUncertainty | algorithms.BeliefEntropy)
    leaf = Node(
        attribute=None,
        klass=0,
        theta=(1 / size,) * size,
        count=0,
        belief=(0.0,) * size,
        plausibility=(1.0,) * size,
        stop=Stop.FEW_INSTANCES,
        mass=MassFunction.vacuous(size) if has_mass else None,
    )
    return TreeModel.of(leaf, attributes)


def _learner_of(algorithm: algorithms.Tree, table: Table, executor: TaskExecutor | None) -> ModelLearner:
    """Return the function that grows one model from a table and a forest's wrapper of the criterion."""
    parameters = {field.name: getattr(algorithm, field.name) for field in fields(algorithm)}
    match algorithm:
        case algorithms.Abc45() | algorithms.E2m():
            from quercus.trees.learners.evidential import abc45, e2m  # noqa: PLC0415 - heavy, for them alone

            grow = abc45 if isinstance(algorithm, algorithms.Abc45) else e2m
            parameters.pop("informed_only", None)  # the table holds none but these
            return partial(as_model, partial(grow, **parameters))
        case algorithms.Id3():
            return partial(as_model, partial(id3, **parameters))
        case algorithms.C45():
            return partial(as_model, partial(c45, **parameters))
        case algorithms.Averaging():
            return partial(as_model, partial(averaging, **parameters))
        case algorithms.TotalUncertainty():
            return partial(fit_total_uncertainty, **_with_lambda(algorithm, table, executor))
        case algorithms.BeliefEntropy():
            return partial(fit_belief_entropy, **parameters)
        case _:
            assert_never(algorithm)


def _active_forest(algorithm: algorithms.ActiveForest, table: Table) -> LearnedModel:
    """Return the forest of many memories, with an active tree beside it."""
    from quercus.trees.memory_forest.publishing import forest_of, served_forest  # noqa: PLC0415 - heavy, for it alone

    beside = fit(algorithms.Abc45(), table)
    if not isinstance(beside, TreeModel):
        raise TypeError(f"{type(beside).__name__} is no tree")
    counts = repeat_rows(table)
    forest = forest_of(algorithm, table.attributes, table.size)
    forest.observe(counts.values, counts.contours)
    return served_forest(forest, beside)


def _with_lambda(
    algorithm: algorithms.TotalUncertainty, table: Table, executor: TaskExecutor | None
) -> dict[str, Any]:
    """Return the parameters of the trees; λ is chosen once, from the whole table, for all trees of a forest."""
    common: dict[str, Any] = {
        "combine": algorithm.combine,
        "min_instances": algorithm.min_instances,
        "max_depth": algorithm.max_depth,
        "max_cuts": algorithm.max_cuts,
    }
    lam = algorithm.lam
    if lam is None and np.count_nonzero(table.weights) > 1:
        lam = choose_lambda(table, algorithm.seed, folds=algorithm.folds, executor=executor, **common)
    return {"lam": algorithms.DEFAULT_LAMBDA if lam is None else lam, **common}


def as_model(grow: Callable[..., Node], table: Table, *, wrap: Wrap | None) -> LearnedModel:
    """Return the tree that a function grows as a model: ``grow(table, wrap=...) -> Node``."""
    return TreeModel.of(grow(table, wrap=wrap), table.attributes)


def _number_of_features(max_features: algorithms.Share | int) -> Callable[[int], int]:
    if isinstance(max_features, int):
        return partial(min, max_features)
    return {"root": root_of, "half": half_of, "all": _all_of}[max_features]


def _all_of(count: int) -> int:
    return count
