"""Problems that the service and the offline algorithm must solve alike: iris, wine, and table T."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from golden.trees import table_t
from sklearn.datasets import load_iris, load_wine
from support.published import published_model

from quercus.belief.frame import Frame
from quercus.client import Nominal, Numeric, Specification
from quercus.specification.model import Specification as ModelSpecification
from quercus.trees.growth.abc45 import Induction, induce
from quercus.trees.tree.encoding import Encoder, branch_names, edges_in_force

Answer = np.ndarray | None


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows as the client sends them and as the algorithm takes them.

    `labels` (n, l) or None: nothing is known of any row; `truth` (n,) class of each row.
    """

    specification: Specification
    rows: np.ndarray
    labels: np.ndarray | None
    truth: np.ndarray
    codes: np.ndarray
    branches: tuple[tuple[str, ...], ...]

    @property
    def ids(self) -> list[str]:
        return [f"row-{i}" for i in range(len(self.rows))]

    @property
    def names(self) -> list[str]:
        return [attribute.name for attribute in self.specification.attributes]

    def induce(self, oracle: Callable[[int], Answer] | None) -> Induction:
        spec = self.specification
        contours = np.ones((len(self.rows), len(spec.classes))) if self.labels is None else self.labels
        arities = [len(names) for names in self.branches]
        return induce(self.codes, arities, contours, alpha=spec.alpha, budget=spec.budget or 0, oracle=oracle)

    def step(self, attribute: int, code: int) -> tuple[str, str]:
        return self.names[attribute], self.branches[attribute][code]


def _numeric(
    rows: np.ndarray, truth: np.ndarray, labels: np.ndarray | None, budget: int, edges_declared: bool
) -> Problem:
    """Four equal-width bins over all rows: from a warm-up of all rows, or declared."""
    names = [f"x{k}" for k in range(rows.shape[1])]
    frame = Frame(("one", "two", "three"))
    whole = ModelSpecification(tuple(map(Numeric, names)), frame, warmup_rows=len(rows))
    edges = edges_in_force(whole, rows)
    attributes = [
        Numeric(name, edges=cuts) if edges_declared else Numeric(name)
        for name, cuts in zip(names, edges, strict=True)
    ]
    return Problem(
        published_model(
            attributes,
            frame.classes,
            alpha=0.8,
            budget=budget,
            warmup_rows=len(rows),
            strategy="published",
        ),
        rows,
        labels,
        truth,
        Encoder(whole.attributes, edges).codes(rows),
        branch_names(whole.attributes, edges),
    )


@cache
def iris() -> Problem:
    """Labels of every kind: vacuous, precise, sets, plausibilities."""
    data = load_iris()
    rng = np.random.default_rng(0)
    order = rng.permutation(150)
    truth = data.target[order]
    kind = rng.integers(0, 4, 150)
    precise = np.eye(3)[truth]
    labels = np.select(
        [kind[:, None] == 0, kind[:, None] == 1, kind[:, None] == 2],
        [
            precise,
            np.maximum(precise, np.eye(3)[(truth + 1) % 3]),
            np.maximum(precise, rng.random((150, 3)).round(1)),
        ],
        np.ones((150, 3)),
    )
    return _numeric(data.data[order], truth, labels, budget=15, edges_declared=False)


@cache
def wine() -> Problem:
    """Nothing is known of any label."""
    data = load_wine()
    order = np.random.default_rng(1).permutation(178)
    return _numeric(data.data[order], data.target[order], None, budget=25, edges_declared=True)


@cache
def t() -> Problem:
    return Problem(
        published_model(
            [Nominal("X", table_t.VALUES[0]), Nominal("Y", table_t.VALUES[1])],
            table_t.CLASSES,
            alpha=0.9,
            budget=5,
            strategy="published",
        ),
        table_t.CODES.astype(float),
        table_t.CONTOURS,
        table_t.TRUTH,
        table_t.CODES,
        (("a", "b", "c", "?"), ("d", "e", "?")),
    )


PROBLEMS = {"iris": iris, "wine": wine, "table T": t}


def expert(problem: Problem) -> Callable[[int], Answer]:
    """Knows every class."""
    return lambda row: np.eye(len(problem.specification.classes))[problem.truth[row]]


def doubter(problem: Problem) -> Callable[[int], Answer]:
    """Refuses, or answers with the class, a set, or plausibilities, as the row's number says."""
    size = len(problem.specification.classes)

    def answer(row: int) -> Answer:
        known = np.eye(size)[problem.truth[row]]
        other = np.eye(size)[(problem.truth[row] + 1) % size]
        doubts = [
            known,
            None,
            np.maximum(known, other),
            np.maximum(known, 0.25),
            np.maximum(known, 0.5 * other),
        ]
        return doubts[row % 5]

    return answer


ORACLES = {"expert": expert, "doubter": doubter}
