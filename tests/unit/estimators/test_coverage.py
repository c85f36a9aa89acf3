"""Sets of stated coverage from the estimators (theory §10.8)."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split

from quercus.estimators import ActiveForestClassifier, C45Classifier, E2MTreeClassifier
from quercus.trees import Basis


def noisy(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """One number that says the class in four of five rows."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 3))
    y = (X[:, 0] > 0.5) ^ (rng.random(rows) < 0.2)
    return X, np.array(["no", "yes"])[y.astype(int)]


def covered(model: object, X: np.ndarray, y: np.ndarray, coverage: float) -> float:
    sets = model.predict_set(X, coverage=coverage)
    return float(sets[np.arange(len(y)), np.searchsorted(model.classes_, y)].mean())


def test_a_forest_covers_as_stated() -> None:
    X, y = noisy(1, 3_600)
    forest = ActiveForestClassifier(n_estimators=30, random_state=0).fit(X[:1_600], y[:1_600])
    assert (forest.calibration().basis, len(forest.calibration().scores)) == (Basis.LABELLED, 950)
    for coverage in (0.85, 0.9, 0.95):  # at one moment: thresholds that follow a stream waver by 2 points
        assert covered(forest, X[1_600:], y[1_600:], coverage) == pytest.approx(coverage, abs=0.045)
    in_parts = ActiveForestClassifier(n_estimators=30, random_state=0)
    for start in range(0, 1_600, 400):
        in_parts.partial_fit(X[start : start + 400], y[start : start + 400])
    np.testing.assert_array_equal(in_parts.calibration().scores, forest.calibration().scores)


def test_labels_of_a_pool_are_weighed() -> None:
    """Rows without a label beside: the labelled ones were chosen, and are weighed like all."""
    X, y = noisy(2, 300)
    said = [label if i < 60 else None for i, label in enumerate(y)]
    forest = ActiveForestClassifier(classes=["no", "yes"], n_estimators=30, random_state=0).fit(X, said)
    assert (forest.calibration().basis, len(forest.calibration().scores)) == (Basis.WEIGHTED, 60)
    assert 0.8 < covered(forest, X[60:], y[60:], 0.9) <= 1.0


@pytest.mark.parametrize("make", [C45Classifier, E2MTreeClassifier, ActiveForestClassifier])
def test_rows_that_were_held_out(make: type) -> None:
    X, y = load_iris(return_X_y=True)
    learned, rest, y_learned, y_rest = train_test_split(X, y, test_size=0.6, random_state=0, stratify=y)
    model = make().fit(learned, y_learned)
    model.conformalize(rest[:45], y_rest[:45])
    assert len(model.calibration().scores) == 45
    found = model.predict_set(rest[45:], coverage=0.97)
    assert found[np.arange(45), y_rest[45:]].mean() > 0.9
    model.conformalize(rest, [None] * 89 + [0])  # one label tells nothing at 90 %
    assert model.predict_set(rest[:1], coverage=0.9).all()
    model.fit(learned, y_learned)
    assert not hasattr(model, "model_") or model._calibration is None


def test_errors() -> None:
    X, y = noisy(3, 40)
    tree = C45Classifier().fit(X, y)
    with pytest.raises(
        ValueError, match=r"C45Classifier has no scores for a coverage: call conformalize\(X, y\)"
    ):
        tree.predict_set(X, coverage=0.9)
    with pytest.raises(ValueError, match=r"coverage: is 90, must lie in \(0, 1\), such as 0\.9"):
        tree.conformalize(X, y).predict_set(X, coverage=90)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        tree.conformalize(X, y[:-1])


def test_kinds_of_doubt_are_the_entropy() -> None:
    X, y = noisy(3, 400)
    forest = ActiveForestClassifier(n_estimators=12, random_state=0).fit(X, y)
    doubt, theta = forest.predict_doubt(X[:50]), forest.predict_proba(X[:50])
    entropy = -np.where(theta > 0, theta * np.log2(np.where(theta > 0, theta, 1.0)), 0.0).sum(axis=1)
    np.testing.assert_allclose(doubt.overlap + doubt.ignorance, entropy, atol=1e-12)
    assert doubt.overlap.mean() > 0.3  # one row in five has the other class
    with pytest.raises(NotFittedError):
        ActiveForestClassifier().predict_doubt(X[:1])
