"""The strategies of the queries protocol, each with the learner for which it selects instances."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from quercus.belief.arrays import Floats
from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.experiments.baselines import probable_classes, uniform_classifier
from quercus.experiments.problem import FittedLearner, Prediction, Problem
from quercus.specification import parameters
from quercus.specification.model import Specification
from quercus.specification.parameters import SPLIT_SIGNIFICANCE
from quercus.specification.strategies import RECOMMENDED, chosen_strategy, strategies
from quercus.trees import Abc45, ActiveForest, E2m, Forest, Learner, Margin
from quercus.trees.ask.query import QueryPosition
from quercus.trees.growth.stream import Answered, GrowthState, Observed, grow
from quercus.trees.learners.learner import fit
from quercus.trees.learners.metrics import undominated
from quercus.trees.learners.predicting import LearnedModel
from quercus.trees.learners.table import Table
from quercus.trees.memory_forest.asking import choose_rows
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.learner import forest_of
from quercus.trees.memory_forest.publishing import served_members
from quercus.trees.tree.flat import FlatTree

ALPHA = parameters.ALPHA.default
COMMITTEE = 10
"""Trees of scikit-activeml's committee."""

Curve = Iterator[tuple[int, FittedLearner]]


@dataclass(frozen=True)
class ComparedStrategy:
    """A strategy.

    Parameters
    ----------
    title
        In plots and tables.
    curve
        Given a problem and ascending numbers of answers, returns the learner after each. Where no more queries are
        wanted, the last one stands for the rest.
    needs
        A package that it needs and that may be absent.
    """

    title: str
    curve: Callable[[Problem, Sequence[int]], Curve]
    needs: str | None = None


def _initial_state(problem: Problem, budget: int, strategy: str) -> GrowthState:
    frame = Frame(tuple(f"c{c}" for c in range(problem.train.size)))
    spec = Specification(
        problem.ordered_attributes,
        frame,
        ALPHA,
        budget,
        warmup_rows=len(problem.train),
        strategy=chosen_strategy(strategy, "tree"),
        learner=Abc45(),
        split_significance=SPLIT_SIGNIFICANCE.default,
    )
    observed = Observed(problem.train.values, problem.train.contours)
    return grow(GrowthState.initial(spec), [observed])


def service_forest(forest: MemoryForest) -> FittedLearner:
    """Return the service's forest as it is now; it may grow on."""
    members = served_members(forest)

    def predict(values: Floats) -> Prediction:
        said = members.predict(values)
        return Prediction(said.klass, said.theta, said.classes)

    return FittedLearner(predict, lambda: int(members.node_counts.sum()))


def told_forest(problem: Problem, learner: ActiveForest) -> MemoryForest:
    """Return the forest of the training rows and their labels, with the problem's seed."""
    seeded = replace(learner, seed=problem.integer_seed)
    forest = forest_of(seeded, problem.ordered_attributes, problem.train.size)
    forest.observe(problem.train.values, problem.train.contours)
    return forest


def ask_as_service(
    problem: Problem, budgets: Sequence[int], strategy: str, learner: Learner | None = None
) -> Curve:
    """Ask as the service asks: the same specification, agenda and growth.

    What is fitted is the service's tree; or a learner of the rows of which something is known, bins of numbers taken
    for numbers, so that it splits them at thresholds.
    """
    state = _initial_state(problem, max(budgets), strategy)
    answers, wanted = 0, True
    for budget in budgets:
        while wanted and answers < budget:
            queries = state.agenda(1)
            wanted = bool(queries)
            for query in queries:
                told = Answered(query.instance, problem.true_contour(query.instance), 1.0, query.asked)
                state = grow(state, [told])
                answers += 1
        yield budget, _fit_labelled(problem, state, learner)


def at_random(problem: Problem, budgets: Sequence[int], learner: Learner | None = None) -> Curve:
    """Ask about rows drawn at random, and fit what `ask_as_service` fits."""
    state = _initial_state(problem, max(budgets), "published")
    open_rows = np.flatnonzero(~problem.train.precise)
    order = np.random.default_rng(problem.seed).permutation(open_rows)
    answers, nowhere = 0, QueryPosition((), None, None, ())
    for budget in budgets:
        rows = order[answers:budget].tolist()
        state = grow(state, [Answered(row, problem.true_contour(row), 1.0, nowhere) for row in rows])
        answers += len(rows)
        yield budget, _fit_labelled(problem, state, learner)


def ask_as_forest(problem: Problem, budgets: Sequence[int], strategy: str | None) -> Curve:
    """Ask as the service's forest asks; or, without a strategy, about rows drawn at random."""
    forest = told_forest(problem, ActiveForest())
    chosen = None if strategy is None else chosen_strategy(strategy, "forest")
    if not isinstance(chosen, Margin | None):
        raise InvalidInput("strategy", f"is {strategy}, which does not score the rows of a forest")
    open_rows = np.flatnonzero(~problem.train.precise)
    open_rows = np.random.default_rng(problem.seed).permutation(open_rows)
    answers = 0
    for budget in budgets:
        while answers < budget and open_rows.size:
            row = int(open_rows[0])
            if chosen is not None:
                row = next(choose_rows(forest, open_rows, 1, worth=chosen.worth)).row
            forest.replace_contour(row, problem.true_contour(row))
            open_rows = open_rows[open_rows != row]
            answers += 1
        yield budget, service_forest(forest)


def node_count(learned: LearnedModel) -> int:
    """Return the number of nodes of all trees of a model."""
    return sum(len(FlatTree.of(tree).klass) for tree in learned.trees)


def _fit_labelled(problem: Problem, state: GrowthState, learner: Learner | None) -> FittedLearner:
    """Return the service's tree, which may grow on, or a learner of the labelled rows with its probabilities."""
    if learner is not None:
        contours = np.array([state.contour(row) for row in range(state.instance_count)])
        table = Table.of_contours(problem.train.values, problem.ordered_attributes, contours)
        learned = fit(learner, table)
        return FittedLearner(
            lambda values: Prediction.of_probabilities(learned.predict(values).pignistic),
            lambda: node_count(learned),
        )
    flat, encoder = state.flat, state.encoder

    def predict(values: Floats) -> Prediction:
        """Return class, frequencies and undominated classes of the nodes that the rows reach."""
        ends = flat.route(encoder.codes(values), values)
        possible = undominated(flat.belief[ends], flat.plausibility[ends])
        return Prediction(flat.klass[ends].astype(np.int64), flat.theta[ends], possible)

    return FittedLearner(predict, lambda: len(flat.klass))


def by_margin(problem: Problem, budgets: Sequence[int]) -> Curve:
    """Ask where scikit-learn's decision tree has the smallest margin."""
    from skactiveml.pool import UncertaintySampling  # noqa: PLC0415  (an extra)
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

    seed = problem.integer_seed
    strategy = UncertaintySampling(method="margin_sampling", random_state=seed)
    return _ask_by_activeml(problem, budgets, DecisionTreeClassifier(random_state=seed), strategy, "clf")


def by_committee(problem: Problem, budgets: Sequence[int]) -> Curve:
    """Ask where the trees of a small random forest disagree most."""
    from skactiveml.pool import QueryByCommittee  # noqa: PLC0415  (an extra)
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415

    seed = problem.integer_seed
    forest = RandomForestClassifier(COMMITTEE, random_state=seed)
    return _ask_by_activeml(problem, budgets, forest, QueryByCommittee(random_state=seed), "ensemble")


def _ask_by_activeml(
    problem: Problem, budgets: Sequence[int], learner: Any, strategy: Any, name: str
) -> Curve:
    from skactiveml.classifier import SklearnClassifier  # noqa: PLC0415  (an extra)
    from sklearn.base import clone  # noqa: PLC0415

    rows = problem.matrix(problem.train.values)
    known = np.where(problem.train.precise, problem.train.contours.argmax(axis=1), np.nan)
    classes = list(range(problem.train.size))
    model = SklearnClassifier(learner, classes=classes, random_state=problem.integer_seed)
    open_rows, answers = int(np.isnan(known).sum()), 0
    for budget in budgets:
        while answers < min(budget, open_rows):
            with warnings.catch_warnings():  # while it has no label it warns, and asks at random
                warnings.filterwarnings("ignore", message=".*could not be fitted", category=UserWarning)
                (row,) = strategy.query(rows, known, **{name: model})
            known[row] = problem.truth[row]
            answers += 1
        if np.isnan(known).all():
            yield budget, uniform_classifier(problem.train.size)
        else:
            yield budget, probable_classes(problem, clone(model).fit(rows, known).predict_proba)


TREE = E2m(informed_only=True)
FOREST = Forest(base=TREE, trees=COMMITTEE)


def _service_strategies() -> dict[str, ComparedStrategy]:
    """Return the service's strategies with its tree and its forest; random and recommended ones with others too."""
    found = {
        name: ComparedStrategy(f"ABC4.5, {name}", partial(ask_as_service, strategy=name))
        for name in strategies("tree")
    }
    found["random"] = ComparedStrategy("ABC4.5, random queries", at_random)
    best = partial(ask_as_service, strategy=RECOMMENDED)
    for name, curve in (("random", at_random), (RECOMMENDED, best)):
        found[f"{name}-e2m"] = ComparedStrategy(
            f"E2M tree of thresholds, {name}", partial(curve, learner=TREE)
        )
        found[f"{name}-forest"] = ComparedStrategy(
            f"forest of {COMMITTEE} E2M trees, {name}", partial(curve, learner=FOREST)
        )
    for name in strategies("forest"):
        found[name] = ComparedStrategy(f"{ActiveForest.name}, {name}", partial(ask_as_forest, strategy=name))
    found[f"random-{ActiveForest.name}"] = ComparedStrategy(
        f"{ActiveForest.name}, random queries", partial(ask_as_forest, strategy=None)
    )
    return found


STRATEGIES: Mapping[str, ComparedStrategy] = MappingProxyType(
    {
        **_service_strategies(),
        "activeml-margin": ComparedStrategy("scikit-activeml: tree, margin", by_margin, "skactiveml"),
        "activeml-committee": ComparedStrategy(
            "scikit-activeml: committee of 10", by_committee, "skactiveml"
        ),
    }
)
"""All strategies, by the names of ``--methods``."""
