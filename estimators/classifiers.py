# Generated from the declarations of the learners by `make estimators`; edit those.
"""The estimators, one class per learner."""

from collections.abc import Sequence
from typing import Any, Literal

from quercus.estimators.active import AskingTreeClassifier
from quercus.estimators.active_forest import AskingForestClassifier
from quercus.estimators.base import ParallelClassifier, TableClassifier, pruning_of, seed_of, tree_of
from quercus.specification.strategies import QueryStrategy
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

__all__ = [
    "ActiveBeliefTreeClassifier",
    "ActiveForestClassifier",
    "BeliefEntropyTreeClassifier",
    "BeliefTreeClassifier",
    "C45Classifier",
    "E2MTreeClassifier",
    "EvidentialForestClassifier",
    "ID3Classifier",
    "TotalUncertaintyTreeClassifier",
]


class ID3Classifier(TableClassifier):
    """ID3, from the rows whose label names one class.

    Parameters
    ----------
    min_instances
        A node with fewer rows is a leaf; must be a whole number in [1, 1000000]. Default: 2.
    max_depth
        Every node at this depth is a leaf; must be a whole number in [0, 1000000]. None: no limit. Default: None.
    max_cuts
        Maximum number of thresholds of a numeric attribute that are tried at a node; must be a whole number in [1,
        1000000]. None: no limit. Default: None.
    significance
        Level of χ² pruning; must lie in (0, 1). None: no pruning. Default: None.
    classes, categorical_features
        See `quercus.estimators.base.BeliefClassifier`.

    Examples
    --------
    >>> X = [["sun", 1], ["rain", 1], ["rain", 5]]
    >>> ID3Classifier().fit(X, ["no", "no", "yes"]).classes_.tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        *,
        min_instances: int = 2,
        max_depth: int | None = None,
        max_cuts: int | None = None,
        significance: float | None = None,
        classes: Sequence[Any] | None = None,
        categorical_features: object = "from_dtype",
    ) -> None:
        self.min_instances = min_instances
        self.max_depth = max_depth
        self.max_cuts = max_cuts
        self.significance = significance
        self.classes = classes
        self.categorical_features = categorical_features

    def _make_learner(self) -> Id3:
        return Id3(
            min_instances=self.min_instances,
            max_depth=self.max_depth,
            max_cuts=self.max_cuts,
            significance=self.significance,
        )


class C45Classifier(TableClassifier):
    """C4.5 (Quinlan 1993), from the rows whose label names one class.

    A row whose value is missing goes down every branch, in parts; pruning is pessimistic.

    Parameters
    ----------
    min_instances
        A node with fewer rows is a leaf; must be a whole number in [1, 1000000]. Default: 2.
    max_depth
        Every node at this depth is a leaf; must be a whole number in [0, 1000000]. None: no limit. Default: None.
    max_cuts
        Maximum number of thresholds of a numeric attribute that are tried at a node; must be a whole number in [1,
        1000000]. None: no limit. Default: None.
    min_branch
        At least two branches must hold this weight of rows; must be a whole number in [1, 1000000]. Default: 2.
    confidence
        Confidence factor of pessimistic error pruning; must lie in (0, 1). None: no pruning. Default: 0.25.
    classes, categorical_features
        See `quercus.estimators.base.BeliefClassifier`.

    Examples
    --------
    >>> X = [["sun", 1], ["rain", 1], ["rain", 5]]
    >>> C45Classifier().fit(X, ["no", "no", "yes"]).classes_.tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        *,
        min_instances: int = 2,
        max_depth: int | None = None,
        max_cuts: int | None = None,
        min_branch: int = 2,
        confidence: float | None = 0.25,
        classes: Sequence[Any] | None = None,
        categorical_features: object = "from_dtype",
    ) -> None:
        self.min_instances = min_instances
        self.max_depth = max_depth
        self.max_cuts = max_cuts
        self.min_branch = min_branch
        self.confidence = confidence
        self.classes = classes
        self.categorical_features = categorical_features

    def _make_learner(self) -> C45:
        return C45(
            min_instances=self.min_instances,
            max_depth=self.max_depth,
            max_cuts=self.max_cuts,
            min_branch=self.min_branch,
            confidence=self.confidence,
        )


class E2MTreeClassifier(TableClassifier):
    """The E2M tree: ABC4.5 at level 1.

    Rows with vacuous labels affect the weights of a split's branches, but not its entropies. If most rows are of
    this kind, a tree without them (`informed_only`) is better.

    It learns from labels of any kind (theory §3.6).

    Parameters
    ----------
    min_instances
        A node with fewer rows is a leaf; must be a whole number in [1, 1000000]. Default: 2.
    max_depth
        Every node at this depth is a leaf; must be a whole number in [0, 1000000]. None: no limit. Default: None.
    max_cuts
        Maximum number of thresholds of a numeric attribute that are tried at a node; must be a whole number in [1,
        1000000]. Default: 32.
    pruning
        Test that a subtree must pass, else it is collapsed: of class counts, or the evidential likelihood ratio test;
        must be one of chi-square, likelihood. None: no pruning. Default: None.
    level
        Significance level of the pruning; smaller prunes more; must lie in (0, 1). Default: 0.05.
    informed_only
        Learn only from rows with an informative label; must be True or False. Default: False.
    prediction_level
        Level of the likelihood cut for prediction sets: 1 returns only the most likely class, 0 every class; must lie
        in [0, 1]. Default: 0.15.
    split_significance
        Expected number of false splits per depth: the smaller, the fewer splits; 0 disables the test; must lie in [0,
        1000]. Default: 0.0.
    classes, categorical_features
        See `quercus.estimators.base.BeliefClassifier`.

    Examples
    --------
    >>> X = [["sun", 1], ["rain", 1], ["rain", 5]]
    >>> E2MTreeClassifier().fit(X, ["no", "no", "yes"]).classes_.tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        *,
        min_instances: int = 2,
        max_depth: int | None = None,
        max_cuts: int = 32,
        pruning: Literal["chi-square", "likelihood"] | None = None,
        level: float = 0.05,
        informed_only: bool = False,
        prediction_level: float = 0.15,
        split_significance: float = 0.0,
        classes: Sequence[Any] | None = None,
        categorical_features: object = "from_dtype",
    ) -> None:
        self.min_instances = min_instances
        self.max_depth = max_depth
        self.max_cuts = max_cuts
        self.pruning = pruning
        self.level = level
        self.informed_only = informed_only
        self.prediction_level = prediction_level
        self.split_significance = split_significance
        self.classes = classes
        self.categorical_features = categorical_features

    def _make_learner(self) -> E2m:
        return E2m(
            min_instances=self.min_instances,
            max_depth=self.max_depth,
            max_cuts=self.max_cuts,
            pruning=pruning_of(self.pruning, self.level),
            informed_only=self.informed_only,
            prediction_level=self.prediction_level,
            split_significance=self.split_significance,
        )


class BeliefTreeClassifier(TableClassifier):
    """The belief decision tree, averaging approach (Elouedi 2000).

    It learns from mass functions; other labels become the least committed ones.

    Parameters
    ----------
    min_instances
        A node with fewer rows is a leaf; must be a whole number in [1, 1000000]. Default: 2.
    max_depth
        Every node at this depth is a leaf; must be a whole number in [0, 1000000]. None: no limit. Default: None.
    max_cuts
        Maximum number of thresholds of a numeric attribute that are tried at a node; must be a whole number in [1,
        1000000]. None: no limit. Default: None.
    classes, categorical_features
        See `quercus.estimators.base.BeliefClassifier`.

    Examples
    --------
    >>> X = [["sun", 1], ["rain", 1], ["rain", 5]]
    >>> BeliefTreeClassifier().fit(X, ["no", "no", "yes"]).classes_.tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        *,
        min_instances: int = 2,
        max_depth: int | None = None,
        max_cuts: int | None = None,
        classes: Sequence[Any] | None = None,
        categorical_features: object = "from_dtype",
    ) -> None:
        self.min_instances = min_instances
        self.max_depth = max_depth
        self.max_cuts = max_cuts
        self.classes = classes
        self.categorical_features = categorical_features

    def _make_learner(self) -> Averaging:
        return Averaging(
            min_instances=self.min_instances,
            max_depth=self.max_depth,
            max_cuts=self.max_cuts,
        )


class TotalUncertaintyTreeClassifier(TableClassifier):
    """Belief decision trees by total uncertainty (Vannoorenberghe 2002): one for two classes, else one per class.

    Parameters
    ----------
    lam
        Weight λ of discord; must lie in [0, 1]. None: chosen by cross-validation. Default: None.
    combine
        Combination of the trees, one per class; dempster for at most 16 classes; must be one of dempster, mean.
        Default: 'dempster'.
    min_instances
        A node with fewer rows is a leaf; must be a whole number in [1, 1000000]. Default: 2.
    max_depth
        Every node at this depth is a leaf; must be a whole number in [0, 1000000]. None: no limit. Default: None.
    max_cuts
        Maximum number of thresholds of a numeric attribute that are tried at a node; must be a whole number in [1,
        1000000]. None: no limit. Default: None.
    folds
        Folds of the cross-validation; must be a whole number in [2, 1000]. Default: 10.
    random_state
        Seed of the random draws: a whole number, a ``numpy.random.RandomState``, or None.
    classes, categorical_features
        See `quercus.estimators.base.BeliefClassifier`.

    Examples
    --------
    >>> X = [["sun", 1], ["rain", 1], ["rain", 5]]
    >>> TotalUncertaintyTreeClassifier().fit(X, ["no", "no", "yes"]).classes_.tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        *,
        lam: float | None = None,
        combine: Literal["dempster", "mean"] = "dempster",
        min_instances: int = 2,
        max_depth: int | None = None,
        max_cuts: int | None = None,
        folds: int = 10,
        random_state: Any = None,
        classes: Sequence[Any] | None = None,
        categorical_features: object = "from_dtype",
    ) -> None:
        self.lam = lam
        self.combine = combine
        self.min_instances = min_instances
        self.max_depth = max_depth
        self.max_cuts = max_cuts
        self.folds = folds
        self.random_state = random_state
        self.classes = classes
        self.categorical_features = categorical_features

    def _make_learner(self) -> TotalUncertainty:
        return TotalUncertainty(
            lam=self.lam,
            combine=self.combine,
            min_instances=self.min_instances,
            max_depth=self.max_depth,
            max_cuts=self.max_cuts,
            folds=self.folds,
            seed=seed_of(self.random_state),
        )


class BeliefEntropyTreeClassifier(TableClassifier):
    """The belief-entropy trees (Gao 2022).

    A leaf predicts with the sum of its rows' contours (``"OBE"``), or with Dempster's rule: over the masses of
    the attributes on the way and of the leaf's rows (``"LBE"``), or of the row's own values (``"IBE"``).

    Parameters
    ----------
    leaf
        Criterion with which a leaf predicts; LBE and IBE for at most 16 classes; must be one of OBE, LBE, IBE.
        Default: 'LBE'.
    min_instances
        A node with fewer rows is a leaf; must be a whole number in [1, 1000000]. None: 5 per class. Default: None.
    max_depth
        Every node at this depth is a leaf; must be a whole number in [0, 1000000]. None: no limit. Default: None.
    classes, categorical_features
        See `quercus.estimators.base.BeliefClassifier`.

    Examples
    --------
    >>> X = [["sun", 1], ["rain", 1], ["rain", 5]]
    >>> BeliefEntropyTreeClassifier().fit(X, ["no", "no", "yes"]).classes_.tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        *,
        leaf: Literal["OBE", "LBE", "IBE"] = "LBE",
        min_instances: int | None = None,
        max_depth: int | None = None,
        classes: Sequence[Any] | None = None,
        categorical_features: object = "from_dtype",
    ) -> None:
        self.leaf = leaf
        self.min_instances = min_instances
        self.max_depth = max_depth
        self.classes = classes
        self.categorical_features = categorical_features

    def _make_learner(self) -> BeliefEntropy:
        return BeliefEntropy(
            leaf=self.leaf,
            min_instances=self.min_instances,
            max_depth=self.max_depth,
        )


class EvidentialForestClassifier(ParallelClassifier):
    """A forest: bootstrap samples, random attributes at each node, and a vote.

    See theory §6. The classes and categorical features of `base` are ignored.

    Parameters
    ----------
    base
        Estimator of each tree, any but a forest; None: that of BeliefEntropy.
    n_estimators
        Trees of the forest; must be a whole number in [1, 1000]. Default: 50.
    vote
        label: the class of most trees; mass: Dempster's rule over the masses of the trees, for at most 16 classes;
        must be one of label, mass. Default: 'label'.
    max_features
        How many of the attributes that are left are drawn at a node; root: ⌈√m⌉ of m, half: ⌈m/2⌉; must be one of
        root, half, all, or a whole number in [1, 1000000]. Default: 'root'.
    random_state
        Seed of the random draws: a whole number, a ``numpy.random.RandomState``, or None.
    n_jobs
        Processes that grow trees; None: this one. The forest is the same.
    executor
        Executor that grows the trees, in place of `n_jobs`: ``"local"``, ``"processes:N"`` or ``"dask://host:port"``.
        The forest is the same.
    classes, categorical_features
        See `quercus.estimators.base.BeliefClassifier`.

    Examples
    --------
    >>> X = [["sun", 1], ["rain", 1], ["rain", 5]]
    >>> EvidentialForestClassifier().fit(X, ["no", "no", "yes"]).classes_.tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        base: TableClassifier | None = None,
        *,
        n_estimators: int = 50,
        vote: Literal["label", "mass"] = "label",
        max_features: Literal["root", "half", "all"] | int = "root",
        random_state: Any = None,
        n_jobs: int | None = None,
        executor: str | None = None,
        classes: Sequence[Any] | None = None,
        categorical_features: object = "from_dtype",
    ) -> None:
        self.base = base
        self.n_estimators = n_estimators
        self.vote = vote
        self.max_features = max_features
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.executor = executor
        self.classes = classes
        self.categorical_features = categorical_features

    def _make_learner(self) -> Forest:
        return Forest(
            base=tree_of(self.base, Forest().base),
            trees=self.n_estimators,
            vote=self.vote,
            max_features=self.max_features,
            seed=seed_of(self.random_state),
        )


class ActiveBeliefTreeClassifier(AskingTreeClassifier):
    """ABC4.5, the active belief decision tree.

    It asks: see `quercus.estimators.active.AskingTreeClassifier`. A lower `alpha` gives wider gain intervals and
    more queries.

    Parameters
    ----------
    alpha
        Level of the likelihood cut; must lie in [0, 1]. Default: 0.8.
    min_instances
        A node with fewer rows is a leaf; must be a whole number in [1, 1000000]. Default: 2.
    max_depth
        Every node at this depth is a leaf; must be a whole number in [0, 1000000]. None: no limit. Default: None.
    max_cuts
        Maximum number of thresholds of a numeric attribute that are tried at a node; must be a whole number in [1,
        1000000]. Default: 32.
    pruning
        Test that a subtree must pass, else it is collapsed: of class counts, or the evidential likelihood ratio test;
        must be one of chi-square, likelihood. None: no pruning. Default: None.
    level
        Significance level of the pruning; smaller prunes more; must lie in (0, 1). Default: 0.05.
    prediction_level
        Level of the likelihood cut for prediction sets: 1 returns only the most likely class, 0 every class; must lie
        in [0, 1]. Default: 0.15.
    split_significance
        Expected number of false splits per depth: the smaller, the fewer splits; 0 disables the test; must lie in [0,
        1000]. Default: 0.0.
    bins
        Number of equal-width bins of a numeric column; None: binary thresholds, among `max_cuts` candidates.
    strategy
        Strategy of `query`: the name of one that chooses for trees, or its value.
    missing_label
        Value of a missing label in `y`, besides None and NaN.
    classes, categorical_features
        See `quercus.estimators.base.BeliefClassifier`.

    Examples
    --------
    >>> X = [["sun", 1], ["rain", 1], ["rain", 5]]
    >>> ActiveBeliefTreeClassifier().fit(X, ["no", "no", "yes"]).classes_.tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        *,
        alpha: float = 0.8,
        min_instances: int = 2,
        max_depth: int | None = None,
        max_cuts: int = 32,
        pruning: Literal["chi-square", "likelihood"] | None = None,
        level: float = 0.05,
        prediction_level: float = 0.15,
        split_significance: float = 0.0,
        bins: int | None = 4,
        strategy: str | QueryStrategy = "covering-committee",
        missing_label: object = float("nan"),
        classes: Sequence[Any] | None = None,
        categorical_features: object = "from_dtype",
    ) -> None:
        self.alpha = alpha
        self.min_instances = min_instances
        self.max_depth = max_depth
        self.max_cuts = max_cuts
        self.pruning = pruning
        self.level = level
        self.prediction_level = prediction_level
        self.split_significance = split_significance
        self.bins = bins
        self.strategy = strategy
        self.missing_label = missing_label
        self.classes = classes
        self.categorical_features = categorical_features

    def _make_learner(self) -> Abc45:
        return Abc45(
            alpha=self.alpha,
            min_instances=self.min_instances,
            max_depth=self.max_depth,
            max_cuts=self.max_cuts,
            pruning=pruning_of(self.pruning, self.level),
            prediction_level=self.prediction_level,
            split_significance=self.split_significance,
        )


class ActiveForestClassifier(AskingForestClassifier):
    """A forest whose trees learn from memories of different lengths, the default: it also selects queries.

    It is the forest of many memories of theory §10.

    It asks, and learns in batches: see `quercus.estimators.active_forest.AskingForestClassifier`.

    Parameters
    ----------
    n_estimators
        Trees of the forest; must be a whole number in [1, 1000]. Default: 100.
    random_state
        Seed of the random draws: a whole number, a ``numpy.random.RandomState``, or None.
    prediction_level
        Level of the likelihood cuts of leaves, over which bounds and prediction sets are taken: 1 is least cautious,
        0 returns every class; must lie in [0, 1]. Default: 0.75.
    strategy
        Strategy of `query`: the name of one that gives the rows of a forest a worth, or its value.
    missing_label
        Value of a missing label in `y`, besides None and NaN.
    classes, categorical_features
        See `quercus.estimators.base.BeliefClassifier`.

    Examples
    --------
    >>> X = [["sun", 1], ["rain", 1], ["rain", 5]]
    >>> ActiveForestClassifier().fit(X, ["no", "no", "yes"]).classes_.tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        random_state: Any = None,
        prediction_level: float = 0.75,
        strategy: str | QueryStrategy = "margin",
        missing_label: object = float("nan"),
        classes: Sequence[Any] | None = None,
        categorical_features: object = "from_dtype",
    ) -> None:
        self.n_estimators = n_estimators
        self.random_state = random_state
        self.prediction_level = prediction_level
        self.strategy = strategy
        self.missing_label = missing_label
        self.classes = classes
        self.categorical_features = categorical_features

    def _make_learner(self) -> ActiveForest:
        return ActiveForest(
            trees=self.n_estimators,
            seed=seed_of(self.random_state),
            prediction_level=self.prediction_level,
        )
