"""The learners by name, each with its parameters: what a model's specification names, and `fit` fits.

A learner's parameters mean what they mean in its own module of `quercus.trees.learners`. All of them are values:
equal parameters and equal evidence give equal trees.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import ClassVar, Literal, get_args

from quercus.belief.errors import InvalidInput, shown
from quercus.trees.checks import PREDICTION_LEVEL, check_alpha, check_count

PruningKind = Literal["chi-square", "likelihood"]
Combine = Literal["dempster", "mean"]
Rule = Literal["OBE", "LBE", "IBE"]
Vote = Literal["label", "mass"]
Share = Literal["root", "half", "all"]

MAX_SEED = 2**63 - 1
MAX_TREES = 1_000
MAX_FOLDS = 1_000
MAX_MASS_CLASSES = 16  # 65,536 sets of classes

LAMBDAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""λ that cross-validation tries. At 0 only the size of a node counts, and no split gains."""


def _check_limits(min_instances: object, max_depth: object) -> None:
    check_count(min_instances, "min_instances", 1)
    if max_depth is not None:
        check_count(max_depth, "max_depth", 0)


def _check_cuts(max_cuts: object) -> None:
    if max_cuts is not None:
        check_count(max_cuts, "max_cuts", 1)


def _check_level(value: object, field: str) -> None:
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1
    ):
        raise InvalidInput(field, f"is {shown(value)}, must lie in (0, 1)")


def _check_choice(value: object, field: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidInput(field, f"is {shown(value)}, must be one of {', '.join(map(repr, choices))}")


@dataclass(frozen=True, slots=True)
class Pruning:
    """How a grown tree is pruned before it is used.

    Parameters
    ----------
    kind
        ``"chi-square"``: a subtree is collapsed when the class counts of its leaves do not differ
        significantly; ``"likelihood"``: when the evidential likelihood ratio test does not reject the node
        without it.
    level
        Significance level of the test, in (0, 1); a smaller one prunes more.

    Raises
    ------
    InvalidInput
        When one of these rules is broken.
    """

    kind: PruningKind
    level: float = 0.05

    def __post_init__(self) -> None:
        if self.kind not in ("chi-square", "likelihood"):
            raise InvalidInput("kind", f"is {shown(self.kind)}, must be 'chi-square' or 'likelihood'")
        if isinstance(self.level, bool) or not isinstance(self.level, int | float) or not 0 < self.level < 1:
            raise InvalidInput("level", f"is {shown(self.level)}, must lie in (0, 1)")
        object.__setattr__(self, "level", float(self.level))


@dataclass(frozen=True, slots=True)
class Abc45:
    """ABC4.5, the active belief decision tree (theory §3).

    Parameters
    ----------
    alpha
        Level of the likelihood cut, in [0, 1].
    min_instances
        A node with fewer instances is a leaf; at least 1.
    max_depth
        Depth at which every node is a leaf; None for no limit.
    max_cuts
        Most candidate thresholds of a number at a node; at least 1.
    pruning
        Of the grown tree; None for none.
    prediction_level
        Level of the likelihood cut that belief and plausibility of predictions are bounds over, in [0, 1].

    Raises
    ------
    InvalidInput
        When a parameter is out of bounds; so all classes of this module.
    """

    name: ClassVar[str] = "abc45"
    alpha: float = 0.8
    min_instances: int = 2
    max_depth: int | None = None
    max_cuts: int = 32
    pruning: Pruning | None = None
    prediction_level: float = PREDICTION_LEVEL

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_alpha(self.alpha))
        level = check_alpha(self.prediction_level, "prediction_level")
        object.__setattr__(self, "prediction_level", level)
        _check_limits(self.min_instances, self.max_depth)
        check_count(self.max_cuts, "max_cuts", 1)


@dataclass(frozen=True, slots=True)
class E2m:
    """The E2M tree: ABC4.5 at level 1.

    Parameters
    ----------
    min_instances, max_depth, max_cuts, pruning, prediction_level
        As of `Abc45`.
    informed_only
        Learn from those rows alone whose label says anything at all. Rows that say nothing weigh the branches of a
        split, though not its entropies; where they are most rows, a tree without them is better.
    """

    name: ClassVar[str] = "e2m"
    min_instances: int = 2
    max_depth: int | None = None
    max_cuts: int = 32
    pruning: Pruning | None = None
    informed_only: bool = False
    prediction_level: float = PREDICTION_LEVEL

    def __post_init__(self) -> None:
        _check_limits(self.min_instances, self.max_depth)
        level = check_alpha(self.prediction_level, "prediction_level")
        object.__setattr__(self, "prediction_level", level)
        check_count(self.max_cuts, "max_cuts", 1)
        if not isinstance(self.informed_only, bool):
            raise InvalidInput("informed_only", f"is {shown(self.informed_only)}, must be True or False")


@dataclass(frozen=True, slots=True)
class Id3:
    """ID3 (theory §7), from the rows whose label names one class; see `quercus.trees.learners.id3.id3`.

    Parameters
    ----------
    min_instances, max_depth
        As of `Abc45`.
    max_cuts
        Most thresholds of a number at a node; None for no limit.
    significance
        Level of χ² pruning, in (0, 1); None for no pruning.
    """

    name: ClassVar[str] = "id3"
    min_instances: int = 2
    max_depth: int | None = None
    max_cuts: int | None = None
    significance: float | None = None

    def __post_init__(self) -> None:
        _check_limits(self.min_instances, self.max_depth)
        _check_cuts(self.max_cuts)
        _check_level(self.significance, "significance")


@dataclass(frozen=True, slots=True)
class C45:
    """C4.5 (Quinlan 1993), from the rows whose label names one class; see `quercus.trees.learners.c45.c45`.

    Parameters
    ----------
    min_instances, max_depth, max_cuts
        As of `Id3`.
    min_branch
        At least two branches must hold this weight of rows.
    confidence
        Of pessimistic pruning, in (0, 1); None for no pruning.
    """

    name: ClassVar[str] = "c45"
    min_instances: int = 2
    max_depth: int | None = None
    max_cuts: int | None = None
    min_branch: int = 2
    confidence: float | None = 0.25

    def __post_init__(self) -> None:
        _check_limits(self.min_instances, self.max_depth)
        _check_cuts(self.max_cuts)
        check_count(self.min_branch, "min_branch", 1)
        _check_level(self.confidence, "confidence")


@dataclass(frozen=True, slots=True)
class Averaging:
    """The belief decision tree, averaging approach (theory §4); parameters as of `Id3`."""

    name: ClassVar[str] = "averaging"
    min_instances: int = 2
    max_depth: int | None = None
    max_cuts: int | None = None

    def __post_init__(self) -> None:
        _check_limits(self.min_instances, self.max_depth)
        _check_cuts(self.max_cuts)


@dataclass(frozen=True, slots=True)
class TotalUncertainty:
    """Belief decision trees by total uncertainty (theory §5): one for two classes, else one a class.

    Parameters
    ----------
    lam
        λ in [0, 1], the weight of discord; None: chosen by cross-validation.
    combine
        How the trees' masses become one; Dempster's rule for at most 16 classes.
    min_instances, max_depth, max_cuts
        As of `Id3`.
    folds, seed
        Of the cross-validation.
    """

    name: ClassVar[str] = "total-uncertainty"
    lam: float | None = None
    combine: Combine = "dempster"
    min_instances: int = 2
    max_depth: int | None = None
    max_cuts: int | None = None
    folds: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if self.lam is not None:
            if isinstance(self.lam, bool) or not isinstance(self.lam, int | float) or not 0 <= self.lam <= 1:
                raise InvalidInput("lam", f"is {shown(self.lam)}, must lie in [0, 1]")
            object.__setattr__(self, "lam", float(self.lam))
        _check_choice(self.combine, "combine", get_args(Combine))
        _check_limits(self.min_instances, self.max_depth)
        _check_cuts(self.max_cuts)
        check_count(self.folds, "folds", 2, MAX_FOLDS)
        check_count(self.seed, "seed", 0, MAX_SEED)


@dataclass(frozen=True, slots=True)
class BeliefEntropy:
    """The belief-entropy trees (theory §6).

    Parameters
    ----------
    leaf
        What a leaf predicts with: ``"OBE"``, ``"LBE"`` or ``"IBE"``; the latter two for at most 16 classes.
    min_instances
        A node of less weight is a leaf; None: 5 a class.
    max_depth
        As of `Abc45`.
    """

    name: ClassVar[str] = "belief-entropy"
    leaf: Rule = "LBE"
    min_instances: int | None = None
    max_depth: int | None = None

    def __post_init__(self) -> None:
        _check_choice(self.leaf, "leaf", get_args(Rule))
        _check_limits(1 if self.min_instances is None else self.min_instances, self.max_depth)


Tree = Abc45 | E2m | Id3 | C45 | Averaging | TotalUncertainty | BeliefEntropy
"""What grows one tree, or one a class."""


@dataclass(frozen=True, slots=True)
class Forest:
    """A forest: bootstrap samples, random attributes at each node, and a vote.

    Parameters
    ----------
    base
        What each tree is.
    trees
        How many, 1 to 1,000.
    vote
        ``"label"``: the class of most trees; ``"mass"``: Dempster's rule over the trees' masses, for at most 16
        classes.
    max_features
        How many of the attributes that are left are drawn at a node: ``"root"`` ``⌈√m⌉``, ``"half"`` ``⌈m/2⌉``,
        ``"all"``, or a number.
    seed
        Of the forest, in [0, 2^63).
    """

    name: ClassVar[str] = "forest"
    base: Tree = BeliefEntropy()
    trees: int = 50
    vote: Vote = "label"
    max_features: Share | int = "root"
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.base, Tree):
            raise InvalidInput("base", f"is {shown(self.base)}, must be one of {', '.join(TREES)}")
        check_count(self.trees, "trees", 1, MAX_TREES)
        _check_choice(self.vote, "vote", get_args(Vote))
        if isinstance(self.max_features, str):
            _check_choice(self.max_features, "max_features", get_args(Share))
        else:
            check_count(self.max_features, "max_features", 1)
        check_count(self.seed, "seed", 0, MAX_SEED)


Algorithm = Tree | Forest

TREES: Mapping[str, type[Tree]] = MappingProxyType(
    {each.name: each for each in (Abc45, E2m, Id3, C45, Averaging, TotalUncertainty, BeliefEntropy)}
)
"""Classes of learners by name, without `Forest`."""

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


def check_classes(algorithm: Algorithm, size: int) -> None:
    """Refuse a frame of `size` classes that is too large for what an algorithm does with masses.

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
    count = algorithm.trees if isinstance(algorithm, Forest) else 1
    if not isinstance(base, TotalUncertainty):
        return {"trees": count}
    each = size if size > 2 else 1
    folds = 0 if base.lam is not None else base.folds * len(LAMBDAS) * each
    return {"trees": count * each, "folds": folds}


def with_rules(algorithm: Algorithm, **rules: object) -> Algorithm:
    """Return an algorithm with the parameters `rules`, as far as it, or the base of a forest, has them."""
    if isinstance(algorithm, Forest):
        return replace(algorithm, base=_with_rules(algorithm.base, rules))
    return _with_rules(algorithm, rules)


def _with_rules(tree: Tree, rules: Mapping[str, object]) -> Tree:
    known = {field.name for field in fields(tree)}
    return replace(tree, **{name: value for name, value in rules.items() if name in known})  # type: ignore[arg-type]
