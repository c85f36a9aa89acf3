"""Forests: bootstrap samples, random attributes at each node, and a vote (theory §6, §11).

The trees may be those of any learner that lets the forest draw the attributes of its nodes. Each tree has its own seed,
so the forest does not depend on the number of processes that grow it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import ClassVar, Final, Literal, Self

import numpy as np

from quercus.belief.arrays import Bools, Floats
from quercus.belief.errors import InvalidInput, shown
from quercus.belief.mass import MassFunction
from quercus.specification.attributes import Attribute
from quercus.specification.parameter import check_parameters, parametric
from quercus.specification.parameters import MAX_FEATURES, MAX_MASS_CLASSES, SEED, TREES, VOTE
from quercus.trees.growth.batch import OpenNode
from quercus.trees.learners.belief_entropy import BeliefEntropy
from quercus.trees.learners.cells import UncertainValues
from quercus.trees.learners.learner import Learner, TaskExecutor, TreeLearner
from quercus.trees.learners.nested import log_commonalities_of, normalised_masses
from quercus.trees.learners.predicting import LearnedModel
from quercus.trees.learners.predictions import Predictions, first_most_likely
from quercus.trees.learners.table import Table
from quercus.trees.tree.flat import FlatTree

Vote = Literal["label", "mass"]
Share = Literal["root", "half", "all"]

MASS_CELLS = 1 << 22  # maximum number of rows times sets that are combined at once


def attributes_drawn(share: Share | int, count: int) -> int:
    """Return how many of `count` attributes a forest draws: ``⌈√count⌉`` (the usual choice), half, all, or a number.

    For belief-entropy trees with many attributes, ``"half"`` is better than ``"root"``. In these trees a row goes to
    the class of highest density, so a split by a weak attribute misleads the whole subtree. On the dog pictures of the
    credal data sets (47 attributes, 4 classes, 20 to 30 trees, 5-fold), L-IBE-RF is right for .71 of the rows with
    ``"root"``, and for .815 with ``"half"``.

    Examples
    --------
    >>> [attributes_drawn(share, 10) for share in ("root", "half", "all", 3)]
    [4, 5, 10, 3]
    """
    if isinstance(share, int):
        return min(share, count)
    return {"root": math.isqrt(count - 1) + 1 if count else 0, "half": (count + 1) // 2, "all": count}[share]


@dataclass(frozen=True, slots=True, eq=False)
class RandomAttributes:
    """Draws some of the remaining attributes, anew at each node.

    If none of those drawn can split the node, the others are tried, one at a time.

    Parameters
    ----------
    generator
        Random generator. Nodes are decided in pre-order, so its seed determines the draws.
    share
        See `attributes_drawn`.
    """

    generator: np.random.Generator
    share: Share | int = "root"

    def __call__(self, place: OpenNode) -> Iterator[OpenNode]:
        """Yield the node with the attributes drawn, then with each of the others."""
        order = [int(k) for k in self.generator.permutation(place.attributes)]
        drawn = max(1, attributes_drawn(self.share, len(order)))
        yield replace(place, attributes=tuple(sorted(order[:drawn])))
        if place.rows.size > 1:  # a single row cannot be split
            yield from (replace(place, attributes=(k,)) for k in order[drawn:])


@dataclass(frozen=True, eq=False)
class ForestModel(LearnedModel):
    """Models, and the way in which they vote.

    Parameters
    ----------
    attributes
        Declarations of the columns.
    size
        Number of classes.
    models
        The trees, or models with one tree per class.
    vote
        ``"label"``: the class of most models. A model whose best classes are tied splits its vote among them, so one
        that knows nothing votes equally for all (theory §11). A class's belief is the share of models that predict it
        and nothing else, its plausibility the share that do not rule it out (see `Predictions.classes`). ``"mass"``:
        Dempster's rule over their masses. Ties of the whole forest go to the earlier class.
    """

    attributes: tuple[Attribute, ...]
    size: int
    models: tuple[LearnedModel, ...]
    vote: Vote

    @property
    def branches_are_classes(self) -> bool:
        """True if the branches of its models are classes."""
        return self.models[0].branches_are_classes

    @property
    def flat_trees(self) -> tuple[FlatTree, ...]:
        """The trees of all models as arrays, model by model."""
        return tuple(flat for model in self.models for flat in model.flat_trees)

    def predict_cells(self, cells: UncertainValues) -> Predictions:
        """Return the forest's predictions for rows of cells.

        Raises
        ------
        InvalidInput
            With more than 16 classes, for a vote of masses.
        """
        if self.vote == "label":
            return self._count_votes(cells)
        step = max(1, MASS_CELLS >> min(self.size, MAX_MASS_CLASSES))
        done = [
            combine_trees([model.log_commonalities(part) for model in self.models])
            for part in cells.chunks(step)
        ]
        masses, conflicts = (np.concatenate(parts) for parts in zip(*done, strict=True))
        return Predictions.of_dense(masses, conflicts)

    def log_commonalities(self, cells: UncertainValues) -> Floats:
        """Return the log commonality of every set, (n, 2^l), of each row's mass."""
        predicted = self.predict_cells(cells)
        masses = predicted.masses or [bayesian_mass(theta) for theta in predicted.theta]
        return np.array([log_commonalities_of(mass) for mass in masses]).reshape(-1, 1 << self.size)

    def _count_votes(self, cells: UncertainValues) -> Predictions:
        votes, alone, possible = (np.zeros((len(cells), self.size)) for _ in range(3))
        for model in self.models:
            predicted = model.predict_cells(cells)
            classes, likeliest = predicted.classes, predicted.likeliest
            votes += likeliest / likeliest.sum(axis=1, keepdims=True)
            possible += classes
            alone += classes & (classes.sum(axis=1, keepdims=True) == 1)
        share, count = votes / len(self.models), float(len(self.models))
        return Predictions(first_most_likely(share), share, alone / count, possible / count)


def combine_trees(log_commonalities: list[Floats]) -> tuple[Floats, Bools]:
    """Combine the masses of the trees by Dempster's rule, in logarithms.

    Parameters
    ----------
    log_commonalities
        (n, 2^l) of each tree.

    Returns
    -------
    masses
        (n, 2^l). Where the trees are in total conflict, the mean of their masses.
    conflicts
        (n,) bool, where there was total conflict.
    """
    masses, conflicts = normalised_masses(np.sum(log_commonalities, axis=0))
    if conflicts.any():
        each = [normalised_masses(logs[conflicts])[0] for logs in log_commonalities]
        masses[conflicts] = np.mean(each, axis=0)
    return masses, conflicts


def bayesian_mass(probabilities: Floats) -> MassFunction:
    """Return probabilities (l,) as a mass function on single classes."""
    return MassFunction.of(len(probabilities), {1 << c: float(p) for c, p in enumerate(probabilities)})


def _grow_model(
    table: Table, learner: TreeLearner, share: Share | int, seed: np.random.SeedSequence
) -> LearnedModel:
    generator = np.random.default_rng(seed)
    rows = np.flatnonzero(table.weights)
    times = np.bincount(rows[generator.integers(len(rows), size=len(rows))], minlength=len(table))
    sample = replace(table, weights=table.weights * times)
    return learner.grow(sample, draw=RandomAttributes(generator, share))


@parametric
class Forest(Learner):
    """A forest: bootstrap samples, random attributes at each node, and a vote.

    Source: theory §6, §11. Each tree learns from as many rows as the table has, drawn with replacement (a row drawn
    twice weighs double), and chooses at each node among random attributes.

    Parameters
    ----------
    base
        Learner of each tree.
    """

    name: ClassVar[str] = "forest"
    base: TreeLearner = BeliefEntropy()
    trees: int = TREES.dataclass_field()
    vote: Vote = VOTE.dataclass_field()
    max_features: Share | int = MAX_FEATURES.dataclass_field()
    seed: int = SEED.dataclass_field()

    def __post_init__(self) -> None:
        if not isinstance(self.base, TreeLearner):
            raise InvalidInput("base", f"is {shown(self.base)}, must be a learner of trees")
        check_parameters(self)

    @property
    def refusal_of_uncertain(self) -> str:
        """The refusal of its trees."""
        return self.base.refusal_of_uncertain

    @property
    def takes_pruning(self) -> bool:
        """True if its trees do."""
        return self.base.takes_pruning

    def check_classes(self, size: int) -> None:
        """Raise `InvalidInput` for more than 16 classes with a vote of masses, or for what its trees refuse."""
        self.base.check_classes(size)
        if size > MAX_MASS_CLASSES and self.vote == "mass":
            raise InvalidInput("vote", f"is 'mass', of {size} classes; above {MAX_MASS_CLASSES} take 'label'")

    def learning_cost(self, size: int) -> Mapping[str, int]:
        """Return the number of trees grown for one fit.

        Examples
        --------
        >>> from quercus.trees.learners.total_uncertainty import TotalUncertainty
        >>> Forest(TotalUncertainty(), trees=30).learning_cost(3)
        {'trees': 90, 'base.folds': 300}
        """
        once = dict(self.base.learning_cost(size))
        return {"trees": self.trees * once.pop("trees")} | {f"base.{name}": n for name, n in once.items()}

    def own_defaults(self, size: int) -> dict[str, float]:
        """Return the defaults of its trees."""
        return self.base.own_defaults(size)

    def with_parameters(self, **values: object) -> Self:
        """Return a copy whose trees have other parameters."""
        return replace(self, base=self.base.with_parameters(**values))

    def vacuous_model(self, attributes: Sequence[Attribute], size: int) -> LearnedModel:
        """See `Learner`."""
        return self.base.vacuous_model(attributes, size)

    def fit(self, table: Table, *, executor: TaskExecutor | None = None) -> LearnedModel:
        """See `Learner`."""
        usable = self.base.usable_rows(table)
        if usable is None:
            return self.vacuous_model(table.attributes, table.size)
        seeds = np.random.SeedSequence(self.seed).spawn(self.trees)
        run = map if executor is None else executor.map
        grow = partial(_grow_model, usable, self.base.prepared(usable, executor), self.max_features)
        return ForestModel(table.attributes, table.size, tuple(run(grow, seeds)), self.vote)


FORESTS: Final[Mapping[str, Forest]] = MappingProxyType(
    {
        "L-OBE-RF": Forest(BeliefEntropy("OBE")),
        "L-LBE-RF": Forest(BeliefEntropy("LBE")),
        "L-IBE-RF": Forest(BeliefEntropy("IBE")),
        "M-LBE-RF": Forest(BeliefEntropy("LBE"), vote="mass"),
        "M-IBE-RF": Forest(BeliefEntropy("IBE"), vote="mass"),
    }
)
"""The five forests of Gao, Wang, Ma 2022, by their names in the paper."""
