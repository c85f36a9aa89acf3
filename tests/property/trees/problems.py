"""Random small problems: codes, contours, and oracles with a mind of their own."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass
class Problem:
    codes: np.ndarray
    arities: list[int]
    contours: np.ndarray
    alpha: float
    budget: int
    min_instances: int
    max_depth: int | None
    answers: list[tuple[float, ...] | None]  # what the oracle will say of each row; None: it cannot tell

    @property
    def settings(self) -> dict[str, object]:
        return {
            "alpha": self.alpha,
            "budget": self.budget,
            "min_instances": self.min_instances,
            "max_depth": self.max_depth,
        }

    def oracle(self, instance: int) -> tuple[float, ...] | None:
        return self.answers[instance]


def problem(seed: int, classes: tuple[int, ...] = (2, 3), rows: int = 30) -> Problem:
    rng = np.random.default_rng(seed)
    size, n, attributes = int(rng.choice(classes)), int(rng.integers(1, rows)), int(rng.integers(0, 4))
    arities = rng.integers(1, 4, attributes)
    truth = rng.integers(0, size, n)
    precise = rng.choice([0.2, 0.5, 0.8])
    return Problem(
        codes=np.column_stack([_first(rng, truth), *(_column(rng, truth, arity) for arity in arities)]),
        arities=[2, *arities.tolist()],
        contours=np.array([_contour(rng, size, klass, precise) for klass in truth]),
        alpha=float(rng.choice([0.5, 0.8, 0.95, 0.99, 0.999, 1.0])),
        budget=int(rng.integers(0, n + 1)),
        min_instances=int(rng.integers(1, 4)),
        max_depth=None if rng.random() < 0.7 else int(rng.integers(0, 3)),
        answers=[_answer(rng, size, klass) for klass in truth],
    )


def _first(rng: np.random.Generator, truth: np.ndarray) -> np.ndarray:
    """Often tells one class from the others, so that questions are left for the nodes below."""
    told = rng.random(len(truth)) < rng.choice([0.2, 1.0])
    return np.where(told, truth == 0, rng.integers(0, 2, len(truth)))


def _column(rng: np.random.Generator, truth: np.ndarray, arity: int) -> np.ndarray:
    told = rng.random(len(truth)) < rng.choice([0.1, 0.6, 0.9])  # the share whose value tells the class
    return np.where(told, truth % arity, rng.integers(0, arity, len(truth)))


def _contour(rng: np.random.Generator, size: int, klass: int, precise: float) -> np.ndarray:
    kind = rng.random()
    if kind < precise:
        return np.eye(size)[klass]
    if kind < (1 + precise) / 2:
        return np.full(size, rng.choice([1.0, 1.0, 0.4]))  # vacuous, sometimes subnormal
    values = rng.choice([0.0, 0.1, 0.3, 0.5, 0.7, 1.0], size)
    values[klass] = rng.choice([0.5, 1.0])
    return values


def _answer(rng: np.random.Generator, size: int, klass: int) -> tuple[float, ...] | None:
    kind = rng.random()
    klass = int(rng.integers(0, size)) if rng.random() < 0.1 else klass  # oracles err
    if kind < 0.2:
        return None
    if kind < 0.4:
        answer = rng.choice([0.0, 1.0], size)
        answer[klass] = 1.0
        return tuple(answer.tolist())
    return tuple(np.eye(size)[klass].tolist())


def vacuous(n: int, size: int) -> np.ndarray:
    return np.ones((n, size))


def certain(truth: np.ndarray) -> Callable[[int], np.ndarray]:
    return lambda instance: np.eye(int(truth.max()) + 1)[truth[instance]]
