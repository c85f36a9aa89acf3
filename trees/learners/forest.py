"""Forests: bootstrap samples, random attributes at each node, and a vote (ALGORITHMS §6).

The trees may be those of any learner that lets the forest stand around its criterion. Each has a seed of its
own, so the forest is the same whoever grows it: one process or an executor's many.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.trees.dominance import TIE
from quercus.trees.growth import Criterion, Place, Verdict
from quercus.trees.learners.belief_entropy import Kind, fit_belief_entropy
from quercus.trees.learners.nested import (
    MAX_CLASSES,
    log_commonalities_of,
    mass_function,
    normalised,
    pignistic_of,
)
from quercus.trees.learners.pieces import Wrap
from quercus.trees.learners.predicting import Prediction, predict
from quercus.trees.learners.routing import reached
from quercus.trees.learners.table import Floats, Ints, Table
from quercus.trees.specification import Attribute, check_count
from quercus.trees.tree import Node

Bools = NDArray[np.bool_]
Vote = Literal["label", "mass"]

TREES = 50
MAX_CELLS = 1 << 22  # of rows times sets that are held at once when masses are combined


class Model(Protocol):
    """What a learner returns."""

    def classify(self, values: Floats) -> Ints:
        """Return the class of rows of values (n, K)."""

    def log_commonalities(self, values: Floats) -> Floats:
        """Return the log commonality of every set, (n, 2^l), of each row's mass, up to a constant in a row."""


class Learner(Protocol):
    """Grows one tree; a `functools.partial` of a fit function, say. To go to other processes it must pickle."""

    def __call__(self, table: Table, *, wrap: Wrap) -> Model:
        """Return a model of the table, with `wrap` put around the criterion."""


class Executor(Protocol):
    """Any `concurrent.futures.Executor`."""

    def map(self, fn: Callable[..., Any], /, *iterables: Iterable[Any]) -> Iterable[Any]:
        """Return the results of `fn`, in order."""


def root_of(count: int) -> int:
    """Return ``⌈√count⌉``, the customary number of random attributes."""
    return math.isqrt(count - 1) + 1 if count else 0


def half_of(count: int) -> int:
    """Return ``⌈count / 2⌉``: better than the root for belief-entropy trees of many attributes.

    A row goes where its densest class is, so a split by a weak attribute misleads whatever is below. On the dog
    pictures of the credal data sets (47 attributes, 4 classes, 20 to 30 trees, 5-fold), L-IBE-RF is right in .71
    of the rows with ``⌈√m⌉`` attributes a node, and in .815 with ``⌈m/2⌉``.
    """
    return (count + 1) // 2


@dataclass(frozen=True, slots=True, eq=False)
class RandomAttributes:
    """Criterion: another one's choice among some of the attributes that are left, drawn anew at each node.

    Where none of those drawn can split the node, the others are tried, one at a time.

    Parameters
    ----------
    criterion
        The other.
    generator
        Draws. Nodes are judged in pre-order, so the draws are determined by its seed.
    number
        How many of ``m`` attributes to draw.
    """

    criterion: Criterion
    generator: np.random.Generator
    number: Callable[[int], int] = root_of

    def judge(self, place: Place) -> Verdict | None:
        """Return the choice, or None when no attribute can split the node."""
        order = [int(k) for k in self.generator.permutation(place.attributes)]
        drawn = max(1, self.number(len(order)))
        for some in [order[:drawn], *([k] for k in order[drawn:])]:
            verdict = self.criterion.judge(replace(place, attributes=tuple(sorted(some))))
            if verdict is not None:
                return verdict
        return None


@dataclass(frozen=True, slots=True, eq=False)
class NodeModel:
    """A tree of splits by value and threshold, as a model.

    Its mass is that of the node reached; where nodes hold none, their probabilities as a Bayesian one.
    """

    root: Node
    attributes: tuple[Attribute, ...]

    def classify(self, values: Floats) -> Ints:
        """Return the class of rows of values (n, K), NaN where unknown."""
        known = ~np.isnan(values).any(axis=1)
        nodes, index = reached(self.root, self.attributes, values[known])
        found = np.empty(len(values), dtype=np.int64)
        found[known] = np.array([node.klass for node in nodes], dtype=np.int64)[index]
        for row in np.flatnonzero(~known):
            found[row] = predict(self.root, values[row].tolist(), self.attributes).klass
        return found

    def log_commonalities(self, values: Floats) -> Floats:
        """Return the log commonality of every set, (n, 2^l); at most 16 classes."""
        known = ~np.isnan(values).any(axis=1)
        nodes, index = reached(self.root, self.attributes, values[known])
        found = np.empty((len(values), 1 << len(self.root.theta)))
        found[known] = np.stack([log_commonalities_of(_mass(node)) for node in nodes])[index]
        for row in np.flatnonzero(~known):
            said = predict(self.root, values[row].tolist(), self.attributes)
            found[row] = log_commonalities_of(_mass(said))
        return found


@dataclass(frozen=True, slots=True)
class OfNodes:
    """Learner from a function that grows a bare tree: ``grow(table, wrap=...) -> Node``."""

    grow: Callable[..., Node]

    def __call__(self, table: Table, *, wrap: Wrap) -> NodeModel:
        """Return the tree as a model."""
        return NodeModel(self.grow(table, wrap=wrap), table.attributes)


@dataclass(frozen=True, slots=True, eq=False)
class ForestPrediction:
    """What a forest says of n rows.

    Parameters
    ----------
    classes
        (n,) predicted class.
    probabilities
        (n, l) share of the votes, or ``BetP`` of the combined mass.
    masses
        (n, 2^l) combined mass of every set, by its bit mask; None for a vote of labels.
    conflicts
        (n,) whether the trees' masses were in total conflict, so that their mean stands for the combination.
    """

    classes: Ints
    probabilities: Floats
    masses: Floats | None
    conflicts: Bools

    def mass(self, row: int) -> MassFunction:
        """Return the combined mass of a row; of a vote of labels, the shares as a Bayesian mass."""
        if self.masses is not None:
            return mass_function(self.masses[row])
        return bayesian(self.probabilities[row])


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees and how they vote.

    Parameters
    ----------
    size
        Number of classes.
    models
        The trees.
    vote
        ``"label"``: the class of most trees; ``"mass"``: Dempster's rule over their masses. Ties go to the
        earlier class.
    """

    size: int
    models: tuple[Model, ...]
    vote: Vote

    def classify(self, values: Floats, executor: Executor | None = None) -> Ints:
        """Return the class of rows of values (n, K)."""
        return self.predict(values, executor).classes

    def predict(self, values: Floats, executor: Executor | None = None) -> ForestPrediction:
        """Return what the forest says of rows of values (n, K), NaN where missing.

        Raises
        ------
        InvalidInput
            With more than 16 classes, for a vote of masses.
        """
        run = map if executor is None else executor.map
        if self.vote == "label":
            votes = np.zeros((len(values), self.size))
            for classes in run(partial(_classify, values), self.models):
                votes[np.arange(len(values)), classes] += 1.0
            shares = votes / len(self.models)
            return ForestPrediction(_first(shares), shares, None, np.zeros(len(values), dtype=bool))
        step = max(1, MAX_CELLS >> min(self.size, MAX_CLASSES))
        parts = [values[at : at + step] for at in range(0, max(len(values), 1), step)]
        done = [combine(list(run(partial(_commonalities, part), self.models))) for part in parts]
        masses = np.concatenate([part for part, _ in done])
        betp = pignistic_of(masses)
        return ForestPrediction(_first(betp), betp, masses, np.concatenate([part for _, part in done]))


def combine(log_commonalities: list[Floats]) -> tuple[Floats, Bools]:
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
        (n,) bool, where that was.
    """
    masses, conflicts = normalised(np.sum(log_commonalities, axis=0))
    if conflicts.any():
        each = [normalised(logs[conflicts])[0] for logs in log_commonalities]
        masses[conflicts] = np.mean(each, axis=0)
    return masses, conflicts


def grow_forest(
    table: Table,
    learner: Learner,
    seed: int,
    *,
    vote: Vote = "label",
    trees: int = TREES,
    number: Callable[[int], int] = root_of,
    executor: Executor | None = None,
) -> Forest:
    """Grow a forest.

    Each tree learns from as many rows as the table has, drawn with replacement (a row drawn twice weighs
    double), and chooses at each node among random attributes.

    Parameters
    ----------
    table
        The rows.
    learner
        Grows a tree.
    seed
        Of the forest; the trees' seeds are spawned from it.
    vote
        See `Forest`.
    trees
        How many.
    number
        How many attributes to draw at a node where ``m`` are left; default ``⌈√m⌉``.
    executor
        Grows the trees; default this process. The forest is the same.

    Raises
    ------
    InvalidInput
        When a parameter lies outside its bounds.

    Examples
    --------
    >>> from functools import partial
    >>> from quercus.trees.learners.total_uncertainty import fit_total_uncertainty
    >>> from quercus.trees.specification import Numeric
    >>> table = Table.of_classes([[float(i)] for i in range(20)], [Numeric("x")], [0] * 10 + [1] * 10, 2)
    >>> forest = grow_forest(table, partial(fit_total_uncertainty, lam=0.8), 1, trees=9, vote="mass")
    >>> forest.classify(np.array([[3.0], [16.0]])).tolist()
    [0, 1]
    """
    if vote not in ("label", "mass"):
        raise InvalidInput("vote", f"is {vote!r}, must be 'label' or 'mass'")
    if vote == "mass" and table.size > MAX_CLASSES:
        raise InvalidInput(
            "vote", f"is 'mass', of {table.size} classes; at most {MAX_CLASSES} can be combined"
        )
    check_count(trees, "trees", 1)
    seeds = np.random.SeedSequence(seed).spawn(trees)
    run = map if executor is None else executor.map
    models = tuple(run(partial(_grow, table, learner, number), seeds))
    return Forest(table.size, models, vote)


FORESTS: Mapping[str, tuple[Kind, Vote]] = MappingProxyType(
    {
        "L-OBE-RF": ("OBE", "label"),
        "L-LBE-RF": ("LBE", "label"),
        "L-IBE-RF": ("IBE", "label"),
        "M-LBE-RF": ("LBE", "mass"),
        "M-IBE-RF": ("IBE", "mass"),
    }
)
"""The five forests of the paper: the kind of tree and the vote, by name."""


def belief_entropy_forest(
    table: Table,
    name: str,
    seed: int,
    *,
    min_instances: int | None = None,
    max_depth: int | None = None,
    trees: int = TREES,
    number: Callable[[int], int] = root_of,
    executor: Executor | None = None,
) -> Forest:
    """Grow one of the five forests of Gao, Wang, Ma 2022 (`FORESTS`).

    Parameters
    ----------
    name
        A key of `FORESTS`.
    min_instances, max_depth
        As of `quercus.trees.learners.belief_entropy.fit_belief_entropy`.
    table, seed, trees, number, executor
        As of `grow_forest`.

    Raises
    ------
    InvalidInput
        When there is no forest of that name, or a parameter lies outside its bounds.
    """
    if name not in FORESTS:
        raise InvalidInput("name", f"is {name!r}, must be one of {', '.join(FORESTS)}")
    kind, vote = FORESTS[name]
    learner = partial(fit_belief_entropy, kind=kind, min_instances=min_instances, max_depth=max_depth)
    return grow_forest(table, learner, seed, vote=vote, trees=trees, number=number, executor=executor)


def bayesian(probabilities: Floats) -> MassFunction:
    """Return probabilities (l,) as a mass function on single classes."""
    return MassFunction.of(len(probabilities), {1 << c: float(p) for c, p in enumerate(probabilities)})


def _grow(
    table: Table, learner: Learner, number: Callable[[int], int], seed: np.random.SeedSequence
) -> Model:
    generator = np.random.default_rng(seed)
    rows = np.flatnonzero(table.weights)
    times = np.bincount(rows[generator.integers(len(rows), size=len(rows))], minlength=len(table))
    sample = replace(table, weights=table.weights * times)
    return learner(sample, wrap=partial(RandomAttributes, generator=generator, number=number))


def _classify(values: Floats, model: Model) -> Ints:
    return model.classify(values)


def _commonalities(values: Floats, model: Model) -> Floats:
    return model.log_commonalities(values)


def _first(scores: Floats) -> Ints:
    """Return the first class of each row (n, l) that is tied with the largest, (n,)."""
    first: Ints = np.argmax(scores >= scores.max(axis=1, keepdims=True) - TIE, axis=1)
    return first


def _mass(said: Node | Prediction) -> MassFunction:
    return bayesian(np.array(said.theta)) if said.mass is None else said.mass
