"""Classifying 100,000 rows in process: the flat tree beside scikit-learn's batch and River's row by row.

scikit-learn's tree has as many leaves as Quercus's.
"""

import numpy as np
from _measure import cpu, in_turn, rate, times
from _report import Row, options, reporting
from _streams import STOPPING, batches, dictionaries, nominal, precise, train
from river import tree
from sklearn.tree import DecisionTreeClassifier

from quercus.trees.growth.stream import GrowthState, grow

STREAM = nominal()
ROWS, ONE_BY_ONE = 100_000, 10_000
TARGET = 0.5


def grown(X, y):
    spec = STREAM.specification(alpha=1.0, **STOPPING)
    state = grow(GrowthState.initial(spec), batches(X, precise(y, STREAM.classes)))
    return state.flat, state.encoder


def river_seconds(X, y) -> float:
    """Return River's CPU seconds a row."""
    model = tree.HoeffdingTreeClassifier(nominal_attributes=[f"a{k}" for k in range(STREAM.attributes)])
    rows = dictionaries(X)
    for row, label in zip(rows, y.tolist(), strict=True):
        model.learn_one(row, label)
    held = rows[:ONE_BY_ONE]
    return float(np.median([cpu(lambda: [model.predict_one(row) for row in held]) for _ in range(3)])) / len(
        held
    )


def main() -> None:
    quick = options().quick
    X, y = train(STREAM, 20_000 if quick else 100_000)
    with reporting("Classification in process", ("scikit-learn", "river"), quick=quick) as report:
        flat, encoder = grown(X, y)
        codes = encoder.codes(X)
        rows = np.ascontiguousarray(X, dtype=np.float32)  # what scikit-learn would otherwise convert to
        peer = DecisionTreeClassifier(max_leaf_nodes=flat.leaf_count, random_state=0).fit(rows, y)
        works = {
            "class": lambda: flat.klass[flat.route(codes)],
            "class probabilities (θ)": lambda: flat.theta[flat.route(codes)],
            "class, from raw values": lambda: flat.klass[flat.route(encoder.codes(X))],
            "peer": lambda: peer.predict(rows),
            "peer's probabilities": lambda: peer.predict_proba(rows),
        }
        for work in works.values():
            work()
        seconds = dict(zip(works, in_turn(list(works.values()), 5 if quick else 15), strict=True))
        river = river_seconds(X, y)
        for name in list(works)[:3]:
            theirs = seconds["peer's probabilities" if "θ" in name else "peer"]
            judged = name == "class"
            report.add(
                Row(
                    f"classify {len(X):,} rows, {flat.leaf_count:,} leaves: {name}",
                    rate(len(X), seconds[name]),
                    f"scikit-learn, {peer.get_n_leaves():,} leaves, {rate(len(X), theirs)}; River {rate(1, river)}",
                    f"{times(theirs / seconds[name])}; {times(river * len(X) / seconds[name])}",
                    f"≥ {TARGET:g} × scikit-learn" if judged else "",
                    bool(theirs / seconds[name] >= TARGET) if judged else None,
                )
            )


if __name__ == "__main__":
    main()
