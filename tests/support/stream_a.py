"""Stream A: a hidden tree over ten nominal attributes of four values, three classes, and labels of mixed worth."""

from dataclasses import dataclass

import numpy as np

from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal
from quercus.specification.model import Specification
from support.published import published_tree

ATTRIBUTES, VALUES, CLASSES, DEPTH = 10, 4, 3, 5
NOISE = 0.05  # of the labels tell another class


@dataclass(frozen=True, eq=False)
class Rows:
    """Values (n, K), contours (n, l) and the truth (n,)."""

    values: np.ndarray
    contours: np.ndarray
    truth: np.ndarray


def specification(alpha: float, min_instances: int, budget: int) -> Specification:
    names = tuple(f"v{i}" for i in range(VALUES))
    return published_tree(
        tuple(Nominal(f"a{k}", names, "reject") for k in range(ATTRIBUTES)),
        Frame(tuple(f"c{j}" for j in range(CLASSES))),
        alpha=alpha,
        budget=budget,
        min_instances=min_instances,
        strategy="published",
    )


def rows(seed: int, count: int) -> Rows:
    """Half of the labels vacuous, a quarter sets of two classes, the rest precise."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, VALUES, (count, ATTRIBUTES))
    truth = _hidden(rng, values, np.arange(count), tuple(range(ATTRIBUTES)), DEPTH)
    said = np.where(rng.random(count) < NOISE, rng.integers(0, CLASSES, count), truth)
    contours = np.eye(CLASSES)[said]
    kind = rng.random(count)
    other = (said + rng.integers(1, CLASSES, count)) % CLASSES
    sets = kind < 0.25
    contours[sets, other[sets]] = 1.0
    contours[kind >= 0.5] = 1.0
    return Rows(values.astype(float), contours, truth)


def _hidden(
    rng: np.random.Generator, values: np.ndarray, here: np.ndarray, left: tuple[int, ...], depth: int
) -> np.ndarray:
    """Class of each of the rows `here`, by a random tree over the attributes `left`."""
    if depth == 0:
        return np.full(here.size, rng.integers(0, CLASSES))
    attribute = int(rng.choice(left))
    rest = tuple(k for k in left if k != attribute)
    truth = np.empty(here.size, dtype=np.int64)
    for value in range(VALUES):
        chosen = values[here, attribute] == value
        truth[chosen] = _hidden(rng, values, here[chosen], rest, depth - 1)
    return truth
