"""Quercus and its peers over one stream, watched the same way: CPU seconds of learning, accuracy on the way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from _measure import Clock
from _streams import Floats, Ints, batches
from sklearn.tree import DecisionTreeClassifier

from quercus.specification.model import Specification
from quercus.trees.growth.stream import GrowthState, grow

LEAST_LEAVES = (1, 2, 3, 5, 10, 20, 30)  # scikit-learn's min_samples_leaf: all are tried, the best counts


@dataclass
class Run:
    """CPU seconds of learning all rows, and hold-out accuracy after so many."""

    seconds: float
    accuracy: dict[int, float] = field(default_factory=dict)
    nodes: int = 0


def run_quercus(
    spec: Specification,
    X: Floats,
    contours: Floats,
    looks: Sequence[int],
    test: tuple[Floats, Ints] | None = None,
) -> Run:
    """Push in batches of 1,000 and look at the whole exact tree after `looks` rows; both are on the clock."""
    state, clock, run, seen = GrowthState.initial(spec), Clock(), Run(0.0), 0
    for batch in batches(X, contours):
        seen += len(batch.values)
        with clock:
            state = grow(state, [batch])
            flat = state.flat if seen in looks else None
        if flat is not None:
            run.nodes = flat.size
            if test is not None:
                found = flat.klass[flat.route(state.encoder.codes(test[0]), test[0])]
                run.accuracy[seen] = float((found == test[1]).mean())
    run.seconds = clock.seconds
    return run


def run_river(
    make: Callable[[], object],
    rows: list[dict],
    labels: list[int],
    looks: Sequence[int] = (),
    test: tuple[list[dict], Ints] | None = None,
) -> Run:
    """Learn row by row; the dictionaries are there before the clock starts."""
    model, clock, run, done = make(), Clock(), Run(0.0), 0
    for stop in sorted({*looks, len(rows)}):
        with clock:
            for row, label in zip(rows[done:stop], labels[done:stop], strict=True):
                model.learn_one(row, label)
        done = stop
        if test is not None and stop in looks:
            found = np.array([model.predict_one(row) for row in test[0]])
            run.accuracy[stop] = float((found == test[1]).mean())
    run.seconds, run.nodes = clock.seconds, getattr(model, "n_nodes", 0) or 0
    return run


def best_refit(X: Floats, y: Ints, test: tuple[Floats, Ints]) -> tuple[float, int, float]:
    """Return accuracy, min_samples_leaf and CPU seconds of scikit-learn's best refit, ordinal or one-hot."""
    best = (0.0, 0, 0.0)
    whole = bool((np.floor(X) == X).all())
    for encode in (lambda rows: rows, one_hot) if whole else (lambda rows: rows,):
        rows, held = encode(X), encode(test[0])
        for least in LEAST_LEAVES:
            model, clock = DecisionTreeClassifier(min_samples_leaf=least, random_state=0), Clock()
            with clock:
                model.fit(rows, y)
            best = max(best, (float(model.score(held, test[1])), least, clock.seconds))
    return best


def one_hot(X: Floats) -> Floats:
    """Return nominal values as indicator columns."""
    columns = [X[:, k, None] == np.arange(X[:, k].max() + 1) for k in range(X.shape[1])]
    return np.concatenate(columns, axis=1).astype(float)
