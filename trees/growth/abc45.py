"""ABC4.5 with a given oracle: active belief decision trees (theory §3; Ma, Destercke, Wang 2016).

`induce` is a loop around the service's tree (`quercus.trees.growth.incremental`): it takes the first query of the
agenda, asks the oracle, and adds the answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quercus.belief.contour import check_contour, check_contours
from quercus.belief.errors import InvalidInput
from quercus.belief.evidence import update
from quercus.belief.frame import check_size
from quercus.specification.parameters import (
    ALPHA,
    BUDGET,
    MAX_DEPTH,
    MIN_INSTANCES,
    PREDICTION_LEVEL,
    SPLIT_SIGNIFICANCE,
)
from quercus.specification.strategies import PUBLISHED, QueryStrategy
from quercus.trees.ask.agenda import agenda_of
from quercus.trees.ask.query import Query
from quercus.trees.growth.incremental.growing import TreeRules
from quercus.trees.growth.incremental.live_tree import LiveTree
from quercus.trees.growth.sample import ContourTable, Sample
from quercus.trees.tree.node import Node

MAX_CODE = 2**15 - 1

Oracle = Callable[[int], ArrayLike | None]


@dataclass(frozen=True, slots=True)
class Induction:
    """The result of `induce`: the tree, and the queries in the order in which they were asked, with refused ones."""

    tree: Node
    queries: tuple[Query, ...]


def induce(
    codes: ArrayLike,
    arities: ArrayLike,
    contours: ArrayLike,
    *,
    alpha: float = ALPHA.default,
    budget: int = BUDGET.default,
    oracle: Oracle | None = None,
    min_instances: int = MIN_INSTANCES.default,
    max_depth: int | None = None,
    strategy: str | QueryStrategy = PUBLISHED,
    ordered: Sequence[int] = (),
    prediction_level: float = PREDICTION_LEVEL.default,
    split_significance: float = 0.0,
) -> Induction:
    """Grow an active belief decision tree (theory §3).

    Parameters
    ----------
    codes
        (n, K) value of each attribute of each row, ``0 <= codes[:, k] < arities[k]``, in declared order.
    arities
        (K,) number of values of each attribute.
    contours
        (n, l) plausibility of each class.
    alpha
        Level of the likelihood cut, in [0, 1].
    budget
        Maximum number of answers; a refusal costs nothing.
    oracle
        Given a row number, returns the evidence of that row's class as a contour (l,), or None if it
        cannot tell. A precise contour replaces the row's label; any other is combined with it.
    min_instances
        A node with fewer rows is a leaf.
    max_depth
        Depth at which every node is a leaf; None for no limit.
    strategy
        Query strategy, or its name.
    ordered
        (K,) number of ordered values of each attribute, from 0 on, such as bins; committees use it. By default all
        values are names, which have no order.
    prediction_level
        Level of the likelihood cut over which belief and plausibility are bounds, in [0, 1].
    split_significance
        Level of the test by which splits are earned (theory §12); 0: splits need not be earned.

    Returns
    -------
    Induction
        The tree after all answers, and the queries.

    Raises
    ------
    InvalidInput
        If an argument is not as described.

    Examples
    --------
    >>> result = induce([[0], [0], [1], [1]], [2], [[1, 0], [1, 1], [0, 1], [0, 1]], alpha=1.0)
    >>> result.tree.attribute, {code: child.klass for code, child in result.tree.children.items()}
    (0, {0: 0, 1: 1})
    """
    alpha = ALPHA.check(alpha)
    budget = BUDGET.check(budget)
    min_instances = MIN_INSTANCES.check(min_instances)
    max_depth = MAX_DEPTH.check(max_depth)
    sample = _sample_of(codes, arities, contours)
    rules = TreeRules(
        alpha,
        min_instances,
        max_depth,
        prediction_level=PREDICTION_LEVEL.check(prediction_level),
        split_significance=SPLIT_SIGNIFICANCE.check(split_significance),
    )
    live = LiveTree(sample.arities, sample.table.contours.shape[1], rules)
    live.append_rows(sample.codes, sample.table.contours[sample.ids])
    queries: list[Query] = []
    answers = 0
    in_order = tuple(ordered) or (0,) * len(sample.arities)
    while oracle is not None and answers < budget:
        wanted = agenda_of(live.context(in_order), queries[-1].asked if queries else None, 1, strategy)
        if not wanted:
            break
        queries.append(wanted[0])
        instance = wanted[0].instance
        answer = oracle(instance)
        answers += answer is not None
        contour = None
        if answer is not None:
            known = live.table.contours[live.contour_id(instance)]
            contour = update(
                known, check_contour(answer, len(known), f"answer for row {instance}"), 1.0
            ).contour
        live.set_label(instance, contour)
    return Induction(live.flat.tree(), tuple(queries))


def _sample_of(codes: ArrayLike, arities: ArrayLike, contours: ArrayLike) -> Sample:
    labels = np.asarray(contours, dtype=np.float64)
    size = check_size(labels.shape[1] if labels.ndim == 2 else 0, "contours")
    labels = check_contours(labels, size)
    widths = _whole_numbers(arities, "arities", 1)
    if (widths < 1).any() or (widths > MAX_CODE).any():
        raise InvalidInput("arities", f"must lie in [1, {MAX_CODE}]")
    table = _whole_numbers(codes, "codes", 2)
    if table.shape != (len(labels), len(widths)):
        raise InvalidInput("codes", f"have shape {table.shape}, must be {(len(labels), len(widths))}")
    wrong = (table < 0) | (table >= widths)
    if wrong.any():
        row, k = np.unravel_index(int(wrong.argmax()), wrong.shape)
        raise InvalidInput(f"codes[{row}][{k}]", f"is {table[row, k]}, must lie in [0, {widths[k]})")
    distinct = ContourTable(size)
    return Sample(
        codes=np.asfortranarray(table, dtype=np.int16),
        arities=tuple(widths.tolist()),
        ids=distinct.intern(labels),
        askable=np.ones(len(labels), dtype=bool),
        table=distinct,
    )


def _whole_numbers(values: ArrayLike, field: str, dimensions: int) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != dimensions or not (np.issubdtype(array.dtype, np.integer) or not array.size):
        raise InvalidInput(field, f"must be whole numbers in {dimensions} dimensions, have {array.dtype}")
    return array.astype(np.int64)
