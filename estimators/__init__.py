"""Belief trees with scikit-learn's interface; see docs/estimators.md."""

if __name__ != "quercus.estimators":  # by another name every class would exist twice
    raise ImportError(f"import quercus.estimators, not {__name__}")

try:
    import sklearn  # noqa: F401
except ModuleNotFoundError as error:  # the base install is the client alone
    raise ModuleNotFoundError(
        "quercus.estimators needs scikit-learn: pip install 'quercus[estimators]'", name=error.name
    ) from None

from quercus.estimators.active import ActiveBeliefTreeClassifier
from quercus.estimators.active_forest import ActiveForestClassifier
from quercus.estimators.forest import EvidentialForestClassifier
from quercus.estimators.trees import (
    BeliefEntropyTreeClassifier,
    BeliefTreeClassifier,
    C45Classifier,
    E2MTreeClassifier,
    ID3Classifier,
    TotalUncertaintyTreeClassifier,
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
