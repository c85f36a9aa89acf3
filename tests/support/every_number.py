"""Every decision and number of every learner, of a few rows: to compare processes on unlike processors.

    python tests/support/every_number.py > here.json

prints a result a line: its name, what was decided, and the numbers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from quercus.belief.frame import Frame
from quercus.belief.mass import MassFunction
from quercus.belief.measures import deng_entropy, discord, nonspecificity, pignistic
from quercus.belief.rules import combine_repeatedly, dempster
from quercus.labelling.crowds.answers import CrowdAnswers
from quercus.labelling.crowds.confusion import estimate_crowd
from quercus.specification.attributes import Attribute, Nominal, Numeric
from quercus.specification.learners import Pruning, SpecifiedLearner
from quercus.specification.strategies import chosen_strategy, strategies
from quercus.trees import (
    C45,
    Abc45,
    ActiveForest,
    Averaging,
    BeliefEntropy,
    E2m,
    Forest,
    Id3,
    TotalUncertainty,
)
from quercus.trees.growth.stream import GrowthState, Observed, grow
from quercus.trees.learners.cells import Between, Value
from quercus.trees.learners.learner import fit
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.predictions import Predictions
from quercus.trees.learners.table import Table
from quercus.trees.likelihood.interval import entropy_intervals
from quercus.trees.likelihood.maximiser import estimate
from quercus.trees.memory_forest.asking import choose_rows
from quercus.trees.memory_forest.learner import forest_of
from quercus.trees.memory_forest.publishing import served_forest
from quercus.trees.tree.node import Node
from support.published import published_tree

Floats = NDArray[np.float64]
CLASSES, MANY = 3, 9
ATTRIBUTES: tuple[Attribute, ...] = (
    Nominal("colour", ("red", "green", "blue")),
    Numeric("length"),
    Numeric("noise"),
)
ROWS, LABELLED, ASKED = 90, 60, 24
LEARNERS: dict[str, SpecifiedLearner] = {
    "abc45": Abc45(alpha=0.9),
    "abc45, pruned": Abc45(alpha=0.9, pruning=Pruning("likelihood")),
    "e2m": E2m(pruning=Pruning("chi-square")),
    "id3": Id3(significance=0.05),
    "c45": C45(),
    "averaging": Averaging(),
    "total-uncertainty": TotalUncertainty(lam=0.7),
    "total-uncertainty, chosen": TotalUncertainty(folds=3, combine="mean"),
    "OBE": BeliefEntropy("OBE", 4),
    "LBE": BeliefEntropy("LBE", 4),
    "IBE": BeliefEntropy("IBE", 4),
}
"""One line per learner; those that do not vote alike are also the trees of a forest."""
FORESTS: dict[str, SpecifiedLearner] = {
    **{
        f"forest of {name}": Forest(LEARNERS[name], 3, "mass")  # type: ignore[arg-type]
        for name in ("abc45", "averaging", "total-uncertainty", "LBE", "IBE")
    },
    **{f"votes of {name}": Forest(LEARNERS[name], 3, "label") for name in ("e2m", "c45", "OBE")},  # type: ignore[arg-type]
}

POLYTOPES = "intervals of maximisers"
"""The only result that depends on LAPACK."""
ABSENT = 1e-9
"""Sets of less mass may or may not occur: they are rounding errors."""


@dataclass
class Said:
    """A result: decisions, in whole numbers and names, and numbers."""

    decided: list[Any] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)

    def add_numbers(self, *some: Any) -> None:
        for each in some:
            self.numbers.extend(np.asarray(each, dtype=np.float64).ravel().tolist())

    def add_mass(self, mass: MassFunction) -> None:
        focal = [(mask, m) for mask, m in mass.focal if m > ABSENT]
        self.decided.append([mask for mask, _ in focal])
        self.add_numbers([m for _, m in focal])

    def add_tree(self, tree: Node) -> None:
        for node, parent, branch in tree.preorder():
            reason = node.stop and node.stop.name
            self.decided.append([parent, branch, node.attribute, node.klass, node.count, reason])
            self.decided.append([node.undecided, node.conflict, sorted(node.intervals)])
            self.add_numbers(node.theta, node.belief, node.plausibility, node.size)
            self.add_numbers(*(node.intervals[k] for k in sorted(node.intervals)))
            if node.threshold is not None:
                self.add_numbers(node.threshold)
            if node.mass is not None:
                self.add_mass(node.mass)

    def add_predictions(self, said: Predictions) -> None:
        nodes = None if said.nodes is None else said.nodes.tolist()
        self.decided.append([said.klass.tolist(), said.classes.tolist(), said.likeliest.tolist(), nodes])
        self.add_numbers(said.theta, said.belief, said.plausibility)
        for mass in said.masses or ():
            self.add_mass(mass)


def rows(count: int = ROWS, size: int = CLASSES, seed: int = 0) -> tuple[Floats, NDArray[np.int64]]:
    """Return values, some missing, of a name, of an informative number and of one that is not; and classes."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, size, count)
    colour = np.where(rng.random(count) < 0.2, rng.integers(0, 3, count), classes % 3)
    values = np.column_stack([colour, classes + rng.normal(0, 0.5, count), rng.normal(0, 1, count)])
    values[rng.random(values.shape) < 0.1] = np.nan
    return values, classes


def labels(classes: NDArray[np.int64], size: int = CLASSES, seed: int = 1) -> Floats:
    """Return contours: a third precise, the others sets, plausibilities, or vacuous."""
    rng = np.random.default_rng(seed)
    contours = np.eye(size)[classes]
    kind = rng.integers(0, 6, len(classes))
    for row in np.flatnonzero(kind == 0):
        contours[row, (classes[row] + 1) % size] = 1.0
    contours[kind == 1] = np.maximum(contours[kind == 1], rng.random((int((kind == 1).sum()), size)))
    contours[kind == 2] = np.maximum(contours[kind == 2], 0.2)
    contours[kind == 3] = 1.0
    return contours


def tables() -> Iterator[tuple[str, Table]]:
    """Yield tables of every kind of label."""
    values, classes = rows(LABELLED)
    contours = labels(classes)
    yield "contours", Table.of_contours(values, ATTRIBUTES, contours)
    focal = [
        {1 << c: 0.3 + i % 7 / 10, 1 << c | 1 << (c + 1) % CLASSES: 0.7 - i % 7 / 10}
        for i, c in enumerate(classes.tolist())
    ]
    given = [MassFunction.of(CLASSES, each) for each in focal]
    yield "masses", Table.of_masses(values, ATTRIBUTES, given)
    weights = 0.1 + np.random.default_rng(2).random(LABELLED)
    yield "precise, weighted", Table.of_classes(values, ATTRIBUTES, classes, CLASSES, weights)


def uncertain() -> list[list[Value]]:
    """Return rows of values that are not known for sure."""
    return [
        [None, None, None],
        [frozenset({0, 2}), 1.0, 0.0],
        [1, Between(0.2, 1.7), 0.0],
        [frozenset({1, 2}), Between(-9.0, 9.0), None],
        [7, 1.0, 0.0],
    ]


def of_model(model: LearnedModel, values: Floats) -> Said:
    """Return a model's predictions."""
    said = Said()
    for tree in model.trees:
        said.add_tree(tree)
    said.add_predictions(model.predict(values))
    said.add_predictions(model.predict_rows(uncertain()))
    return said


def of_learners() -> Iterator[tuple[str, Said]]:
    """Yield the predictions of every learner that fits a table."""
    asked, _ = rows(ASKED, seed=3)
    for kind, table in tables():
        for name, learner in LEARNERS.items():
            if kind.startswith("precise") and isinstance(learner, Abc45 | E2m):
                continue  # rows are counted
            yield f"{name} of {kind}", of_model(fit(learner, table), asked)
    _, table = next(tables())
    for name, learner in FORESTS.items():
        yield name, of_model(fit(learner, table), asked)
    values, classes = rows(LABELLED, MANY, seed=4)
    table = Table.of_contours(values, ATTRIBUTES, labels(classes, MANY))
    for name in ("abc45", "averaging", "total-uncertainty", "OBE", "LBE", "IBE"):
        yield f"{name} of {MANY} classes", of_model(fit(LEARNERS[name], table), asked)


def of_asking() -> Iterator[tuple[str, Said]]:
    """Yield the trees and forests of active learners, and their queries by every strategy."""
    values, classes = rows()
    contours = labels(classes)
    contours[LABELLED:] = 1.0
    frame = Frame(tuple(f"c{c}" for c in range(CLASSES)))
    for strategy in strategies("tree"):
        spec = published_tree(ATTRIBUTES, frame, strategy=strategy, budget=50, alpha=0.9)
        state = grow(GrowthState.initial(spec), [Observed(values, contours)])
        said = Said()
        if strategy == "published":
            said.add_tree(state.tree)
        for query in state.agenda(3):
            said.decided.append([query.instance, list(map(list, query.path)), query.attribute, query.code])
            said.decided.append([k for k, _, _ in query.rivals])
            said.add_numbers(query.score, [ends for _, *ends in query.rivals])
        yield f"queries by {strategy}", said
    forest = forest_of(ActiveForest(9, seed=1), ATTRIBUTES, CLASSES)
    forest.observe(values, contours)
    for strategy in strategies("forest"):
        said = Said()
        for choice in choose_rows(
            forest, np.arange(LABELLED, ROWS), 8, worth=chosen_strategy(strategy, "forest").worth
        ):
            said.decided.append([choice.row, choice.stands_for, choice.pool.tolist()])
            said.add_numbers(np.where(np.isfinite(choice.scores), choice.scores, -1.0))
        yield f"queries by {strategy}", said
    asked, _ = rows(ASKED, seed=3)
    served, said = served_forest(forest, TreeModel.of(state.tree, ATTRIBUTES)), Said()
    said.add_numbers(forest.weights, *(block.expected for block in forest.accuracy))
    for model in (forest, served):
        said.add_predictions(model.predict(asked))
    said.add_predictions(served.predict_rows(uncertain()))
    yield "active forest", said


def of_beliefs() -> Iterator[tuple[str, Said]]:
    """Yield measures and combinations of mass functions, and the estimate of a crowd."""
    rng, said = np.random.default_rng(5), Said()
    for size in (2, 3, 6, 12):
        some = []
        for _ in range(2):
            masks = rng.choice(np.arange(1, 1 << size), min(20, (1 << size) - 1), replace=False)
            masses = rng.random(len(masks))
            masses /= masses.sum()
            some.append(MassFunction.of(size, dict(zip(masks.tolist(), masses.tolist(), strict=True))))
        both = [*some, dempster(*some), combine_repeatedly({some[0]: 3, some[1]: 2})]
        for mass in both:
            said.add_mass(mass)
            said.add_numbers(mass.contour(), pignistic(mass))
            said.add_numbers(nonspecificity(mass), discord(mass), deng_entropy(mass))
    yield "masses", said
    of, who = np.repeat(np.arange(40), 5), np.tile(np.arange(5), 40)
    answers = CrowdAnswers.of(of, who, labels(rng.integers(0, CLASSES, 200), seed=6))
    found, said = estimate_crowd(answers), Said()
    said.decided.append(len(found.bound))
    said.add_numbers(found.cells, found.prevalence, found.classes, found.reliability, found.deviation)
    said.add_numbers(*(found.answer_evidence(j, np.array([1.0, 0.3, 0.0])) for j in range(5)))
    yield "crowd", said


def of_intervals() -> Iterator[tuple[str, Said]]:
    """Yield maximisers and entropy intervals at several levels; at level 1 they may be those of a polytope."""
    rng = np.random.default_rng(7)
    for level in (0.9, 0.3, 1.0):
        said, problems = Said(), []
        for number in range(40):
            size, count = int(rng.integers(2, 7)), int(rng.integers(1, 20))
            P = [rng.random((count, size)), np.round(rng.random((count, size)), 0)][number % 2]
            P[np.arange(count), rng.integers(0, size, count)] = 1.0
            problems.append((P, rng.integers(1, 6, count).astype(float)))
        found = entropy_intervals(problems, level)
        said.add_numbers(found.lower, found.upper)
        if level == 1.0:
            yield POLYTOPES, said
            continue
        for P, w in problems:
            best = estimate(P, w)
            said.decided.append(best.unique)
            said.add_numbers(best.theta)
        yield f"intervals at level {level}", said


def results() -> dict[str, Said]:
    """Return all results, by name."""
    parts = (of_learners(), of_asking(), of_intervals(), of_beliefs())
    return {name: said for part in parts for name, said in part}


def written(said: Said) -> dict[str, Any]:
    """Return a result as JSON, with all digits of its numbers."""
    decided: dict[str, Any] = json.loads(json.dumps({"decided": said.decided}))
    return decided | {"numbers": [number.hex() for number in said.numbers]}


def main() -> None:
    """Print all results, one per line."""
    for name, said in results().items():
        print(json.dumps({"name": name} | written(said)))


if __name__ == "__main__":
    main()
