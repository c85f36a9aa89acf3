# Generated from the declarations of the learners by `make estimators`; edit those.
"""The estimators of single trees, one class per learner."""

from collections.abc import Sequence
from typing import Any, Literal

from quercus.estimators.base import TableClassifier, pruning_of, seed_of
from quercus.trees import C45, Averaging, BeliefEntropy, E2m, Id3, Learner, TotalUncertainty


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

    def _make_algorithm(self) -> Learner:
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

    def _make_algorithm(self) -> Learner:
        return C45(
            min_instances=self.min_instances,
            max_depth=self.max_depth,
            max_cuts=self.max_cuts,
            min_branch=self.min_branch,
            confidence=self.confidence,
        )


class E2MTreeClassifier(TableClassifier):
    """The E2M tree: ABC4.5 at level 1.

    Rows that say nothing weigh the branches of a split, though not its entropies. Where they are most rows, a
    tree without them (`informed_only`) is better.

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

    def _make_algorithm(self) -> Learner:
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

    def _make_algorithm(self) -> Learner:
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

    def _make_algorithm(self) -> Learner:
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

    def _make_algorithm(self) -> Learner:
        return BeliefEntropy(
            leaf=self.leaf,
            min_instances=self.min_instances,
            max_depth=self.max_depth,
        )
