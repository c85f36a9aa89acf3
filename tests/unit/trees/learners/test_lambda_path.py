"""Trees for many λ grown as one, against trees grown one λ at a time."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pytest
from support.growing import fit_total_uncertainty, total_uncertainty_tree

from quercus.belief.mass import MassFunction
from quercus.belief.measures import pignistic
from quercus.belief.rules import dempster
from quercus.specification.attributes import Nominal, Numeric
from quercus.trees import Combine, TotalUncertainty
from quercus.trees.learners.one_against_rest import extend_vacuously, pignistic_together
from quercus.trees.learners.predicting import TreeModel, mean_mass
from quercus.trees.learners.table import Table
from quercus.trees.learners.total_uncertainty import LAMBDAS, choose_lambda, lambda_path

ATTRIBUTES = (Numeric("x"), Numeric("y"), Nominal("colour", ("red", "green", "blue")), Numeric("z"))


def random_table(seed: int, size: int, rows: int = 60) -> Table:
    """Numbers, names, gaps, weights, and labels of which the half say nothing."""
    rng = np.random.default_rng(seed)
    values = np.column_stack(
        [
            rng.normal(size=rows),
            rng.integers(6, size=rows) / 2,
            rng.integers(3, size=rows),
            rng.normal(size=rows),
        ]
    )
    classes = (np.digitize(values[:, 0], np.linspace(-1, 1, size - 1)) + rng.integers(2, size=rows)) % size
    values[rng.random(values.shape) < 0.1 * (seed % 2)] = np.nan
    contours = rng.integers(0, 3, (rows, size)) / 4
    contours[np.arange(rows), classes] = 1.0
    contours[rng.random(rows) < 0.5] = 1.0
    return Table.of_contours(values, ATTRIBUTES, contours, rng.integers(1, 4, rows) / 2)


@pytest.mark.parametrize("limits", [{}, {"min_instances": 6, "max_depth": 3, "max_cuts": 4}])
@pytest.mark.parametrize("seed", range(4))
def test_it_says_for_each_lambda_what_the_tree_of_that_lambda_says(seed: int, limits: dict[str, int]) -> None:
    table = random_table(seed, 2 + seed % 3)
    path = lambda_path(table, TotalUncertainty(**limits), LAMBDAS, seed % 2)
    rng = np.random.default_rng(seed)
    values = np.concatenate([table.values, table.values[rng.permutation(len(table))]])
    values[rng.random(values.shape) < 0.2] = np.nan  # unknown: they go down several branches
    sizes = set()
    for lam in LAMBDAS:
        tree = total_uncertainty_tree(table, lam, klass=seed % 2, **limits)
        sizes.add(sum(1 for _ in tree.preorder()))
        alone = TreeModel.of(tree, table.attributes).predict(values).masses
        together = path.predict(np.column_stack([values, np.full(len(values), lam)])).masses
        assert alone is not None
        assert together is not None
        for one, other in zip(alone, together, strict=True):
            assert dict(one.focal) == pytest.approx(dict(other.focal), abs=1e-12)
    assert len(sizes) > 1  # else λ is never tested


def test_what_all_lambdas_share_is_grown_once() -> None:
    table = random_table(1, 2)
    path = lambda_path(table, TotalUncertainty(), LAMBDAS)
    alone = [sum(1 for _ in total_uncertainty_tree(table, lam).preorder()) for lam in LAMBDAS]
    assert path.flat.size < sum(alone)
    only = lambda_path(table, TotalUncertainty(), [0.5])
    tests = [(node.attribute, node.threshold) for node, *_ in only.trees[0].preorder()]
    assert tests == [
        (node.attribute, node.threshold) for node, *_ in total_uncertainty_tree(table).preorder()
    ]


def random_masses(rng: np.random.Generator, rows: int, size: int) -> np.ndarray:
    masses = rng.dirichlet([0.6, 0.6, 0.4], size=(rows, size))
    masses[rng.random((rows, size)) < 0.15] = [0.0, 0.4, 0.6]
    masses[rng.random((rows, size)) < 0.15] = [0.0, 0.0, 1.0]
    return masses


@pytest.mark.parametrize("size", [3, 4, 6])
@pytest.mark.parametrize("combine", ["dempster", "mean"])
def test_the_pignistic_probability_is_that_of_the_masses_combined(size: int, combine: Combine) -> None:
    masses = random_masses(np.random.default_rng(size), 40, size)
    found = pignistic_together(masses, combine)
    for row, betp in zip(masses, found, strict=True):
        extended = [
            extend_vacuously(MassFunction(2, ((1, a), (2, b), (3, 1.0 - a - b))), size, k)
            for k, (a, b, _) in enumerate(row)
        ]
        whole = mean_mass(extended) if combine == "mean" else reduce(dempster, extended)
        assert betp == pytest.approx(pignistic(whole), abs=1e-12)


def test_in_total_conflict_the_mean_decides() -> None:
    two_winners = np.array([[[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]])
    assert pignistic_together(two_winners, "dempster") == pytest.approx(
        pignistic_together(two_winners, "mean")
    )


def slow_choice(table: Table, seed: int, lambdas: Sequence[float], folds: int, combine: Combine) -> float:
    """Cross-validate λ by λ, each with models of its own."""
    parts = np.array_split(np.random.default_rng(seed).permutation(len(table)), folds)
    errors = []
    for lam in lambdas:
        error = 0.0
        for part in parts:
            rest = np.setdiff1d(np.arange(len(table)), part)
            said = fit_total_uncertainty(table.take(rest), lam, combine=combine).predict(table.values[part])
            error += float(table.weights[part] @ (1 - table.pignistic[part, said.klass]))
        errors.append(error / table.weights.sum())
    return next(lam for lam, error in zip(lambdas, errors, strict=True) if error <= min(errors) + 1e-9)


@pytest.mark.parametrize("combine", ["dempster", "mean"])
@pytest.mark.parametrize("seed", range(3))
def test_the_choice_is_that_of_a_cross_validation_lambda_by_lambda(seed: int, combine: Combine) -> None:
    table = random_table(seed, 2 + seed % 3, 40)
    lambdas = [0.1, 0.3, 0.6, 1.0]
    chosen = choose_lambda(TotalUncertainty(combine=combine, folds=4, seed=seed), table, lambdas=lambdas)
    assert chosen == slow_choice(table, seed, lambdas, 4, combine)
