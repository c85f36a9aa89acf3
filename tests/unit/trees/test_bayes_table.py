"""A naive-Bayes member as it is served."""

import numpy as np

from quercus.kernels.forest import bayes_estimates
from quercus.trees.memory_forest.served import BayesTable, bayes_columns


def test_numbers_beyond_all_others_are_told_apart_without_a_warning() -> None:
    """Warnings are errors here; distances that overflow are as far as the farthest."""
    table = BayesTable(9.0, np.array([0.5, 0.5]), np.array([[0.0, 1.0]]), np.array([[1e-3, 2.0]]), ())
    rows = np.array([[1.7e308], [-1e200], [1.0]])
    said = bayes_estimates(np.array([False]), *bayes_columns([table], 2), rows)
    np.testing.assert_allclose(said, [[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]])
