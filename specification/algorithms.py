"""The learners by name, each with its parameters: a model's specification names them, and `fit` fits them.

A learner's parameters have the meaning of its own module in `quercus.trees.learners`. All of them are values:
equal parameters and equal evidence give equal trees. A parameter out of bounds raises `InvalidInput`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import ClassVar, Literal, TypeVar

from quercus.belief.errors import InvalidInput, shown
from quercus.specification import parameters
from quercus.specification.parameter import (
    Parameter,
    check_parameters,
    parameters_of,
    summary_of,
    with_parameter_docs,
)
from quercus.specification.parameters import (
    INSTANCES_PER_CLASS,
    MAX_CUTS,
    MAX_DEPTH,
    MAX_MASS_CLASSES,
    MIN_INSTANCES,
)

PruningKind = Literal["chi-square", "likelihood"]
Combine = Literal["dempster", "mean"]
Rule = Literal["OBE", "LBE", "IBE"]
Vote = Literal["label", "mass"]
Share = Literal["root", "half", "all"]

LAMBDAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""λ that cross-validation tries. At 0 only the size of a node counts, and no split gains."""

DEFAULT_LAMBDA = 0.5
"""λ where none is given and cross-validation cannot choose one: it needs two rows with a weight."""


class _Checked:
    """Checks its parameters when it is made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_parameters(self)


@with_parameter_docs
@dataclass(frozen=True, slots=True)
class Pruning(_Checked):
    """The pruning of a grown tree before it is used."""

    kind: PruningKind = parameters.PRUNING_KIND.dataclass_field()
    level: float = parameters.LEVEL.dataclass_field()


@with_parameter_docs
@dataclass(frozen=True, slots=True)
class Abc45(_Checked):
    """ABC4.5, the active belief decision tree.

    Source: theory §3.

    Parameters
    ----------
    pruning
        Pruning of the grown tree; None for none.
    """

    name: ClassVar[str] = "abc45"
    alpha: float = parameters.ALPHA.dataclass_field()
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int = parameters.CANDIDATE_CUTS.dataclass_field()
    pruning: Pruning | None = None
    prediction_level: float = parameters.PREDICTION_LEVEL.dataclass_field()
    split_significance: float = parameters.SPLIT_SIGNIFICANCE.dataclass_field()


@with_parameter_docs
@dataclass(frozen=True, slots=True)
class E2m(_Checked):
    """The E2M tree: ABC4.5 at level 1.

    Rows that say nothing weigh the branches of a split, though not its entropies. Where they are most rows, a tree
    without them (`informed_only`) is better.

    Parameters
    ----------
    pruning
        Pruning of the grown tree; None for none.
    """

    name: ClassVar[str] = "e2m"
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int = parameters.CANDIDATE_CUTS.dataclass_field()
    pruning: Pruning | None = None
    informed_only: bool = parameters.INFORMED_ONLY.dataclass_field()
    prediction_level: float = parameters.PREDICTION_LEVEL.dataclass_field()
    split_significance: float = parameters.SPLIT_SIGNIFICANCE.dataclass_field()


@with_parameter_docs
@dataclass(frozen=True, slots=True)
class Id3(_Checked):
    """ID3, from the rows whose label names one class.

    Source: theory §7, `quercus.trees.learners.id3.id3`.
    """

    name: ClassVar[str] = "id3"
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int | None = MAX_CUTS.dataclass_field()
    significance: float | None = parameters.SIGNIFICANCE.dataclass_field()


@with_parameter_docs
@dataclass(frozen=True, slots=True)
class C45(_Checked):
    """C4.5 (Quinlan 1993), from the rows whose label names one class.

    Source: `quercus.trees.learners.c45.c45`.
    """

    name: ClassVar[str] = "c45"
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int | None = MAX_CUTS.dataclass_field()
    min_branch: int = parameters.MIN_BRANCH.dataclass_field()
    confidence: float | None = parameters.CONFIDENCE.dataclass_field()


@with_parameter_docs
@dataclass(frozen=True, slots=True)
class Averaging(_Checked):
    """The belief decision tree, averaging approach (Elouedi 2000).

    Source: theory §4.
    """

    name: ClassVar[str] = "averaging"
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int | None = MAX_CUTS.dataclass_field()


@with_parameter_docs
@dataclass(frozen=True, slots=True)
class TotalUncertainty(_Checked):
    """Belief decision trees by total uncertainty (Vannoorenberghe 2002): one for two classes, else one per class.

    Source: theory §5.
    """

    name: ClassVar[str] = "total-uncertainty"
    lam: float | None = parameters.LAM.dataclass_field()
    combine: Combine = parameters.COMBINE.dataclass_field()
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int | None = MAX_CUTS.dataclass_field()
    folds: int = parameters.FOLDS.dataclass_field()
    seed: int = parameters.SEED.dataclass_field()


@with_parameter_docs
@dataclass(frozen=True, slots=True)
class BeliefEntropy(_Checked):
    """The belief-entropy trees (Gao 2022).

    Source: theory §6.
    """

    name: ClassVar[str] = "belief-entropy"
    leaf: Rule = parameters.LEAF.dataclass_field()
    min_instances: int | None = parameters.MIN_WEIGHT.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()


Tree = Abc45 | E2m | Id3 | C45 | Averaging | TotalUncertainty | BeliefEntropy
"""Algorithms that grow one tree, or one per class."""


@with_parameter_docs
@dataclass(frozen=True, slots=True)
class Forest(_Checked):
    """A forest: bootstrap samples, random attributes at each node, and a vote.

    Parameters
    ----------
    base
        Algorithm of each tree.
    """

    name: ClassVar[str] = "forest"
    base: Tree = BeliefEntropy()
    trees: int = parameters.TREES.dataclass_field()
    vote: Vote = parameters.VOTE.dataclass_field()
    max_features: Share | int = parameters.MAX_FEATURES.dataclass_field()
    seed: int = parameters.SEED.dataclass_field()

    def __post_init__(self) -> None:
        if not isinstance(self.base, Tree):
            raise InvalidInput("base", f"is {shown(self.base)}, must be one of {', '.join(TREES)}")
        check_parameters(self)


@with_parameter_docs
@dataclass(frozen=True, slots=True)
class ActiveForest(_Checked):
    """The forest of many memories, the default: it learns, predicts and selects queries.

    Source: theory §10.
    """

    name: ClassVar[str] = "active-forest"
    trees: int = parameters.MEMBERS.dataclass_field()
    seed: int = parameters.SEED.dataclass_field()
    prediction_level: float = parameters.FOREST_LEVEL.dataclass_field()


Algorithm = Tree | Forest | ActiveForest
Learner = TypeVar("Learner", bound=Tree | ActiveForest)

TREES: Mapping[str, type[Tree]] = MappingProxyType(
    {each.name: each for each in (Abc45, E2m, Id3, C45, Averaging, TotalUncertainty, BeliefEntropy)}
)
"""Classes of learners by name, without forests."""

ALGORITHMS: Mapping[str, type[Algorithm]] = MappingProxyType(
    {**TREES, Forest.name: Forest, ActiveForest.name: ActiveForest}
)
"""All classes of learners by name."""

OF_THE_MODEL = frozenset(
    ("alpha", "min_instances", "max_depth", "pruning", "prediction_level", "split_significance")
)
"""Parameters that a model's specification has, for all learners alike."""


def served_parameters(kind: type[Algorithm]) -> tuple[Parameter, ...]:
    """Return the parameters that a model gives its learner, beside those of the model itself.

    Examples
    --------
    >>> [each.name for each in served_parameters(C45)]
    ['max_cuts', 'min_branch', 'confidence']
    """
    return tuple(each for each in parameters_of(kind) if each.is_served and each.name not in OF_THE_MODEL)


DEFAULT = ActiveForest()
"""The algorithm of a specification that names none."""
LEGACY_DEFAULT = Abc45()
"""The algorithm of a stored specification that names none, from the time when there was only one."""

FORESTS: Mapping[str, Forest] = MappingProxyType(
    {
        "L-OBE-RF": Forest(BeliefEntropy("OBE")),
        "L-LBE-RF": Forest(BeliefEntropy("LBE")),
        "L-IBE-RF": Forest(BeliefEntropy("IBE")),
        "M-LBE-RF": Forest(BeliefEntropy("LBE"), vote="mass"),
        "M-IBE-RF": Forest(BeliefEntropy("IBE"), vote="mass"),
    }
)
"""The five forests of Gao, Wang, Ma 2022, by the paper's names."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of a learner, from which a form can be made.

    Attributes
    ----------
    name
        Its name.
    summary
        What it is, in a sentence.
    parameters
        Those that a model gives it.
    bases
        The learners that may grow its trees; empty if it lets none choose.
    """

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    bases: tuple[str, ...] = ()


def declarations() -> tuple[Declaration, ...]:
    """Return the declarations of all learners."""
    return tuple(
        Declaration(name, summary_of(kind), served_parameters(kind), tuple(TREES) if kind is Forest else ())
        for name, kind in ALGORITHMS.items()
    )


def check_classes(algorithm: Algorithm, size: int) -> None:
    """Refuse a frame of `size` classes that is too large for an algorithm's combination of masses.

    Raises
    ------
    InvalidInput
        Above 16 classes: for LBE, IBE, Dempster's rule of one-against-rest trees, and a vote of masses.
    """
    base = algorithm.base if isinstance(algorithm, Forest) else algorithm
    over = f"of {size} classes; above {MAX_MASS_CLASSES}"
    if size <= MAX_MASS_CLASSES:
        return
    if isinstance(base, BeliefEntropy) and base.leaf != "OBE":
        raise InvalidInput("leaf", f"is {base.leaf!r}, {over} take 'OBE'")
    if isinstance(base, TotalUncertainty) and base.combine == "dempster":
        raise InvalidInput("combine", f"is 'dempster', {over} take 'mean'")
    if isinstance(algorithm, Forest) and algorithm.vote == "mass":
        raise InvalidInput("vote", f"is 'mass', {over} take 'label'")


def learning_cost(algorithm: Algorithm, size: int) -> Mapping[str, int]:
    """Return how many trees are grown to learn once, from rows of `size` classes, by the parameter that asks for them.

    A fold of a cross-validation counts as many as there are λ to try, though they are grown together.

    Examples
    --------
    >>> dict(learning_cost(Forest(TotalUncertainty(), trees=30), 3))
    {'trees': 90, 'folds': 300}
    """
    base = algorithm.base if isinstance(algorithm, Forest) else algorithm
    count = algorithm.trees if isinstance(algorithm, Forest | ActiveForest) else 1
    if not isinstance(base, TotalUncertainty):
        return {"trees": count}
    each = size if size > 2 else 1
    folds = 0 if base.lam is not None else base.folds * len(LAMBDAS) * each
    return {"trees": count * each, "folds": folds}


def check_strategy(algorithm: Algorithm, strategy: str) -> None:
    """Check that a query strategy fits the algorithm: the forest of many memories, or a tree.

    Raises
    ------
    InvalidInput
        Naming the strategies that fit.
    """
    allowed = parameters.FOREST_STRATEGY if isinstance(algorithm, ActiveForest) else parameters.STRATEGY
    if strategy not in allowed.choices:
        other = Abc45.name if isinstance(algorithm, ActiveForest) else ActiveForest.name
        raise InvalidInput(
            "strategy",
            f"is {strategy!r}, {allowed.bound_text} for {algorithm.name}; {strategy!r} is for algorithms like {other}",
        )


def own_defaults(algorithm: Algorithm, size: int) -> Mapping[str, float | str]:
    """Return the defaults that a specification of `size` classes takes from its algorithm.

    Examples
    --------
    >>> own_defaults(ActiveForest(), 3)
    {'min_instances': 2, 'prediction_level': 0.75, 'strategy': 'margin'}
    >>> own_defaults(Forest(BeliefEntropy()), 3)["min_instances"]
    15
    """
    base = algorithm.base if isinstance(algorithm, Forest) else algorithm
    least = getattr(base, "min_instances", MIN_INSTANCES.default)
    return {
        "min_instances": max(1, INSTANCES_PER_CLASS * size) if least is None else least,
        "prediction_level": getattr(base, "prediction_level", parameters.PREDICTION_LEVEL.default),
        "strategy": (
            parameters.FOREST_STRATEGY if isinstance(algorithm, ActiveForest) else parameters.STRATEGY
        ).default,
    }


def with_parameters(algorithm: Algorithm, **values: object) -> Algorithm:
    """Return a copy of an algorithm with other parameters; those that it, or a forest's base, lacks are ignored."""
    if isinstance(algorithm, Forest):
        return replace(algorithm, base=_with_parameters(algorithm.base, values))
    return _with_parameters(algorithm, values)


def _with_parameters(learner: Learner, values: Mapping[str, object]) -> Learner:
    known = {field.name for field in fields(learner)}
    return replace(learner, **{name: value for name, value in values.items() if name in known})  # type: ignore[arg-type]
