"""The learners that the protocols compare, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from quercus.belief.arrays import Floats
from quercus.experiments import baselines
from quercus.experiments.problem import FittedLearner, Prediction, Problem
from quercus.experiments.strategies import (
    STRATEGIES,
    ComparedStrategy,
    node_count,
    service_forest,
    told_forest,
)
from quercus.specification.learners import Pruning, SpecifiedLearner, learner_classes
from quercus.specification.strategies import PUBLISHED, RECOMMENDED, strategies
from quercus.trees import (
    C45,
    FORESTS,
    Abc45,
    ActiveForest,
    Averaging,
    BeliefEntropy,
    E2m,
    Forest,
    Id3,
    Learner,
    TotalUncertainty,
)
from quercus.trees.learners.learner import fit

SHARE = 4
"""A learner that asks spends one answer per this number of training rows (theory §8)."""
ASKING_PREFIX = "ask-"
"""Prefix of the names of learners that ask; the strategy's name follows."""


@dataclass(frozen=True)
class ComparedLearner:
    """A learner.

    Parameters
    ----------
    title
        In plots and tables.
    fit
        Learns.
    needs
        A package that it needs and that may be absent.
    """

    title: str
    fit: Callable[[Problem], FittedLearner]
    needs: str | None = None


def fit_learner(problem: Problem, learner: Learner) -> FittedLearner:
    """Fit a learner to the training rows; its random draws use the problem's seed."""
    if isinstance(learner, ActiveForest):
        return service_forest(told_forest(problem, learner))
    if hasattr(learner, "seed"):
        learner = replace(learner, seed=problem.integer_seed)  # type: ignore[type-var]
    learned = fit(learner, problem.train)

    def predict(values: Floats) -> Prediction:
        said = learned.predict(values)
        return Prediction(said.klass, said.theta, said.classes)

    return FittedLearner(predict, lambda: node_count(learned))


def fit_asking(problem: Problem, strategy: ComparedStrategy) -> FittedLearner:
    """Ask queries by a strategy, for a share of answers, and return the learner that is fitted at the end."""
    ((_, fitted),) = strategy.curve(problem, [len(problem.train) // SHARE])
    return fitted


_VARIANTS: dict[str, tuple[str, Learner]] = {
    ActiveForest.name: ("active-forest, no queries", ActiveForest()),
    "id3": ("ID3, precise rows", Id3()),
    "id3-pruned": ("ID3, χ² pruning, precise rows", Id3(significance=0.05)),
    "c45": ("C4.5, precise rows", C45()),
    "e2m": ("E2M tree", E2m()),
    "e2m-pruned": ("E2M tree, likelihood pruning", E2m(pruning=Pruning("likelihood"))),
    "abc45": ("ABC4.5, no queries", Abc45()),
    "averaging": ("averaging belief tree", Averaging()),
    "total-uncertainty": ("total-uncertainty trees", TotalUncertainty()),
    "obe": ("belief-entropy tree, OBE", BeliefEntropy("OBE")),
    "lbe": ("belief-entropy tree, LBE", BeliefEntropy("LBE")),
    "ibe": ("belief-entropy tree, IBE", BeliefEntropy("IBE")),
    **{name.lower(): (name, forest) for name, forest in FORESTS.items()},
    "forest-c45": ("forest of C4.5, precise rows", Forest(C45(confidence=None))),
    "forest-e2m": ("forest of E2M trees", Forest(E2m())),
    "e2m-informed": ("E2M tree, labelled rows", E2m(informed_only=True)),
    "forest-e2m-informed": ("forest of E2M trees, labelled rows", Forest(E2m(informed_only=True))),
    "forest-averaging": ("forest of averaging trees", Forest(Averaging())),
    "forest-averaging-mass": ("forest of averaging trees, masses", Forest(Averaging(), vote="mass")),
    "forest-total": ("forest of total-uncertainty trees", Forest(TotalUncertainty(lam=0.5))),
}


def compared_learners(known: Mapping[str, type[SpecifiedLearner]]) -> dict[str, tuple[str, Learner]]:
    """Return the learners with their titles: the variants of the papers, and all others at their defaults."""
    listed = [learner for _, learner in _VARIANTS.values()]
    others = {name: kind() for name, kind in known.items()}
    return _VARIANTS | {
        name: (name, learner)
        for name, learner in others.items()
        if isinstance(learner, Learner) and learner not in listed
    }


_LEARNERS = compared_learners(learner_classes())


_BASELINES = {
    "forest-precise": ComparedLearner("random forest, precise rows", baselines.forest_precise),
    "forest-pignistic": ComparedLearner("random forest, pignistic weights", baselines.forest_pignistic),
    "forest-hard": ComparedLearner("random forest, likeliest class", baselines.forest_hard),
    "ek-nn": ComparedLearner("evidential k-NN", baselines.ek_nn),
}

LEARNERS: Mapping[str, ComparedLearner] = MappingProxyType(
    {
        name: ComparedLearner(title, partial(fit_learner, learner=learner))
        for name, (title, learner) in _LEARNERS.items()
    }
    | _BASELINES
    | {
        ASKING_PREFIX + name: ComparedLearner(
            f"{strategy.title}, n/{SHARE} answers", partial(fit_asking, strategy=strategy), strategy.needs
        )
        for name, strategy in STRATEGIES.items()
    }
)
"""All learners, by the names of ``--methods``."""

DEFAULT = (
    ActiveForest.name,
    "c45",
    "e2m",
    "abc45",
    "m-ibe-rf",
    "forest-precise",
    "forest-pignistic",
    *(
        ASKING_PREFIX + name
        for name in (
            *strategies("forest"),
            PUBLISHED,
            RECOMMENDED,
            "random",
            "activeml-margin",
            "activeml-committee",
        )
    ),
)
"""Compared by default against the quality of labels: those of the papers' figures, and baselines."""
TABLE = (*_LEARNERS, *_BASELINES)
"""Compared by default side by side: all that do not ask."""
CURVE = (ActiveForest.name, "id3", "id3-pruned", "c45", "forest-precise")
"""Compared by default on the learning curve."""
