"""Belief-entropy trees against a tree that was written from theory §6 alone: the same predictions, ties included."""

import numpy as np
import pytest
from support.growing import fit_belief_entropy
from support.plain_entropy_tree import PlainEntropyTree

from quercus.specification.attributes import Nominal, Numeric
from quercus.trees.learners.table import Table

CASES = 10


def labels(rng: np.random.Generator, classes: np.ndarray, size: int, kind: int) -> np.ndarray:
    """Contours: precise, sets, plausibilities, nothing; or all of these."""
    contours = np.eye(size)[classes]
    kinds = rng.integers(4, size=len(classes)) if kind == 4 else np.full(len(classes), kind)
    sets = (kinds == 1) & (rng.random(len(classes)) < 0.5)
    contours[sets, rng.integers(size, size=int(sets.sum()))] = 1.0
    soft = kinds == 2
    contours[soft] = np.maximum(contours[soft], np.round(rng.random((int(soft.sum()), size)), 1))
    contours[(kinds == 3) & (rng.random(len(classes)) < 0.7)] = 1.0
    return contours


@pytest.mark.parametrize("seed", range(CASES))
def test_predictions_are_those_of_the_text(seed: int) -> None:
    """Numbers and names, some missing; rounded numbers and few names make ties. One case in two has weights."""
    rng = np.random.default_rng(seed)
    size, n, K = int(rng.integers(2, 5)), 45, int(rng.integers(1, 4))
    named = rng.random(K) < 0.4
    classes = rng.integers(size, size=n)
    values = np.where(
        named,
        (classes[:, None] + rng.integers(3, size=(n, K))) % 4,
        np.round(classes[:, None] + rng.normal(size=(n, K))),
    )
    values = np.where(rng.random((n, K)) < 0.08, np.nan, values)
    if seed % 4 == 0:
        values[:, 0] = np.where(named[0], 0, 7.1)  # a column that tells nothing
    contours = labels(rng, classes, size, seed % 5)
    weights = rng.integers(1, 3, size=n).astype(float) if seed % 2 else np.ones(n)
    attributes = [Nominal(f"a{k}", "pqrs") if named[k] else Numeric(f"a{k}") for k in range(K)]
    table = Table.of_contours(values, attributes, contours, weights)
    asked = np.concatenate([values, np.where(named, 1, rng.normal(scale=4, size=(15, K)))])

    def rows_of(matrix: np.ndarray) -> list[list[float | None]]:
        return [[None if np.isnan(x) else float(x) for x in row] for row in matrix]

    for kind in ("OBE", "LBE", "IBE"):
        said = fit_belief_entropy(table, kind, min_instances=6).predict(asked)
        plain = PlainEntropyTree(
            rows_of(values),
            contours.tolist(),
            weights.tolist(),
            [4 if each else None for each in named],
            kind,
            6,
        )
        assert said.klass.tolist() == [plain.predict(row) for row in rows_of(asked)], kind
        chances = np.array([plain.probabilities(row) for row in rows_of(asked)])
        assert (said.plausibility if kind == "OBE" else said.theta) == pytest.approx(chances, abs=1e-9), kind
