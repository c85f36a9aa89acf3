"""Choosing the next query at a node of 1,000 rows with 200 distinct contours, beside scikit-activeml.

Quercus names the candidate whose label, left out, changes the entropy interval of its child most; it is asked through
`GrowthState.agenda`, on a state that has its tree but has chosen nothing yet. scikit-activeml scores as many candidates
by the margin of a decision tree, and by a committee of ten.
"""

import numpy as np
from _measure import cpu, milliseconds, times
from _report import Row, options, reporting
from _streams import soft
from skactiveml.classifier import SklearnClassifier
from skactiveml.pool import QueryByCommittee, UncertaintySampling
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from quercus.belief.frame import Frame
from quercus.specification.algorithms import Abc45
from quercus.specification.attributes import Nominal
from quercus.specification.model import Specification
from quercus.trees.growth.stream import GrowthState, Observed, grow

ROWS, DISTINCT, CLASSES, ATTRIBUTES, VALUES = 1_000, 200, 3, 4, 4
LABELLED = 100  # of the peer's rows; the rest are its candidates, as many as ours
TARGET_S = 0.005


def rows(n):
    rng = np.random.default_rng(0)
    return rng.integers(VALUES, size=(n, ATTRIBUTES)).astype(float), rng.integers(CLASSES, size=n)


def root_of_thousand():
    """Return a model whose undecided root has 1,000 rows; a query stands for one of its children."""
    X, y = rows(ROWS)
    return X, soft(y, CLASSES, DISTINCT)


def child_of_thousand():
    """Return a model whose first child has 1,000 rows, all 200 contours among them: the larger work."""
    X, y = rows(ROWS + 50)
    X[:, 0] = 0
    X[ROWS:, 0] = 1
    return X, soft(y, CLASSES, DISTINCT)


def state_of(X, contours, alpha=0.8):
    values = tuple(f"v{value}" for value in range(VALUES))
    attributes = tuple(Nominal(f"a{k}", values) for k in range(ATTRIBUTES))
    frame = Frame(tuple(f"c{klass}" for klass in range(CLASSES)))
    spec = Specification(
        attributes,
        frame,
        alpha=alpha,
        budget=100,
        strategy="published",
        algorithm=Abc45(),
        split_significance=0.0,
    )
    state = grow(GrowthState.initial(spec), [Observed(X, contours)])
    assert state.flat.undecided[0], "the root must be undecided"  # and the tree is there
    return state


def choose(work) -> float:
    """Return the CPU seconds of one choice from a state that never chose before."""
    state = state_of(*work)
    found = ()

    def ask():
        nonlocal found
        found = state.agenda(1)

    seconds = cpu(ask)
    assert found, "the node must have a query"
    return seconds


def peers():
    """Return the work of scikit-activeml's two strategies, by name."""
    X, y = rows(ROWS + LABELLED)
    partly = np.where(np.arange(len(y)) < LABELLED, y, np.nan)
    classes = list(range(CLASSES))
    one = SklearnClassifier(DecisionTreeClassifier(random_state=0), classes=classes)
    many = SklearnClassifier(RandomForestClassifier(10, random_state=0), classes=classes)
    margin = UncertaintySampling(method="margin_sampling", random_state=0)
    committee = QueryByCommittee(random_state=0)
    return {
        "scikit-activeml margin": lambda: margin.query(X, partly, clf=one),
        "scikit-activeml committee of 10": lambda: committee.query(X, partly, ensemble=many),
    }


def main() -> None:
    quick = options().quick
    repeats = 3 if quick else 11
    works = {
        f"a node of {ROWS:,} rows": root_of_thousand(),
        f"a child of {ROWS:,} rows": child_of_thousand(),
    }
    with reporting("The choice of a query", ("scikit-learn", "scikit-activeml"), quick=quick) as report:
        strategies = peers()
        for ask in strategies.values():
            ask()
        for work in works.values():
            choose(work)  # compiles what is needed
        taken = [[choose(work) for work in works.values()] for _ in range(repeats)]
        theirs = {
            name: float(np.median([cpu(ask) for _ in range(repeats)])) for name, ask in strategies.items()
        }
        for name, ours in zip(works, np.median(taken, axis=0), strict=True):
            report.add(
                Row(
                    f"choose a query: {name}, {DISTINCT} distinct contours, l = {CLASSES}, α = .8",
                    milliseconds(ours),
                    "; ".join(f"{peer} {milliseconds(seconds)}" for peer, seconds in theirs.items()),
                    "; ".join(times(seconds / ours) for seconds in theirs.values()),
                    f"< {milliseconds(TARGET_S)}",
                    bool(ours < TARGET_S),
                )
            )


if __name__ == "__main__":
    main()
