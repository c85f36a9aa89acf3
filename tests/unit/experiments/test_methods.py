"""The methods of the experiments: those of the registries, and the service's forest as it is served."""

from typing import ClassVar

import numpy as np
import pytest

from quercus.belief.frame import Frame
from quercus.belief.label import ClassSet
from quercus.cli.offline_model import grow_offline
from quercus.experiments import learners
from quercus.experiments.datasets import BUILT_IN
from quercus.experiments.folds import seed_of
from quercus.experiments.problem import Problem, fold_of
from quercus.experiments.strategies import STRATEGIES
from quercus.specification.learners import learner_classes
from quercus.specification.model import Specification
from quercus.specification.parameter import parametric
from quercus.specification.strategies import strategies
from quercus.trees import ActiveForest, Id3, Table
from quercus.trees.learners.cells import UncertainValues


@parametric
class Tomorrow(Id3):
    """A learner of another package."""

    name: ClassVar[str] = "tomorrow"


def test_every_learner_and_strategy_is_there() -> None:
    compared = {type(learner) for _, learner in learners.compared_learners(learner_classes()).values()}
    assert compared == set(learner_classes().values())
    assert set(learners.compared_learners(learner_classes())) <= set(learners.LEARNERS)
    more = learners.compared_learners({**learner_classes(), Tomorrow.name: Tomorrow})
    assert more[Tomorrow.name] == (Tomorrow.name, Tomorrow())
    assert {*strategies("tree"), *strategies("forest")} <= set(STRATEGIES)
    asking = {learners.ASKING_PREFIX + name for name in (*strategies("tree"), *strategies("forest"))}
    assert asking <= set(learners.LEARNERS)


def test_the_default_forest_is_compared_by_default() -> None:
    for chosen in (learners.DEFAULT, learners.TABLE, learners.CURVE):
        assert ActiveForest.name in chosen
    assert {learners.ASKING_PREFIX + name for name in strategies("forest")} <= set(learners.DEFAULT)


def iris(vacuous: bool) -> Problem:
    data = BUILT_IN["iris"]()
    contours = np.ones((150, 3)) if vacuous else np.eye(3)[data.targets]
    table = Table.of_contours(data.values, data.attributes, contours)
    return fold_of(data, table, np.arange(150) % 5 == 0, 0, seed_of(0, "iris"))


@pytest.mark.parametrize("strategy", strategies("forest"))
def test_the_forest_asks_and_predicts_as_it_is_served(strategy: str) -> None:
    problem = iris(vacuous=True)
    answers = 5
    specification = Specification(
        problem.train.attributes,
        Frame(("a", "b", "c")),
        budget=answers,
        strategy=strategy,
        learner=ActiveForest(seed=problem.integer_seed),
    )
    served = grow_offline(
        specification,
        UncertainValues(problem.train.values),
        [ClassSet(7)] * len(problem.train),
        lambda row: ClassSet(1 << int(problem.truth[row])),
    )
    wanted = served.grown.model.predict(problem.test)
    curve = dict(STRATEGIES[strategy].curve(problem, (0, answers)))
    said = curve[answers].predict(problem.test)
    assert said.probabilities.tolist() == wanted.theta.tolist()
    assert said.possible.tolist() == wanted.classes.tolist()
    assert curve[0].predict(problem.test).possible.all()
    assert len(served.queries) == answers


def test_the_forest_learns_from_labels_that_are_given() -> None:
    fitted = learners.LEARNERS[ActiveForest.name].fit(iris(vacuous=False))
    data = BUILT_IN["iris"]()
    said = fitted.predict(data.values[::5])
    assert np.mean(said.classes == data.targets[::5]) > 0.85
    assert fitted.nodes > 100 * 5
