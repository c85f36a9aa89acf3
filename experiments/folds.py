"""Stratified folds."""

import numpy as np

from quercus.belief.arrays import Ints
from quercus.belief.errors import InvalidInput


def fold_numbers(targets: Ints, folds: int, seed: np.random.SeedSequence) -> Ints:
    """Return the fold (n,) of each row: the rows, shuffled and ordered by class, are dealt out in turn.

    So the sizes of the folds differ by at most one, and so does their share of each class; a class rarer than there
    are folds is no trouble.

    Raises
    ------
    InvalidInput
        When there are fewer than two folds, or more folds than rows.
    """
    if not 2 <= folds <= len(targets):
        raise InvalidInput("folds", f"are {folds}, must lie in [2, {len(targets)}], the number of rows")
    shuffled = np.random.default_rng(seed).permutation(len(targets))
    ordered = shuffled[np.argsort(targets[shuffled], kind="stable")]
    numbers = np.empty(len(targets), dtype=np.int64)
    numbers[ordered] = np.arange(len(targets)) % folds
    return numbers
