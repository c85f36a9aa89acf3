"""The estimators of single trees, one class per learner; the learners document their parameters."""

from collections.abc import Sequence
from typing import Any

from quercus.estimators.base import TableClassifier, seed_of
from quercus.specification.algorithms import Pruning
from quercus.specification.parameters import (
    CANDIDATE_CUTS,
    COMBINE,
    CONFIDENCE,
    FOLDS,
    INFORMED_ONLY,
    LEAF,
    LEVEL,
    MIN_BRANCH,
    MIN_INSTANCES,
    PREDICTION_LEVEL,
    SPLIT_SIGNIFICANCE,
)
from quercus.trees import C45, Averaging, BeliefEntropy, Combine, E2m, Id3, Learner, Rule, TotalUncertainty


class ID3Classifier(TableClassifier):
    """ID3: information gain (Quinlan 1986), from the rows whose label names one class.

    Parameters
    ----------
    min_instances
        A node with fewer rows is a leaf.
    max_depth
        Depth at which every node is a leaf; None for no limit.
    max_cuts
        Most thresholds of a number that are tried at a node; None for no limit.
    significance
        Level of χ² pruning, in (0, 1); None for no pruning.
    classes, categorical_features
        See `quercus.estimators.base.BeliefClassifier`.

    Examples
    --------
    >>> ID3Classifier().fit([["sun", 1], ["rain", 1], ["rain", 5]], ["no", "no", "yes"]).predict([["rain", 4]])
    array(['yes'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        min_instances: int = MIN_INSTANCES.default,
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
        return Id3(self.min_instances, self.max_depth, self.max_cuts, self.significance)


class C45Classifier(TableClassifier):
    """C4.5: gain ratio, parts of rows for missing values, pessimistic pruning (Quinlan 1993).

    It learns from the rows whose label names one class.

    Parameters
    ----------
    min_instances, max_depth, max_cuts, classes, categorical_features
        See `ID3Classifier`.
    min_branch
        At least two branches must have this weight of rows.
    confidence
        Confidence of pruning, in (0, 1); None for no pruning.
    """

    def __init__(
        self,
        *,
        min_instances: int = MIN_INSTANCES.default,
        max_depth: int | None = None,
        max_cuts: int | None = None,
        min_branch: int = MIN_BRANCH.default,
        confidence: float | None = CONFIDENCE.default,
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
        return C45(self.min_instances, self.max_depth, self.max_cuts, self.min_branch, self.confidence)


class E2MTreeClassifier(TableClassifier):
    """The E2M tree: gain ratios of the evidential likelihood's maximum, from labels of any kind (theory §3.6).

    Parameters
    ----------
    min_instances, max_depth, classes, categorical_features
        See `ID3Classifier`.
    max_cuts
        Most candidate thresholds of a number at a node.
    pruning
        None, ``"likelihood"`` (evidential likelihood ratio test) or ``"chi-square"``.
    level
        Significance level of the pruning, in (0, 1).
    informed_only
        Learn from those rows alone whose label says anything at all.
    prediction_level, split_significance
        See `quercus.estimators.active.ActiveBeliefTreeClassifier`.
    """

    def __init__(
        self,
        *,
        min_instances: int = MIN_INSTANCES.default,
        max_depth: int | None = None,
        max_cuts: int = CANDIDATE_CUTS.default,
        pruning: str | None = None,
        level: float = LEVEL.default,
        informed_only: bool = INFORMED_ONLY.default,
        prediction_level: float = PREDICTION_LEVEL.default,
        split_significance: float = SPLIT_SIGNIFICANCE.default,
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
        pruning = pruning_of(self.pruning, self.level)
        return E2m(
            self.min_instances,
            self.max_depth,
            self.max_cuts,
            pruning,
            self.informed_only,
            self.prediction_level,
            self.split_significance,
        )


class BeliefTreeClassifier(TableClassifier):
    """The belief decision tree, averaging approach (Elouedi, Mellouli, Smets 2000), from mass functions.

    Labels that are no mass functions become the least committed ones.

    Parameters
    ----------
    min_instances, max_depth, max_cuts, classes, categorical_features
        See `ID3Classifier`.
    """

    def __init__(
        self,
        *,
        min_instances: int = MIN_INSTANCES.default,
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
        return Averaging(self.min_instances, self.max_depth, self.max_cuts)


class TotalUncertaintyTreeClassifier(TableClassifier):
    """Trees by total uncertainty (Vannoorenberghe, Denoeux 2002): one for two classes, else one per class.

    Parameters
    ----------
    lam
        λ in [0, 1], the weight of discord against nonspecificity; None: chosen by cross-validation.
    combine
        Combination of the trees' masses: ``"dempster"`` (at most 16 classes) or ``"mean"``.
    min_instances, max_depth, max_cuts, classes, categorical_features
        See `ID3Classifier`.
    folds
        Folds of the cross-validation that chooses λ.
    random_state
        Seed of the folds.
    """

    def __init__(
        self,
        *,
        lam: float | None = None,
        combine: Combine = COMBINE.default,
        min_instances: int = MIN_INSTANCES.default,
        max_depth: int | None = None,
        max_cuts: int | None = None,
        folds: int = FOLDS.default,
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
            self.lam,
            self.combine,
            self.min_instances,
            self.max_depth,
            self.max_cuts,
            self.folds,
            seed_of(self.random_state),
        )


class BeliefEntropyTreeClassifier(TableClassifier):
    """The belief-entropy trees (Gao, Wang, Ma 2022): of numbers by Gaussians, of names by frequencies.

    Parameters
    ----------
    leaf
        What a leaf predicts with. ``"OBE"``: the sum of its rows' contours; ``"LBE"``: Dempster's rule over the masses
        of the attributes on the way and of the leaf's rows; ``"IBE"``: over the masses of the row's own values. The
        latter two for at most 16 classes.
    min_instances
        A node of less weight is a leaf; None: 5 a class.
    max_depth, classes, categorical_features
        See `ID3Classifier`.
    """

    def __init__(
        self,
        *,
        leaf: Rule = LEAF.default,
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
        return BeliefEntropy(self.leaf, self.min_instances, self.max_depth)


def pruning_of(kind: str | None, level: float) -> Pruning | None:
    """Return the pruning that parameters of an estimator name."""
    return None if kind is None else Pruning(kind, level)  # type: ignore[arg-type]
