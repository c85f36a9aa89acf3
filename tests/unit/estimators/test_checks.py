"""Every estimator passes scikit-learn's own checks."""

from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

from quercus import estimators
from quercus.estimators import (
    ActiveBeliefTreeClassifier,
    ActiveForestClassifier,
    BeliefEntropyTreeClassifier,
    BeliefTreeClassifier,
    C45Classifier,
    E2MTreeClassifier,
    EvidentialForestClassifier,
    ID3Classifier,
    TotalUncertaintyTreeClassifier,
)

ESTIMATORS = [
    ID3Classifier(),
    C45Classifier(),
    E2MTreeClassifier(),
    BeliefTreeClassifier(),
    TotalUncertaintyTreeClassifier(lam=0.3, combine="mean"),
    BeliefEntropyTreeClassifier(),
    ActiveBeliefTreeClassifier(),
    ActiveForestClassifier(n_estimators=12, random_state=1),
    EvidentialForestClassifier(n_estimators=3, random_state=1),
]
OTHER_SETTINGS = [
    TotalUncertaintyTreeClassifier(folds=2),  # ten take half a minute here
    EvidentialForestClassifier(C45Classifier(), n_estimators=3, vote="mass", random_state=1),
]


def expected(estimator: BaseEstimator) -> dict[str, str]:
    """As of scikit-learn's own forests."""
    if isinstance(estimator, EvidentialForestClassifier):
        drawn = "bootstrap samples are drawn from the rows, and a row of weight 2 is one row"
        return {"check_sample_weight_equivalence_on_dense_data": drawn}
    return {}


@pytest.mark.filterwarnings("ignore:SCIPY_ARRAY_API is not set")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
def test_scikit_learn(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


@pytest.mark.release
@pytest.mark.filterwarnings("ignore:SCIPY_ARRAY_API is not set")
@parametrize_with_checks(OTHER_SETTINGS, expected_failed_checks=expected)
def test_scikit_learn_with_other_settings(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


def test_all_estimators_are_checked() -> None:
    assert {type(each).__name__ for each in ESTIMATORS} == set(estimators.__all__)
