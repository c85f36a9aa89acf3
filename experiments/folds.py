"""The folds of an experiment, and seeds from names: a draw depends on its purpose, not on when or where it is made."""

import hashlib

import numpy as np

from quercus.belief.arrays import Ints
from quercus.belief.errors import InvalidInput


def fold_numbers(targets: Ints, folds: int, seed: np.random.SeedSequence) -> Ints:
    """Return the fold (n,) of each row: the rows, shuffled and ordered by class, are dealt out in turn.

    So the sizes of the folds differ by at most one, and so do their numbers of rows of each class. A class may have
    fewer rows than there are folds.

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


def seed_of(seed: int, *name: str | float) -> np.random.SeedSequence:
    """Return the seed of a named part of the experiment with this seed.

    Examples
    --------
    >>> seed_of(0, "folds", "iris", 1).generate_state(1) == seed_of(0, "folds", "iris", 1).generate_state(1)
    array([ True])
    """
    text = "\x1f".join(repr(part) for part in name)
    words = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype="<u4")
    return np.random.SeedSequence([seed, *(int(word) for word in words)])
